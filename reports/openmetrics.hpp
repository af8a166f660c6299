// The report for monitoring: metrics of a run in the text format of Prometheus and OpenMetrics.
#pragma once

#include <string>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as gauges (docs/report-formats.md), for node_exporter's textfile collector. The text is valid in both formats:
/// it ends with "# EOF", its units are base units (seconds, bytes) and part of the names, and it carries no timestamps,
/// which the collector refuses. Labels: scenario everywhere; algorithm and phase with the figures of phases. A figure
/// that a run lacks has no sample.
[[nodiscard]] std::string run_openmetrics(const record::RunData& data);

/// A suite: what it came to, then the gauges of all runs of its items, which have the item as one more label.
[[nodiscard]] std::string suite_openmetrics(const record::SuiteData& suite, const std::vector<record::RunData>& runs);

} // namespace railbreak::reports
