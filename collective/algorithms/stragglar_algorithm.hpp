// StragglAR as an entry of the registry.
#pragma once

#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// "stragglar": at least three servers of one rank. The slowest rank is taken for the late one, the last rank when
/// nobody is slow. Options: straggler = rank, seed (for numbers of ranks that are no power of two).
class StragglarAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "stragglar"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

/// Predicted time when nobody is late: the reduce-scatter, p-1 exchanges at the straggler's pace, and the rounds after
/// them, at its pace too since it passes chunks on. `others` is the largest slowdown among the members.
[[nodiscard]] double stragglar_cost_ns(Rank ranks, std::size_t rounds, double straggler, double others,
                                       double vector_ns, double overhead_ns, double latency_ns);

} // namespace railbreak::collective
