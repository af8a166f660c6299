// The report for people at a terminal.
#pragma once

#include <string>
#include <vector>

#include "harness/record/reader.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// How text is dressed. The caller decides about colours (a terminal, no NO_COLOR in the environment).
struct TextOptions {
    bool colour = false; ///< verdict words in colour (ANSI escapes)
};

/// A run as text: header, one row per algorithm and phase, the schedules where an algorithm ran several, the bounds by
/// name, the evidence of each fault, the forms of an algorithm that were tried on the damage, the expectations, every
/// check that did not pass, and at last the verdict with its reason ("VERDICT pass: ..."). Printable ASCII, at most 120
/// columns; the same data gives the same bytes.
[[nodiscard]] std::string run_table(const record::RunData& data, const TextOptions& options = {});

/// The list of runs as text, one line each, in the order given.
[[nodiscard]] std::string list_table(const std::vector<record::RunSummary>& runs, const TextOptions& options = {});

} // namespace railbreak::reports
