// A run in the two forms of nccl-tests' all_reduce_perf, which the scripts of the field read.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run in the columns of nccl-tests 2.x: a line for each algorithm and phase (warm-up and tries left out), after a
/// comment that names it. Ranks reduce in place: the columns of out-of-place are N/A. `time` is the median in
/// microseconds, bandwidths are GB/s (10^9); #wrong counts iterations with a wrong result (nccl-tests: elements), N/A
/// in a simulation, which moves no data.
[[nodiscard]] std::string run_nccl_text(const record::RunData& data);

/// The same in the shape of nccl-tests' JSON, version 3, with the times of each iteration and of each rank (from the
/// iteration's common start to that rank's end, so that their maximum is the iteration's time). Each result's
/// experiment_name is "ALGORITHM PHASE".
[[nodiscard]] std::string run_nccl_json(const record::RunData& data);

} // namespace railbreak::reports
