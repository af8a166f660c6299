// The canonical bytes of a suite's plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/plan_json.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::scenarios {

/// The plan as JSON with sorted keys and no spaces: its rules, and every item with its parameters, its seed and the
/// hash of its plan.
[[nodiscard]] std::string canonical_json(const SuitePlan& plan);

} // namespace railbreak::scenarios
