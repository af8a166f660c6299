// One direction of a NIC: rate and packet treatment of what passes there, without touching the NIC's root qdisc.
//
//   cap, netem     an ifb device behind a filter of the NIC's clsact qdisc that redirects everything to it. The ifb
//                  has an htb of the rate, a netem, or a netem below the htb
//   the program    a filter of the same clsact, before the redirect, which it ends at the end of the lease
//
// The undo goes filters, clsact qdisc, ifb: the other way round the redirect leads nowhere and all traffic is lost.
#pragma once

#include <string>
#include <string_view>

#include "injectors/facet_of.hpp"
#include "injectors/packet_mechanism.hpp"

namespace railbreak::injectors {

/// See facet_receive.cpp and facet_send_packets.cpp for the two sides.
class SideFacet : public FacetOf<SideFormer> {
protected:
    /// `ifb_prefix` and the NIC's index make the ifb's name; `side` begins the names of what is read back.
    SideFacet(TcDirection direction, std::string_view ifb_prefix, std::string_view side)
        : direction_(direction), ifb_prefix_(ifb_prefix), side_(side) {}

    /// What is wanted of this side.
    [[nodiscard]] virtual std::optional<BitRate> rate(const WantedState& wanted) const = 0;
    [[nodiscard]] virtual const PacketTreatment& treatment(const WantedState& wanted) const = 0;

    bool concerned(const WantedState& wanted) const final { return rate(wanted) || acts(treatment(wanted)); }
    Result<SideFormer> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const final;
    Result<void> make(HostOps& ops, const FacetContext& context, const SideFormer& former,
                      const WantedState& wanted) const final;
    Result<void> undo(HostOps& ops, const FacetContext& context, const SideFormer& former) const final;
    Result<void> clean_up(HostOps& ops, const FacetContext& context, const SideFormer& former) const final;
    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const SideFormer& former,
                               const WantedState& wanted) const final;
    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const SideFormer& former) const final;
    Steps steps(const FacetContext& context, const SideFormer& former, const WantedState& wanted) const final;
    std::string words(const SideFormer& former) const final;
    std::string words_for(const SideFormer& former, const FaultRequest& request) const final;
    Result<void> may_join(const SideFormer& former, const FaultRequest& request) const final;
    Readback closing_values(HostOps& ops, const FacetContext& context, const SideFormer& former,
                            const WantedState& wanted) const final;
    bool ends_by_itself(const SideFormer& former) const final;
    std::string encode(const SideFormer& former) const final { return encode_side(former); }
    Result<SideFormer> decode(std::string_view bytes) const final { return decode_side(bytes); }

private:
    struct Parts; ///< what is wanted of the ifb and of the program
    [[nodiscard]] Parts parts(const FacetContext& context, const SideFormer& former, const WantedState& wanted) const;
    [[nodiscard]] std::string ifb_name(const FacetContext& context) const;
    [[nodiscard]] Result<void> redirect(HostOps& ops, const FacetContext& context, const Parts& wanted) const;
    [[nodiscard]] Result<void> run_program(HostOps& ops, const FacetContext& context,
                                           const PacketProgram& program) const;
    [[nodiscard]] Result<std::vector<QdiscRecord>> ifb_qdiscs(HostOps& ops, const FacetContext& context) const;
    [[nodiscard]] Result<std::optional<BitRate>> rate_in_force(HostOps& ops, const FacetContext& context) const;
    [[nodiscard]] Result<void> check_netem(HostOps& ops, const FacetContext& context, const Parts& wanted) const;
    [[nodiscard]] Result<void> check_program(HostOps& ops, const FacetContext& context, const Parts& wanted) const;

    TcDirection direction_;
    std::string_view ifb_prefix_;
    std::string_view side_;
};

} // namespace railbreak::injectors
