// One part of a run, for somebody who does not want to read all of it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// The parts that every run has. "summary" says what there is; artefacts are asked for by name.
inline constexpr std::array<std::string_view, 9> kSections{"summary", "verdict", "faults",   "iterations", "events",
                                                           "bounds",  "plan",    "scenario", "environment"};

/// A part as text: tables and lines in printable ASCII; "scenario", "plan" and "environment" as they are
/// stored (JSON indented), in legible UTF-8. kUsage for an unknown part.
[[nodiscard]] Result<std::string> section_text(const record::RunData& data, std::string_view section);

/// A part as JSON, schema "railbreak-run-section" version 1: "content" is what the run report has under that name
/// (docs/report-schema.md), or the stored plan, or text. Errors as section_text().
[[nodiscard]] Result<std::string> section_json(const record::RunData& data, std::string_view section);

/// An artefact by name. kInput when the run has none of that name, with the names that there are.
[[nodiscard]] Result<const record::ArtefactRow*> find_artefact(const record::RunData& data, std::string_view name);

/// An artefact as JSON, schema "railbreak-run-artefact" version 1.
[[nodiscard]] std::string artefact_json(const record::RunData& data, const record::ArtefactRow& artefact);

/// Text of any origin without what steers a terminal; other characters of well-formed UTF-8 stay.
[[nodiscard]] std::string for_terminal(std::string_view text);

} // namespace railbreak::reports
