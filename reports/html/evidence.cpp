// The evidence of a run's page: faults step by step, checks, bounds, events.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/facts.hpp"
#include "reports/html/chart.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/sections.hpp"
#include "reports/html/table.hpp"

namespace railbreak::reports::html {

using record::InjectionRow;
using record::VerdictRow;

namespace {

constexpr std::size_t kMostEvents = 1000;

struct Step {
    std::string_view name;
    std::string_view meaning;
    std::int64_t at;
};

std::array<Step, 5> steps_of(const InjectionRow& row) {
    return {{{"ordered", "the controller asked for it", row.ordered_at},
             {"applied", "the last kernel call returned", row.applied_at},
             {"observed", "seen in read-back, carrier or goodput", row.observed_at},
             {"reverted", "taken off", row.reverted_at},
             {"restored", "former state verified", row.restored_at}}};
}

std::string place_of(const View& view, const InjectionRow& row) {
    const std::string host = host_name(view.data, row.host);
    return row.rank >= 0  ? fmt::format("rank {} of {}", row.rank, host)
           : row.nic >= 0 ? fmt::format("{} {}", host, nic_name(view.data, row.host, row.nic))
                          : host;
}

/// JSON of the database as readable text; as it is where it does not parse, empty where it says nothing.
std::string readable(const std::string& json) {
    const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
    if (parsed.is_discarded()) {
        return json;
    }
    return parsed.empty() ? "" : parsed.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string joined_sentences(const std::string& json) {
    std::string text;
    const auto parsed = nlohmann::json::parse(json, nullptr, false);
    for (const auto& sentence : parsed.is_array() ? parsed : nlohmann::json::array()) {
        text += (text.empty() ? "" : "; ") + (sentence.is_string() ? sentence.get<std::string>() : sentence.dump());
    }
    return text;
}

/// The five moments of a fault on a line: what happened is a filled mark, what did not an empty one.
Element steps_list(const View& view, const InjectionRow& row) {
    Element list("ol", {{"class", "steps"}});
    for (const Step& step : steps_of(row)) {
        const bool happened = step.at > 0;
        const std::string when = !happened ? "never"
                                 : step.name == "ordered"
                                     ? "at " + duration(static_cast<double>(step.at - view.origin))
                                     : "+" + duration(static_cast<double>(step.at - row.ordered_at));
        Element time("span", {{"class", "when"}});
        if (happened) {
            time.set("title", exact_duration(step.at - view.origin) + " after the run began");
        }
        list.add(element("li", {{"class", happened ? "done" : "missing"}}, element("b", {}, step.name),
                         std::move(time.add(when)), element("span", {{"class", "meaning"}}, step.meaning)));
    }
    return list;
}

void add_entry(std::vector<std::pair<std::string, Element>>& entries, std::string_view term, std::string_view text) {
    if (!text.empty()) {
        entries.emplace_back(term, Element::text(text));
    }
}

Element fault_card(const View& view, const InjectionRow& row) {
    const VerdictRow* verdict = find_verdict(view.data, "fault", subject_of(row));
    Element card("div", {{"class", "card faultcard"}});
    card.add(element("h3", {}, row.name, element("span", {{"class", "under"}}, " under ", row.algorithm), " ",
                     badge(verdict != nullptr ? verdict->verdict : "")));
    std::vector<std::pair<std::string, Element>> entries;
    add_entry(entries, "what", row.kind);
    add_entry(entries, "where", place_of(view, row));
    add_entry(entries, "direction", row.direction);
    if (row.wanted_rate_bits_per_s > 0) {
        add_entry(entries, "wanted", rate(row.wanted_rate_bits_per_s));
    }
    const auto nic = std::find_if(view.data.nics.begin(), view.data.nics.end(),
                                  [&](const auto& other) { return other.host == row.host && other.nic == row.nic; });
    const bool known = nic != view.data.nics.end();
    if (row.measured_send_bits_per_s > 0 || row.measured_receive_bits_per_s > 0) {
        add_entry(entries, "payload sent",
                  fmt::format("{} \u2192 {}", rate(known ? nic->send_goodput_bits_per_s : 0),
                              rate(row.measured_send_bits_per_s)));
        add_entry(entries, "payload received",
                  fmt::format("{} \u2192 {}", rate(known ? nic->receive_goodput_bits_per_s : 0),
                              rate(row.measured_receive_bits_per_s)));
    }
    add_entry(entries, "by", row.mechanism);
    add_entry(entries, "realism", row.realism);
    add_entry(entries, "data path", row.data_path);
    add_entry(entries, "parameters", row.params_json == "{}" ? "" : row.params_json);
    add_entry(entries, "collateral", joined_sentences(row.collateral_json));
    add_entry(entries, "error", row.error);
    if (verdict != nullptr) {
        add_entry(entries, "verdict", verdict->reason);
    }
    card.add(steps_list(view, row)).add(definition_list(entries));
    if (const std::string observation = readable(row.observation_json); !observation.empty()) {
        card.add(
            details("What was read back", code_block(fmt::format("Read back of {}", subject_of(row)), observation)));
    }
    return card;
}

Element fault_table(const View& view) {
    Table table("Evidence times of every fault (s after the run began)", {{"fault"},
                                                                          {"algorithm"},
                                                                          {"kind"},
                                                                          {"where"},
                                                                          {"ordered", true},
                                                                          {"applied", true},
                                                                          {"observed", true},
                                                                          {"reverted", true},
                                                                          {"restored", true},
                                                                          {"error"}});
    for (const InjectionRow& row : view.data.injections) {
        std::vector<Cell> cells{row.name, row.algorithm, row.kind, place_of(view, row)};
        for (const Step& step : steps_of(row)) {
            const std::int64_t after = step.at - view.origin;
            cells.push_back(step.at > 0 ? Cell(figure(static_cast<double>(after), 1e9, 6), exact_duration(after),
                                               static_cast<double>(after))
                                        : Cell("never"));
        }
        cells.emplace_back(row.error);
        table.add(std::move(cells));
    }
    return table.folded("Data: evidence times of every fault");
}

Cell number_cell(const std::optional<double>& value) {
    return value ? Cell(fmt::format("{:.6g}", *value), fmt::format("{}", *value), *value) : Cell(kNone);
}

/// A figure of a verdict. Those of faults are rates.
Cell figure_cell(const VerdictRow& row, const std::optional<double>& value) {
    if (row.scope == "fault" && value && *value >= 1 && *value < 1e15) {
        const auto bits = static_cast<std::int64_t>(*value);
        return {rate(bits), grouped(bits) + " bit/s", *value};
    }
    return number_cell(value);
}

/// What was measured within what is allowed, on a line.
Element gauge(const VerdictRow& row) {
    Element svg("svg", {{"class", "gauge"}, {"viewBox", "0 0 160 18"}, {"aria-hidden", "true"}});
    if (!row.measured || (!row.limit_min && !row.limit_max)) {
        return svg;
    }
    double low =
        std::min({*row.measured, row.limit_min.value_or(*row.measured), row.limit_max.value_or(*row.measured)});
    double high =
        std::max({*row.measured, row.limit_min.value_or(*row.measured), row.limit_max.value_or(*row.measured)});
    const double gap = std::max((high - low) * 0.35, std::abs(high) * 1e-6 + 1e-12);
    const Scale x{low - gap, high + gap, 2, 158};
    const double from = row.limit_min ? x(*row.limit_min) : 2;
    const double to = row.limit_max ? x(*row.limit_max) : 158;
    svg.add(Element("line", {{"class", "track"}, {"x1", "2"}, {"x2", "158"}, {"y1", "9"}, {"y2", "9"}}));
    svg.add(Element("rect", {{"class", "allowed"},
                             {"x", plain(from)},
                             {"y", "5"},
                             {"width", plain(std::max(to - from, 1.0))},
                             {"height", "8"}}));
    svg.add(Element("path", {{"class", row.verdict == "pass" ? "m ok" : "m bad"},
                             {"d", std::string(mark_path(row.verdict == "pass" ? 3 : kFailedShape))},
                             {"transform", fmt::format("translate({},9)", plain(x(*row.measured)))}}));
    return svg;
}

} // namespace

Element fault_section(const View& view) {
    if (view.data.injections.empty()) {
        return element("p", {}, "No fault was applied in this run.");
    }
    constexpr std::size_t kMostCards = 24;
    Element list("div", {{"class", "cards two"}});
    for (std::size_t i = 0; i < std::min(view.data.injections.size(), kMostCards); ++i) {
        list.add(fault_card(view, view.data.injections[i]));
    }
    Element section;
    section.add(std::move(list));
    if (view.data.injections.size() > kMostCards) {
        section.add(element(
            "p", {{"class", "how"}},
            fmt::format("The first {} of {} are shown; the table has all.", kMostCards, view.data.injections.size())));
    }
    return std::move(section.add(fault_table(view)));
}

Element expectation_table(const View& view) {
    Table table("What the scenario expects", {{"expectation"},
                                              {"verdict"},
                                              {"measured", true},
                                              {"at least", true},
                                              {"at most", true},
                                              {"on a line"},
                                              {"reason"}});
    for (const VerdictRow& row : view.data.verdicts) {
        if (row.scope == "expectation") {
            table.add({row.subject, badge(row.verdict), figure_cell(row, row.measured), figure_cell(row, row.limit_min),
                       figure_cell(row, row.limit_max), gauge(row), row.reason});
        }
    }
    return table.empty() ? element("p", {}, "The scenario expects nothing in numbers.") : table.element();
}

Element verdict_table(const View& view) {
    Table table(
        "Every check of this run",
        {{"scope"}, {"subject"}, {"verdict"}, {"measured", true}, {"at least", true}, {"at most", true}, {"reason"}});
    for (const VerdictRow& row : view.data.verdicts) {
        table.add({row.scope, row.subject, badge(row.verdict), figure_cell(row, row.measured),
                   figure_cell(row, row.limit_min), figure_cell(row, row.limit_max), row.reason});
    }
    return table.empty() ? element("p", {}, "Nothing was judged: the run has not ended.") : table.element();
}

Element bound_table(const View& view) {
    Table table("Lower bounds at the measured bandwidths", {{"algorithm"},
                                                            {"phase"},
                                                            {"ports"},
                                                            {"bound"},
                                                            {"what binds"},
                                                            {"slowdown", true},
                                                            {"T/n", true},
                                                            {"time (ms)", true}});
    for (const record::BoundRow& row : view.data.bounds) {
        table.add({row.algorithm, row.phase, row.model, row.name, row.branch, number_cell(row.slowdown),
                   number_cell(row.time_over_n),
                   Cell(figure(static_cast<double>(row.time_ns), 1e6, 3), exact_duration(row.time_ns),
                        static_cast<double>(row.time_ns))});
    }
    return table.empty() ? Element() : table.folded("Data: lower bounds by name");
}

Element comparison_table(const View& view) {
    Table table("Forms of an algorithm that were tried on the damage",
                {{"schedule"}, {"algorithm"}, {"median (ms)", true}, {"over the fastest", true}, {"kept"}});
    for (const Comparison& comparison : compare_forms(view.data)) {
        for (const Form& form : comparison.forms) {
            table.add({form.schedule, comparison.algorithm,
                       Cell(figure(form.time_median_ns, 1e6, 3), exact_duration(std::llround(form.time_median_ns)),
                            form.time_median_ns),
                       Cell(times(form.over_fastest), fmt::format("{}", form.over_fastest), form.over_fastest),
                       form.schedule == comparison.kept ? "kept" : ""});
        }
    }
    return table.empty() ? Element() : table.element();
}

Element event_table(const View& view) {
    Table table("Events", {{"after (s)", true}, {"level"}, {"from"}, {"kind"}, {"what"}});
    std::vector<const record::EventRow*> shown;
    for (const record::EventRow& row : view.data.events) {
        if (shown.size() < kMostEvents || row.level == "error" || row.level == "warning") {
            shown.push_back(&row);
        }
    }
    for (const record::EventRow* row : shown) {
        const std::int64_t after = row->at - view.origin;
        Cell level(row->level);
        level.css = row->level == "error" ? "bad" : "";
        table.add({Cell(figure(static_cast<double>(after), 1e9, 3), exact_duration(after), static_cast<double>(after)),
                   level, row->source, row->kind, row->text});
    }
    const std::string note = shown.size() < view.data.events.size()
                                 ? fmt::format(" (the first {}, then warnings and errors only)", kMostEvents)
                                 : "";
    return table.empty()
               ? element("p", {}, "No event was recorded.")
               : table.folded(fmt::format("{}{}", counted(static_cast<std::int64_t>(shown.size()), "event"), note));
}

} // namespace railbreak::reports::html
