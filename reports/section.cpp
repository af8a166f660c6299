#include "reports/section.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "reports/escape.hpp"
#include "reports/events.hpp"
#include "reports/facts.hpp"
#include "reports/json.hpp"
#include "reports/table_parts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

std::string milliseconds(std::int64_t nanoseconds) {
    return fmt::format("{:.3f}", static_cast<double>(nanoseconds) / 1e6);
}

std::string end_of(const RunData& data) {
    return find_verdict(data, "run") != nullptr ? run_end_text({.finished = true, .verdicts = data.verdicts})
                                                : wrapped("VERDICT none: " + printable(not_ended(data)), 2);
}

std::string summary_text(const RunData& data) {
    std::vector<std::vector<std::string>> rows{{"part", "rows"}};
    rows.push_back({"verdict", std::to_string(data.verdicts.size())});
    rows.push_back({"faults", std::to_string(data.injections.size())});
    rows.push_back({"iterations", std::to_string(data.iterations.size())});
    rows.push_back({"events", std::to_string(data.events.size())});
    rows.push_back({"bounds", std::to_string(data.bounds.size())});
    std::string text = fmt::format("{}\n{}", run_header(data), aligned(rows, "lr", "  "));
    if (!data.artefacts.empty()) {
        rows = {{"artefact", "type", "bytes"}};
        for (const record::ArtefactRow& row : data.artefacts) {
            rows.push_back({printable(row.name), printable(row.media_type), std::to_string(row.content.size())});
        }
        text += "\n" + aligned(rows, "llr", "  ");
    }
    return text + "\n" + end_of(data);
}

// "(measured 1.078, at least 0.964)"; empty where nothing was measured.
std::string measured_of(const record::VerdictRow& row) {
    std::string text;
    const auto add = [&](std::string_view what, const std::optional<double>& value) {
        text += value ? fmt::format("{}{} {:.6g}", text.empty() ? "" : ", ", what, *value) : "";
    };
    add("measured", row.measured);
    add("at least", row.limit_min);
    add("at most", row.limit_max);
    return text.empty() ? "" : fmt::format(" ({})", text);
}

std::string verdict_text(const RunData& data) {
    std::string text;
    for (const record::VerdictRow& row : data.verdicts) {
        if (row.scope != "run") {
            text += wrapped(
                printable(fmt::format("{:<14}{}{}{}: {}{}", row.verdict, row.scope, row.subject.empty() ? "" : " of ",
                                      row.subject, row.reason, measured_of(row))),
                14);
        }
    }
    return text + (text.empty() ? "" : "\n") + end_of(data);
}

std::string iterations_text(const RunData& data) {
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "phase", "n", "start/ms", "time/ms", "digest", "schedule, or the error"}};
    const std::int64_t origin = origin_ns(data);
    for (const record::IterationRow& row : data.iterations) {
        rows.push_back({printable(row.algorithm), printable(row.phase), std::to_string(row.iteration),
                        milliseconds(row.started_at - origin), milliseconds(row.duration_ns),
                        row.correct ? std::string(word_for_right(data)) : "wrong",
                        printable(row.error.empty() ? row.schedule : row.error)});
    }
    return rows.size() > 1 ? aligned(rows, "llrrrll") : "No iteration was recorded.\n";
}

std::string events_text(const RunData& data) {
    std::string text;
    const std::int64_t origin = origin_ns(data);
    for (const record::EventRow& row : data.events) {
        text += event_line({.event = row}, origin);
    }
    return text.empty() ? "No event was recorded.\n" : text;
}

std::string bounds_text(const RunData& data) {
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "phase", "model", "time/ms", "T/n", "slowdown", "bound", "what binds"}};
    for (const record::BoundRow& row : data.bounds) {
        rows.push_back({printable(row.algorithm), printable(row.phase), printable(row.model), milliseconds(row.time_ns),
                        fmt::format("{:.4f}", row.time_over_n), fmt::format("{:.3f}", row.slowdown),
                        printable(row.name), printable(row.branch)});
    }
    return rows.size() > 1 ? aligned(rows, "lllrrrll") : "No bound was recorded.\n";
}

