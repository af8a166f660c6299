// The report of a suite for people at a terminal.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A suite as text: header, one line for each item (number, name, what it came to, attempts, run, reason), how many
/// came to what, and at last the verdict with its reason. Printable ASCII, at most 120 columns; the same data gives the
/// same bytes.
[[nodiscard]] std::string suite_table(const record::SuiteData& data);

} // namespace railbreak::reports
