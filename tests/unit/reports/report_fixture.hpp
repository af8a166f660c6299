// Runs with verdicts, for the tests of reports.
#pragma once

#include <vector>

#include "harness/record/reader.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run in which all went well. Three forms of optcc were tried, and it ran a ring while nothing was wrong.
[[nodiscard]] record::RunData good_run();
/// A run with a wrong result, a dead rank, a fault that was not seen and is not restored, and text that is not ASCII.
[[nodiscard]] record::RunData bad_run();
/// A run whose controller died before the first iteration.
[[nodiscard]] record::RunData unfinished_run();
/// One summary of each kind.
[[nodiscard]] std::vector<record::RunSummary> summaries();

} // namespace railbreak::reports
