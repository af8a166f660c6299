// What a NIC receives: capped, and its packets lost, delayed, damaged, doubled or reordered.
#include "injectors/facets.hpp"
#include "injectors/side_facet.hpp"

namespace railbreak::injectors {

namespace {

class Receive final : public SideFacet {
public:
    Receive() : SideFacet(TcDirection::kIngress, "rbifbr", "receive") {}
    FacetKind kind() const override { return FacetKind::kReceive; }

protected:
    std::optional<BitRate> rate(const WantedState& wanted) const override { return wanted.receive; }
    const PacketTreatment& treatment(const WantedState& wanted) const override { return wanted.receive_packets; }
};

} // namespace

const Facet& receive_facet() {
    static const Receive facet;
    return facet;
}

} // namespace railbreak::injectors
