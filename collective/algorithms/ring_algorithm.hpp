// The plain ring as an entry of the registry, and what every algorithm checks and every ring costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

/// "ring": needs two ranks and live NICs; with several ranks a server at least two servers. Stragglers slow it down by
/// their full slowdown. Option channels = 1..4 for servers of one rank: channel c is a lane on NIC c modulo the NICs.
class RingAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "ring"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

/// What every algorithm checks first: at least `least_ranks` ranks, elements, a healthy rate. The cost figures of the
/// request on success, with the largest slowdown of any server.
[[nodiscard]] Result<CostInput> check_request(const PlanRequest& request, std::string_view algorithm, Rank least_ranks);
/// The ring over servers of one rank, one lane on NIC 0, for a request that passed check_request.
[[nodiscard]] Plan ring_plan(const PlanRequest& request, const CostInput& cost, std::string reason);

/// The ring over servers of several ranks with all its channels on their own rails. Error (kInput) for a single server.
[[nodiscard]] Result<ServerRingParameters> server_ring(const PlanRequest& request, std::string_view algorithm);

/// Predicted time of make_channel_ring(): every hop takes as long as the slowest NIC needs for its channels, or as the
/// mean hop with its latency. A server with dead NICs counts as healthy on those that are left.
[[nodiscard]] double channel_ring_cost_ns(const PlanRequest& request, const CostInput& cost,
                                          const std::vector<std::int32_t>& nics);
/// Predicted time of make_server_ring(): as above; the intra-host port has its hops too.
[[nodiscard]] double server_ring_cost_ns(const PlanRequest& request, const CostInput& cost,
                                         const ServerRingParameters& ring);

} // namespace railbreak::collective
