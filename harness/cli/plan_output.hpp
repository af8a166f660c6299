// What the planner found out, for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "collective/planner.hpp"

namespace railbreak::cli {

/// The bounds, a table of the algorithms, the recommendation and from which message size on it pays.
[[nodiscard]] std::string plan_text(const collective::PlannerInput& input, const collective::Evaluation& evaluation,
                                    const std::optional<collective::BreakEven>& break_even);
/// The same for programs: schema "railbreak-plan", version 1.
[[nodiscard]] std::string plan_json(const collective::PlannerInput& input, const collective::Evaluation& evaluation,
                                    const std::optional<collective::BreakEven>& break_even);
/// How many times one duration is the other; 0 where the other is none.
[[nodiscard]] double ratio(Nanoseconds above, Nanoseconds below);

} // namespace railbreak::cli