// Stored JSON, indented; as it is where it does not parse.
std::string indented(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    return json.is_discarded() ? legible(text) + "\n" : json_text(json);
}

std::string with_newline(std::string text) {
    return text.empty() || text.ends_with('\n') ? text : text + "\n";
}

tl::unexpected<Error> unknown(std::string_view section) {
    return fail(Error(ErrorKind::kUsage, fmt::format("a run has no part \"{}\"", section))
                    .advise(fmt::format("its parts: {}", fmt::join(kSections, ", "))));
}

Json artefact_list(const RunData& data) {
    Json list = Json::array();
    for (const record::ArtefactRow& row : data.artefacts) {
        list.push_back({{"name", row.name}, {"media_type", row.media_type}, {"size_bytes", row.content.size()}});
    }
    return list;
}

Json section_header(const RunData& data, std::string_view schema) {
    return {{"schema", schema}, {"version", 1}, {"run_id", data.run.run_id}};
}

// A part that the run report has too, under that name.
Json content_of(const RunData& data, std::string_view section) {
    Json report = Json::parse(run_json(data));
    if (section == "summary") {
        return {{"verdict", report["verdict"]},
                {"reason", report["reason"]},
                {"run", report["run"]},
                {"phases", report["phases"]},
                {"artefacts", artefact_list(data)}};
    }
    if (section == "environment") {
        return report["run"]["environment"];
    }
    return report[section == "verdict" ? "verdicts" : section == "faults" ? "injections" : std::string(section)];
}

} // namespace

Result<std::string> section_text(const RunData& data, std::string_view section) {
    if (section == "faults") {
        return faults_text(data).substr(1); // without the empty line before it
    }
    return section == "summary"       ? summary_text(data)
           : section == "verdict"     ? verdict_text(data)
           : section == "iterations"  ? iterations_text(data)
           : section == "events"      ? events_text(data)
           : section == "bounds"      ? bounds_text(data)
           : section == "plan"        ? indented(data.run.plan_json)
           : section == "scenario"    ? with_newline(legible(data.run.scenario_text))
           : section == "environment" ? indented(data.run.environment_json)
                                      : Result<std::string>(unknown(section));
}

Result<std::string> section_json(const RunData& data, std::string_view section) {
    if (std::ranges::find(kSections, section) == kSections.end()) {
        return unknown(section);
    }
    Json json = section_header(data, "railbreak-run-section");
    json["section"] = section;
    if (section == "scenario") {
        json["content"] = data.run.scenario_text;
    } else if (section == "plan") {
        const Json plan = Json::parse(data.run.plan_json, nullptr, false);
        json["content"] = plan.is_discarded() ? Json(data.run.plan_json) : plan;
    } else {
        json["content"] = content_of(data, section);
    }
    return json_text(json);
}

Result<const record::ArtefactRow*> find_artefact(const RunData& data, std::string_view name) {
    const auto found = std::ranges::find(data.artefacts, name, &record::ArtefactRow::name);
    if (found != data.artefacts.end()) {
        return &*found;
    }
    std::vector<std::string_view> names;
    for (const record::ArtefactRow& row : data.artefacts) {
        names.emplace_back(row.name);
    }
    return fail(
        Error(ErrorKind::kInput, fmt::format("run {} has no artefact \"{}\"", data.run.run_id, name))
            .advise(names.empty() ? "it has none at all" : fmt::format("its artefacts: {}", fmt::join(names, ", "))));
}

std::string artefact_json(const RunData& data, const record::ArtefactRow& artefact) {
    Json json = section_header(data, "railbreak-run-artefact");
    json["name"] = artefact.name;
    json["media_type"] = artefact.media_type;
    json["content"] = artefact.content;
    return json_text(json);
}

std::string for_terminal(std::string_view text) {
    return legible(text);
}

} // namespace railbreak::reports
