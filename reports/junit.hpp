// The report for CI systems that read JUnit's XML.
#pragma once

#include <string>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as JUnit XML: a suite "run" with its verdict and its teardown, then a suite for each algorithm with every
/// check of it as a test case (docs/report-formats.md). fail is a failure; aborted, inconclusive and invalid are
/// errors of that type; refused is skipped. It keeps to what both common schemas take, that of Ant's reports and that
/// of Jenkins' xunit plug-in. Times in seconds.
[[nodiscard]] std::string run_junit(const record::RunData& data);

} // namespace railbreak::reports
