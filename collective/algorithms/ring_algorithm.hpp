// The plain ring as an entry of the registry.
#pragma once

#include <string>

#include "collective/algorithm.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

/// "ring": takes no options, needs two ranks. Stragglers slow it down by their full slowdown.
class RingAlgorithm final : public Algorithm {
public:
    [[nodiscard]] std::string_view name() const override { return "ring"; }
    [[nodiscard]] std::string_view summary() const override;
    [[nodiscard]] Result<Plan> plan(const PlanRequest& request) const override;
};

/// What every algorithm checks first: at least `least_ranks` ranks, elements, a healthy rate. The cost figures of the
/// request on success, with the largest slowdown of any server.
[[nodiscard]] Result<CostInput> check_request(const PlanRequest& request, std::string_view algorithm, Rank least_ranks);
/// The ring for a request that passed check_request.
[[nodiscard]] Plan ring_plan(const PlanRequest& request, const CostInput& cost, std::string reason);

} // namespace railbreak::collective
