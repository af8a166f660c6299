// The report for the page of a CI job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as Markdown (GitHub's and GitLab's dialect): the verdict with its reason first, then a table of the algorithms
/// and phases, the faults, what did not pass, all checks folded away, and the command to reproduce it. Names are shown
/// as text: nothing in them becomes a tag, a link, a mention or a cell.
[[nodiscard]] std::string run_markdown(const record::RunData& data);

/// A suite: its verdict, what did not pass and why, then all items folded away with the figures of their degraded
/// phases.
[[nodiscard]] std::string suite_markdown(const record::SuiteData& suite, const std::vector<record::RunData>& runs);

/// Any text as one line of Markdown that shows it as it is.
[[nodiscard]] std::string markdown_text(std::string_view text);

} // namespace railbreak::reports
