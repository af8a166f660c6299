#include "harness/analyse/history.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "harness/analyse/comparison.hpp"
#include "harness/analyse/verdict.hpp"
#include "harness/record/reader.hpp"
#include "scenarios/model.hpp"

namespace railbreak::analyse {

using nlohmann::json;
using record::RunData;
using record::VerdictRow;

namespace {

/// How far back earlier runs are looked for.
constexpr std::int32_t kMostLookedAt = 200;

EarlierRun what_it_measured(const RunData& run) {
    EarlierRun earlier{run.run.run_id, {}};
    for (const VerdictRow& row : run.verdicts) {
        if (row.scope == "expectation" && row.measured) {
            earlier.measured.emplace_back(row.subject, *row.measured);
        }
    }
    return earlier;
}

std::string to_json(const History& history) {
    json runs = json::array();
    for (const EarlierRun& run : history.runs) {
        json measured = json::object();
        for (const auto& [subject, value] : run.measured) {
            measured[subject] = value;
        }
        runs.push_back({{"run_id", run.run_id}, {"measured", std::move(measured)}});
    }
    return json{{"schema", "railbreak-history"}, {"version", 1}, {"runs", std::move(runs)}}.dump(
        -1, ' ', false, json::error_handler_t::replace);
}

} // namespace

std::vector<double> History::values_of(std::string_view subject) const {
    std::vector<double> values;
    for (const EarlierRun& run : runs) {
        const auto found = std::ranges::find_if(run.measured, [&](const auto& one) { return one.first == subject; });
        if (found != run.measured.end()) {
            values.push_back(found->second);
        }
    }
    return values;
}

bool is_sound(const RunData& run) {
    const auto whole = std::ranges::find(run.verdicts, "run", &VerdictRow::scope);
    if (whole == run.verdicts.end() ||
        (whole->verdict != to_string(Verdict::kPass) && whole->verdict != to_string(Verdict::kInconclusive))) {
        return false; // aborted, for example, which no check tells
    }
    bool gathering = false;
    for (const VerdictRow& row : run.verdicts) {
        if (row.scope == "run" || row.verdict == to_string(Verdict::kPass)) {
            continue;
        }
        if (row.scope != "expectation" || !row.reason.starts_with(kGathering)) {
            return false;
        }
        gathering = true;
    }
    return gathering || whole->verdict == to_string(Verdict::kPass);
}

History history_of(const RunData& run) {
    const auto found = std::ranges::find(run.artefacts, kHistoryArtefact, &record::ArtefactRow::name);
    if (found == run.artefacts.end()) {
        return {};
    }
    History history;
    try {
        const json stored = json::parse(found->content);
        for (const json& entry : stored.at("runs")) {
            EarlierRun& earlier = history.runs.emplace_back();
            earlier.run_id = entry.at("run_id").get<std::string>();
            for (const auto& [subject, value] : entry.at("measured").items()) {
                earlier.measured.emplace_back(subject, value.get<double>());
            }
        }
    } catch (const json::exception&) { // not what gather_history() wrote: as if there were none
        return {};
    }
    return history;
}

bool needs_history(const scenarios::Plan& plan) {
    return std::ranges::any_of(plan.expectations, [](const auto& one) { return one.baseline.has_value(); });
}

Result<record::ArtefactRow> gather_history(const record::RunReader& reader, const record::RunRow& run) {
    const auto summaries = reader.find_runs(run.scenario_name, run.plan_hash, run.cluster, kMostLookedAt);
    if (!summaries) {
        return tl::unexpected(summaries.error());
    }
    History history;
    for (auto summary = summaries->rbegin();
         summary != summaries->rend() && history.runs.size() < static_cast<std::size_t>(kHistoryRuns); ++summary) {
        const Result<RunData> earlier = reader.load_run(summary->run_id);
        if (!earlier) {
            return tl::unexpected(earlier.error());
        }
        if (earlier->run.id < run.id && place_of(earlier->run) == place_of(run) && is_sound(*earlier)) {
            history.runs.push_back(what_it_measured(*earlier));
        }
    }
    std::ranges::reverse(history.runs);
    return record::ArtefactRow{.run = run.id,
                               .name = std::string(kHistoryArtefact),
                               .media_type = "application/json",
                               .content = to_json(history)};
}

} // namespace railbreak::analyse
