#include "reports/events.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/text.hpp"

namespace railbreak::reports {

using record::RunState;
using record::StoredEvent;
using record::VerdictRow;
using Json = nlohmann::ordered_json;

namespace {

std::string json_line(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

const VerdictRow* verdict_of_run(const RunState& state) {
    const auto found = std::ranges::find(state.verdicts, "run", &VerdictRow::scope);
    return found != state.verdicts.end() ? &*found : nullptr;
}

std::string_view unfinished(const RunState& state) {
    return state.controller_gone ? "the run did not finish: the process that recorded it is gone"
                                 : "the run is still going on";
}

} // namespace

int level_rank(std::string_view level) {
    constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warning", "error"};
    const auto found = std::ranges::find(kLevels, level);
    return static_cast<int>(std::min<std::ptrdiff_t>(found - kLevels.begin(), 3));
}

std::string event_line(const StoredEvent& stored, std::int64_t origin) {
    const record::EventRow& event = stored.event;
    const std::string when =
        event.at != 0 ? fmt::format("{:.3f} s", static_cast<double>(event.at - origin) / 1e9) : "-";
    return fmt::format("{:>11}  {:<7}  {:<12}  {:<16}  {}\n", when, printable(event.level), printable(event.source),
                       printable(event.kind), printable(event.text));
}

std::string event_json(const StoredEvent& stored, const RunState& state) {
    const record::EventRow& event = stored.event;
    const Json facts = Json::parse(event.facts_json, nullptr, false);
    return json_line({{"schema", "railbreak-event"},
                      {"version", 1},
                      {"run_id", state.run_id},
                      {"id", stored.id},
                      {"offset_ns", event.at != 0 ? Json(event.at - state.origin) : Json(nullptr)},
                      {"level", event.level},
                      {"source", event.source},
                      {"kind", event.kind},
                      {"text", event.text},
                      {"facts", facts.is_discarded() ? Json(event.facts_json) : facts}});
}

std::string run_end_text(const RunState& state) {
    std::string text;
    for (const VerdictRow& row : state.verdicts) {
        if (row.scope == "teardown" && row.verdict != "pass") {
            text += fmt::format("TEARDOWN {}: {}\n", printable(row.verdict), printable(row.reason));
        }
    }
    const VerdictRow* run = verdict_of_run(state);
    return run != nullptr ? fmt::format("{}VERDICT {}: {}\n", text, printable(run->verdict), printable(run->reason))
                          : fmt::format("{}VERDICT none: {}\n", text, unfinished(state));
}

std::string run_end_json(const RunState& state, int exit_code) {
    const VerdictRow* run = verdict_of_run(state);
    return json_line({{"schema", "railbreak-run-end"},
                      {"version", 1},
                      {"run_id", state.run_id},
                      {"verdict", run != nullptr ? Json(run->verdict) : Json(nullptr)},
                      {"reason", run != nullptr ? run->reason : std::string(unfinished(state))},
                      {"exit_code", exit_code}});
}

} // namespace railbreak::reports
