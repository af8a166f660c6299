// The events of a run one by one, for a run that is still going on as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/record/reader.hpp"

namespace railbreak::reports {

/// How an event stands among the levels: debug 0, info 1, warning 2, error 3; what is unknown is as urgent as an error.
[[nodiscard]] int level_rank(std::string_view level);

/// "   1.204 s  info     controller    phase           ring steady": time since `origin` (RunState::origin), level,
/// source, kind and text, printable ASCII, with its newline. Not cut: a line is as long as its text.
[[nodiscard]] std::string event_line(const record::StoredEvent& stored, std::int64_t origin);

/// The same as one line of JSON, schema "railbreak-event" version 1.
[[nodiscard]] std::string event_json(const record::StoredEvent& stored, const record::RunState& state);

/// How the run ended: "VERDICT pass: all 15 checks passed", after what was not torn down, or that it did not end.
[[nodiscard]] std::string run_end_text(const record::RunState& state);

/// The same as one line of JSON, schema "railbreak-run-end" version 1.
[[nodiscard]] std::string run_end_json(const record::RunState& state, int exit_code);

} // namespace railbreak::reports
