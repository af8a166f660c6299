// The reports for programs.
#pragma once

#include <string>
#include <vector>

#include "harness/record/reader.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as JSON, schema "railbreak-run-report" version 1 (docs/report-schema.md,
/// reports/schema/run-report-v1.schema.json). Keys have a fixed order and units in their names; the same data gives the
/// same bytes. Ends with a newline. Text that is not UTF-8 has its bad bytes replaced by U+FFFD.
[[nodiscard]] std::string run_json(const record::RunData& data);

/// The list of runs as JSON, schema "railbreak-run-list" version 1 (docs/report-schema.md).
[[nodiscard]] std::string list_json(const std::vector<record::RunSummary>& runs);

} // namespace railbreak::reports
