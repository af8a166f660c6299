#include "reports/suite_json.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "harness/analyse/suite.hpp"

namespace railbreak::reports {

using Json = nlohmann::ordered_json;

namespace {

Json time_or_null(std::int64_t realtime_ns) {
    return realtime_ns > 0 ? Json(to_iso8601(Nanoseconds(realtime_ns))) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

/// Stored JSON as an object; as text when it is none.
Json parsed(const std::string& text) {
    Json json = Json::parse(text, nullptr, false);
    return json.is_object() ? json : Json(text);
}

} // namespace

std::string suite_json(const record::SuiteData& data) {
    const analyse::SuiteOutcome outcome = analyse::judge_suite(data);
    const record::SuiteRow& suite = data.suite;
    Json items = Json::array();
    for (std::size_t i = 0; i < data.items.size(); ++i) {
        const record::SuiteItemRow& item = data.items[i];
        items.push_back({{"name", item.name},
                         {"scenario_name", item.scenario_name},
                         {"params", parsed(item.params_json)},
                         {"repeat", item.repeat},
                         {"plan_hash", item.plan_hash},
                         {"verdict", outcome.items[i].word},
                         {"reason", data.reasons[i]},
                         {"attempts", item.attempts},
                         {"run_id", text_or_null(data.run_ids[i])},
                         {"pruned_run_id", text_or_null(item.run == 0 ? item.pruned.run_id : "")}});
    }
    const Json json{{"schema", "railbreak-suite-report"},
                    {"version", 1},
                    {"verdict", to_string(outcome.verdict)},
                    {"reason", outcome.reason},
                    {"suite",
                     {{"suite_id", suite.suite_id},
                      {"name", suite.name},
                      {"plan_hash", suite.plan_hash},
                      {"seed", std::to_string(suite.seed)},
                      {"backend", suite.backend},
                      {"cluster", suite.cluster},
                      {"railbreak_version", suite.version},
                      {"command_line", suite.command_line},
                      {"environment", parsed(suite.environment_json)},
                      {"started_at", time_or_null(suite.started_realtime_ns)},
                      {"finished_at", time_or_null(suite.finished_realtime_ns)}}},
                    {"counts",
                     {{"items", data.items.size()},
                      {"passed", outcome.passed},
                      {"skipped", outcome.skipped},
                      {"left", outcome.left}}},
                    {"items", std::move(items)}};
    return json_text(json);
}

} // namespace railbreak::reports
