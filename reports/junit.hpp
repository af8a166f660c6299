// The report for CI systems that read JUnit's XML.
#pragma once

#include <string>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as JUnit XML: a suite "run" with its verdict and its teardown, then a suite for each algorithm with every
/// check of it as a test case (docs/report-formats.md). fail is a failure; aborted, inconclusive and invalid are
/// errors of that type; refused is skipped. It keeps to what both common schemas take, that of Ant's reports and that
/// of Jenkins' xunit plug-in. Times in seconds.
[[nodiscard]] std::string run_junit(const record::RunData& data);

/// A suite: the suites of each item's run, in packages of the item's name. An item without a run has one case, skipped
/// when it did not run or was refused, an error when it was interrupted or its run was deleted.
[[nodiscard]] std::string suite_junit(const record::SuiteData& suite, const std::vector<record::RunData>& runs);

} // namespace railbreak::reports
