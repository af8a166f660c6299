// "auto": whatever the planner recommends for the measured slowdowns.
#pragma once

#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// "auto": evaluates every other algorithm of the registry and plans with the one that the planner recommends
/// (planner.hpp), which allows for measurements that are too good.
///
/// Option: model = exclusive (default) | fluid. A plan for exclusive ports takes no longer on fluid ones; what is
/// predicted for flows that share a port is rougher. Errors (kInput): unknown or wrong options, no
/// algorithm applies.
class AutoAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "auto"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] std::vector<OptionHelp> options() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

} // namespace railbreak::collective
