// What was understood of a suite, for people: `railbreak validate` prints it.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::scenarios {

/// Time that the iterations of all items would take, see estimate_run_time().
[[nodiscard]] Nanoseconds estimate_run_time(const SuitePlan& plan);

/// The suite as text: its rules, then a line for each item in the order in which they run; ends in a newline.
[[nodiscard]] std::string to_text(const SuitePlan& plan);

} // namespace railbreak::scenarios
