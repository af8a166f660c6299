// Hierarchical AllReduce for servers of g ranks: every server reduce-scatters the vector among its ranks, so that rank
// i has slice i of the server's sum; rank i of all q servers form a ring on their rail for slice i; then every server
// gathers the slices. A network port carries 2(q-1)/q of 1/g of the vector each way, whatever the order of the servers.
#pragma once

#include <cstdint>
#include <memory>

#include "collective/algorithm.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Everything that determines a schedule.
struct HierarchicalParameters {
    Rank servers = 0;                 ///< q >= 1; one server: the two local phases alone
    Rank ranks_per_server = 0;        ///< g >= 2
    std::int32_t nics_per_server = 1; ///< rank i of a server uses NIC i modulo this
    std::int64_t elements = 0;        ///< >= 1
};

/// The schedule: lane 0 on the rank's NIC, lane 1 on its intra-host port. Every step in O(1).
[[nodiscard]] std::unique_ptr<const Schedule> make_hierarchical(const HierarchicalParameters& parameters);

/// "hierarchical": servers of at least two ranks, with live NICs. No options.
class HierarchicalAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "hierarchical"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
