// The ring after failover: dead NICs are bypassed and nothing else of the ring changes, as in ICCL/VCCL; or the
// channels of the dead NICs are closed and the others carry everything in equal shares, as in R2CCL's "Balance".
//
// With K NICs in a server and f of them dead, a server has lost the share f/K of its bandwidth. Balance takes K/(K-f)
// times the healthy ring. Failover leaves one NIC with two shares: twice the healthy ring whatever K is, unless an
// unused NIC stands by.
#pragma once

#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// "iccl": the ring of "ring", in which a network hop one of whose ends has lost its NIC takes another NIC number at
/// both ends, since rails may be networks of their own. Option backup: "shared" takes the neighbour NIC (number xor 1)
/// or else the next one that is alive at both ends, in use or not; "idle" takes only a NIC that no channel uses.
/// With servers of one rank each channel has a NIC of its own, up to four, and moves as a whole. With one NIC a server
/// there is nothing to fail over to: the plain ring on the slow port.
class IcclAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "iccl"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

/// "r2ccl-balance": the ring of "ring" without the channels whose NIC is dead on any server. No options.
class R2cclBalanceAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "r2ccl-balance"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
