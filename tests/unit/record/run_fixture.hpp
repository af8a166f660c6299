// A run made by hand for tests: eight hosts, one NIC at half rate, ring and both ways of optcc, all phases.
#pragma once

#include "harness/record/rows.hpp"

namespace railbreak::record {

/// The run, complete, right and within its bounds; without verdicts. Every value is fixed: same call, same data.
[[nodiscard]] RunData fixture_run();

/// Rows of `data` of one algorithm and phase, for tests that spoil them.
[[nodiscard]] std::vector<IterationRow*> iterations_of(RunData& data, std::string_view algorithm,
                                                       std::string_view phase);

} // namespace railbreak::record
