// Runs with verdicts, for the tests of reports, and the files that their reports are compared with.
#pragma once

#include <string>
#include <vector>

#include "harness/record/reader.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run in which all went well. Three forms of optcc were tried, and it ran a ring while nothing was wrong.
[[nodiscard]] record::RunData good_run();
/// A run with a wrong result, a dead rank, a fault that was not seen and is not restored, and text that is not ASCII.
[[nodiscard]] record::RunData bad_run();
/// A run whose controller died before the first iteration.
[[nodiscard]] record::RunData unfinished_run();
/// A bad run whose names hold what a file of some format could take for its own: tags, quotes, pipes, backticks, line
/// breaks, a terminal escape, text that turns around, emoji, bytes that are not UTF-8.
[[nodiscard]] record::RunData hostile_run();
/// A suite with an item of each kind: passed, failed, with hostile texts, refused before a run began, with a run that
/// was deleted since, going on, waiting, skipped.
[[nodiscard]] record::SuiteData mixed_suite();
/// The runs of its first three items.
[[nodiscard]] std::vector<record::RunData> runs_of_mixed_suite();
/// One summary of each kind.
[[nodiscard]] std::vector<record::RunSummary> summaries();

/// Expects the text to be the file tests/golden/reports/<name>; with RAILBREAK_UPDATE_GOLDEN set, writes it instead.
void expect_golden(const std::string& name, const std::string& text);

} // namespace railbreak::reports
