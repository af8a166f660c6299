// Two runs side by side: another machine, another day, another build, or the same scenario simulated and in the lab.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// For each algorithm and phase that both runs have (warm-up and tries left out): the median times and B over A, the
/// overheads over the fluid bound and B over A of them. Each run's bound is for its own measured bandwidths, so the
/// second ratio compares clusters of different speed. Then what only one of them has, what their schedules differ in,
/// and whether their plans are the same.
[[nodiscard]] std::string compare_table(const record::RunData& a, const record::RunData& b);

/// The same as JSON, schema "railbreak-compare-report" version 1: {a, b: {run_id, scenario, backend, plan_hash},
/// phases:
/// [{algorithm, phase, a, b: {time_median_ns, overhead_fluid, schedules}, time_ratio, overhead_ratio}]}. A figure that
/// a run lacks is null; a ratio is null when either is.
[[nodiscard]] std::string compare_json(const record::RunData& a, const record::RunData& b);

} // namespace railbreak::reports
