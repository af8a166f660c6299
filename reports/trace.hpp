// The report as a trace for chrome://tracing and ui.perfetto.dev.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as a trace (docs/report-formats.md): a process for each host with a thread for each of its ranks (number of
/// the rank + 1) and one for its faults, then a process "run" with a thread for each algorithm and one for the events.
/// Iterations are complete events, phases and fault windows asynchronous pairs, for faults may overlap; a window that
/// was never closed ends with the run and says so. Readings of counters are counters, events of the run instants. Times
/// count from the first moment that the run recorded.
[[nodiscard]] std::string run_trace(const record::RunData& data);

} // namespace railbreak::reports
