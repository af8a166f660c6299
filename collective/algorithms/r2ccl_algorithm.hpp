// R2CCL's AllReduce as an entry of the registry. Its "Balance" is with the other ring failovers, iccl_algorithm.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "collective/algorithm.hpp"
#include "collective/algorithms/r2ccl.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

/// "r2ccl": at least three servers of one rank, one of them slow; the plain ring when nobody is. Options: y = x (the
/// tail is the lost share of the bandwidth) or star (r2ccl_best_share()), k = chunks of stage 2.
class R2cclAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "r2ccl"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

/// Predicted time for a tail of `share` of the vector, `chunks` chunks of `pieces` pieces: max(T1, T2) + T3, where T1
/// is the ring over all on main, T2 the ring over the healthy on tail with the share 1-1/l of a port, and T3 the tail
/// through the slow port, one chunk more to fill the pipeline, and a piece for each member of the chain. Without
/// overhead and latency and with fine pieces this is T0 + (1+1/K)(l-1)n for share 1-1/l. For ports that flows share;
/// one flow at a time cannot hide 1b behind 1a, since A's neighbours are busy with A. cost.slowdown > 1.
///
/// With `lanes`, a port is shared evenly by the lanes: where that gives main less than the 1/l that it needs, the tail
/// has its lanes' share of the port and main, for as long as the tail lasts, the rest. Without, ports are split
/// ideally.
[[nodiscard]] double r2ccl_cost_ns(const CostInput& cost, double share, std::int64_t chunks, std::int64_t pieces,
                                   const std::optional<R2cclLanes>& lanes = std::nullopt);

} // namespace railbreak::collective
