// What a gate came to, as text and JSON.
#pragma once

#include <string>
#include <string_view>

#include "harness/analyse/gate.hpp"

namespace railbreak::reports {

/// One line for each finding, the worst first, then the verdict.
[[nodiscard]] std::string gate_table(const analyse::Gate& gate, std::string_view tag);

/// The same as JSON, schema "railbreak-gate-report" version 1 (docs/report-schema.md). `exit_code` is the command's.
[[nodiscard]] std::string gate_json(const analyse::Gate& gate, std::string_view tag, int exit_code);

} // namespace railbreak::reports
