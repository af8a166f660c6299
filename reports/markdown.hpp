// The report for the page of a CI job.
#pragma once

#include <string>
#include <string_view>

#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// A run as Markdown (GitHub's and GitLab's dialect): the verdict with its reason first, then a table of the algorithms
/// and phases, the faults, what did not pass, all checks folded away, and the command to reproduce it. Names are shown
/// as text: nothing in them becomes a tag, a link, a mention or a cell.
[[nodiscard]] std::string run_markdown(const record::RunData& data);

/// Any text as one line of Markdown that shows it as it is.
[[nodiscard]] std::string markdown_text(std::string_view text);

} // namespace railbreak::reports
