// The report for the diagnosis of SuperBench.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run in the shape of SuperBench's results-summary.jsonl: an object for each host on a line of its own, with "node"
/// and flat metrics named BENCHMARK/METRIC[:NIC]. Metrics of the whole collective are on every line:
/// "allreduce-perf/ring_steady_33554432_busbw" (GB/s, 10^9), "..._algbw", "..._time" (microseconds, median) and more
/// (docs/report-formats.md). Everything in the name of an algorithm but letters, digits, '.', '_' and '-' becomes '_'.
[[nodiscard]] std::string run_superbench(const record::RunData& data);

} // namespace railbreak::reports
