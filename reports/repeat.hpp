// The report of one scenario run several times: how often it passed, and how far the runs lie apart.
#pragma once

#include <string>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// One line for each run (its verdict and reason), then for each algorithm and phase the spread, over the runs, of the
/// runs' medians: time, time over the healthy ring, overhead over the exclusive bound, each as min / median / max.
/// Warm-up and tries are left out. Ends with how many runs came to which verdict.
[[nodiscard]] std::string repeat_table(const std::vector<record::RunData>& runs);

/// The same as JSON, schema "railbreak-repeat-report" version 1: {runs: [{run_id, verdict, reason}], phases:
/// [{algorithm, phase, runs, time_median_ns: {min, median, max}, vs_healthy: {...}, overhead_exclusive: {...}}]}.
[[nodiscard]] std::string repeat_json(const std::vector<record::RunData>& runs);

} // namespace railbreak::reports
