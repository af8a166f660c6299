// The packets that a NIC sends: lost, delayed, damaged, doubled or reordered on their way to the root qdisc, which
// stays as it is. A cap on what is sent is another facet: see facet_send_rate.cpp.
#include "injectors/facets.hpp"
#include "injectors/side_facet.hpp"

namespace railbreak::injectors {

namespace {

class SendPackets final : public SideFacet {
public:
    SendPackets() : SideFacet(TcDirection::kEgress, "rbifbs", "send") {}
    FacetKind kind() const override { return FacetKind::kSendPackets; }

protected:
    std::optional<BitRate> rate(const WantedState&) const override { return std::nullopt; }
    const PacketTreatment& treatment(const WantedState& wanted) const override { return wanted.send_packets; }
};

} // namespace

const Facet& send_packets_facet() {
    static const SendPackets facet;
    return facet;
}

} // namespace railbreak::injectors
