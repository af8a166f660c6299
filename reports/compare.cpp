#include "reports/compare.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using analyse::Difference;
using analyse::PhaseComparison;
using analyse::SetComparison;
using record::PhaseStatistics;
using record::RunData;
using Json = nlohmann::ordered_json;
using Runs = std::span<const RunData>;

namespace {

/// What one set has for an algorithm and phase.
struct Side {
    bool present = false;
    std::optional<double> time_ns;  ///< median of the runs' medians
    std::optional<double> overhead; ///< median of the runs' overheads over the fluid bound
    std::vector<std::string> schedules;
};

/// An algorithm's phase in both sets.
struct Pair {
    std::string algorithm;
    std::string phase;
    std::array<Side, 2> sides;
    const analyse::Comparison* comparison = nullptr; ///< of the measure; null when no run has it

    [[nodiscard]] std::optional<double> time_ratio() const { return ratio(sides[0].time_ns, sides[1].time_ns); }
    [[nodiscard]] std::optional<double> overhead_ratio() const { return ratio(sides[0].overhead, sides[1].overhead); }

private:
    static std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
        return a && b && *a > 0 ? std::optional(*b / *a) : std::nullopt;
    }
};

Side side_of(Runs runs, const std::string& algorithm, const std::string& phase) {
    Side side;
    std::vector<double> times;
    std::vector<double> overheads;
    for (const RunData& run : runs) {
        const std::vector<PhaseStatistics> statistics = record::phase_statistics(run);
        const PhaseStatistics* entry = record::find(statistics, algorithm, phase);
        if (entry == nullptr) {
            continue;
        }
        side.present = true;
        if (entry->time_median_ns) {
            times.push_back(*entry->time_median_ns);
        }
        if (entry->overhead_fluid) {
            overheads.push_back(*entry->overhead_fluid);
        }
        for (std::string& schedule : schedules_of(run, algorithm, phase)) {
            if (std::ranges::find(side.schedules, schedule) == side.schedules.end()) {
                side.schedules.push_back(std::move(schedule));
            }
        }
    }
    side.time_ns = record::median(std::move(times));
    side.overhead = record::median(std::move(overheads));
    return side;
}

const analyse::Comparison* comparison_of(const SetComparison& sets, const Pair& pair) {
    const auto found = std::ranges::find_if(sets.phases, [&](const PhaseComparison& phase) {
        return phase.algorithm == pair.algorithm && phase.phase == pair.phase;
    });
    return found != sets.phases.end() ? &found->comparison : nullptr;
}

/// In the order of the first run, then what only later ones have.
std::vector<Pair> pair_up(Runs a, Runs b, const SetComparison& sets) {
    std::vector<Pair> pairs;
    for (const Runs runs : {a, b}) {
        for (const RunData& run : runs) {
            for (const PhaseStatistics& one : record::phase_statistics(run)) {
                const bool known = std::ranges::any_of(pairs, [&](const Pair& pair) {
                    return pair.algorithm == one.algorithm && pair.phase == one.phase;
                });
                if (!known && one.phase != "warmup" && one.phase != "comparison") {
                    pairs.push_back({one.algorithm, one.phase, {}});
                }
            }
        }
    }
    for (Pair& pair : pairs) {
        pair.sides = {side_of(a, pair.algorithm, pair.phase), side_of(b, pair.algorithm, pair.phase)};
        pair.comparison = comparison_of(sets, pair);
    }
    return pairs;
}

std::string figure(const std::optional<double>& value, double scale = 1) {
    return value ? fmt::format("{:.3f}", *value * scale) : "-";
}

/// One line for each run of a set.
std::string title(const char* letter, Runs runs) {
    std::string text;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const RunData& run = runs[i];
        const record::VerdictRow* verdict = find_verdict(run, "run");
        const bool passed = verdict != nullptr && verdict->verdict == "pass";
        text += wrapped(
            fmt::format("{} {}  {} on {}{}", i == 0 ? fmt::format("{}:", letter) : "  ", printable(run.run.run_id),
                        printable(run.run.scenario_name), printable(analyse::place_of(run.run)),
                        passed ? ""
                               : fmt::format(" ({})", verdict != nullptr ? printable(verdict->verdict) : "unfinished")),
            3);
    }
    return text;
}

/// Whether there is an interval to show: not with one run on each side.
bool has_statistics(const SetComparison& sets) {
    return std::ranges::any_of(sets.phases,
                               [](const PhaseComparison& phase) { return phase.comparison.interval.has_value(); });
}

std::string p_value(const analyse::Comparison* comparison) {
    if (comparison == nullptr || !comparison->interval || comparison->method == analyse::Method::kExact) {
        return "-";
    }
    return comparison->adjusted_p_value < 0.001 ? "<0.001" : fmt::format("{:.3f}", comparison->adjusted_p_value);
}

/// The figures of a phase that both sets have.
std::vector<std::string> row_of(const Pair& pair, const SetComparison& sets, bool with_statistics) {
    const bool times = sets.options.measure == analyse::Measure::kTime;
    const analyse::Comparison none;
    const analyse::Comparison& comparison = pair.comparison != nullptr ? *pair.comparison : none;
    const double scale = times ? 1e-6 : 1;
    std::vector<std::string> row{printable(pair.algorithm), printable(pair.phase), figure(comparison.typical_a, scale),
                                 figure(comparison.typical_b, scale), figure(comparison.ratio)};
    if (with_statistics) {
        const auto& interval = comparison.interval;
        row.push_back(interval ? fmt::format("{:.3f}..{:.3f}", interval->low, interval->high) : "-");
        row.push_back(p_value(pair.comparison));
    }
    for (const std::optional<double>& value : {pair.sides[0].overhead, pair.sides[1].overhead, pair.overhead_ratio()}) {
        row.push_back(figure(value));
    }
    if (with_statistics) {
        row.emplace_back(to_string(comparison.difference));
    }
    return row;
}

std::string notes_on(const Pair& pair) {
    const Side& first = pair.sides[0];
    const Side& second = pair.sides[1];
    const std::string name = printable(fmt::format("{} {}", pair.algorithm, pair.phase));
    if (!first.present || !second.present) {
        return wrapped(fmt::format("only {} has {}", first.present ? "A" : "B", name), 4);
    }
    if (first.schedules == second.schedules) {
        return "";
    }
    return wrapped(fmt::format("{}: A ran {}, B ran {}", name,
                               printable(fmt::format("{}", fmt::join(first.schedules, ", "))),
                               printable(fmt::format("{}", fmt::join(second.schedules, ", ")))),
                   4);
}

std::string runs_text(std::size_t count) {
    return fmt::format("{} run{}", count, count == 1 ? "" : "s");
}

std::string what_is_compared(std::size_t a, std::size_t b, const SetComparison& sets, const SetNames& names) {
    return names.a.empty() && names.b.empty()
               ? ""
               : wrapped(fmt::format("{} of A, {} ({}), and B, {} ({})", to_string(sets.options.measure),
                                     printable(names.a), runs_text(a), printable(names.b), runs_text(b)),
                         2);
}

std::string head_of(Runs a, Runs b, const SetComparison& sets) {
    std::string out = title("A", a) + title("B", b);
    const bool same_plan = a.front().run.plan_hash == b.front().run.plan_hash;
    out += same_plan ? "the plans are the same\n" : "THE PLANS DIFFER: the scenarios or seeds are not the same\n";
    for (const std::string& reason : sets.unlike) {
        out += wrapped("not like with like: " + printable(reason), 4);
    }
    if (!sets.shared.empty()) {
        out += wrapped(fmt::format("IN BOTH SETS, which makes them look more alike than they are: {}",
                                   printable(fmt::format("{}", fmt::join(sets.shared, ", ")))),
                       4);
    }
    return out;
}

Json json_of(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Side& side) {
    return {{"time_median_ns", json_of(side.time_ns)},
            {"overhead_fluid", json_of(side.overhead)},
            {"schedules", side.schedules}};
}

Json json_of(Runs runs) {
    const record::RunRow& first = runs.front().run;
    Json all = Json::array();
    for (const RunData& run : runs) {
        const record::VerdictRow* verdict = find_verdict(run, "run");
        all.push_back({{"run_id", run.run.run_id},
                       {"verdict", verdict != nullptr ? Json(verdict->verdict) : Json(nullptr)},
                       {"railbreak_version", run.run.version}});
    }
    return {{"run_id", runs.size() == 1 ? Json(first.run_id) : Json(nullptr)},
            {"scenario", first.scenario_name},
            {"backend", first.backend},
            {"cluster", first.cluster},
            {"plan_hash", first.plan_hash},
            {"runs", std::move(all)}};
}

Json json_of(const analyse::Comparison& comparison) {
    const auto& interval = comparison.interval;
    return {{"difference", to_string(comparison.difference)},
            {"method", to_string(comparison.method)},
            {"a_runs", comparison.runs_a},
            {"b_runs", comparison.runs_b},
            {"a_typical", json_of(comparison.typical_a)},
            {"b_typical", json_of(comparison.typical_b)},
            {"ratio", json_of(comparison.ratio)},
            {"ratio_low", interval ? Json(interval->low) : Json(nullptr)},
            {"ratio_high", interval ? Json(interval->high) : Json(nullptr)},
            {"p_value", comparison.p_value},
            {"adjusted_p_value", comparison.adjusted_p_value},
            {"visible_change", json_of(comparison.visible)},
            {"sentence", in_words(comparison)}};
}

/// A comparison without what it is of.
std::string body_of(Runs a, Runs b, const SetComparison& sets) {
    const bool with_statistics = has_statistics(sets);
    const bool times = sets.options.measure == analyse::Measure::kTime;
    const char* unit = times ? "/ms" : "";
    std::vector<std::string> header{"algorithm", "phase", fmt::format("A{}", unit), fmt::format("B{}", unit), "B/A"};
    if (with_statistics) {
        header.push_back(fmt::format("{:g} % confidence", sets.options.confidence * 100));
        header.emplace_back("p");
    }
    header.insert(header.end(), {"A over bound", "B over bound", "B/A"});
    if (with_statistics) {
        header.emplace_back("verdict");
    }
    std::vector<std::vector<std::string>> rows{header};
    std::string sentences;
    std::string notes;
    for (const Pair& pair : pair_up(a, b, sets)) {
        notes += notes_on(pair);
        if (!pair.sides[0].present || !pair.sides[1].present) {
            continue;
        }
        rows.push_back(row_of(pair, sets, with_statistics));
        if (with_statistics && pair.comparison != nullptr) {
            sentences += wrapped(
                fmt::format("{} {}: {}", printable(pair.algorithm), printable(pair.phase), in_words(*pair.comparison)),
                4);
        }
    }
    std::string out = head_of(a, b, sets);
    out += fmt::format("\n{}, and over the fluid lower bound of each run's own bandwidths\n",
                       times ? "Median times" : fmt::format("Median {}", to_string(sets.options.measure)));
    out += aligned(rows, with_statistics ? "llrrrrrrrrl" : "llrrrrrr", "  ");
    if (with_statistics) {
        out += "\n" + sentences + "\n" + wrapped(printable(sets.sentence), 4);
    } else if (!sets.phases.empty()) {
        out += "\n" + wrapped("One run on each side does not show how far runs differ by themselves: whether a "
                              "difference is more than chance is told when several are compared (A1,A2,A3 B1,B2,B3).",
                              0);
    }
    return notes.empty() ? out : out + "\n" + notes;
}

Json document_of(Runs a, Runs b, const SetComparison& sets) {
    Json json{{"schema", "railbreak-compare-report"},
              {"version", 1},
              {"a", json_of(a)},
              {"b", json_of(b)},
              {"measure", to_string(sets.options.measure)},
              {"measure_unit", sets.options.measure == analyse::Measure::kTime ? "ns" : "1"},
              {"confidence", sets.options.confidence},
              {"tolerance", sets.options.tolerance},
              {"not_comparable", sets.unlike},
              {"shared_runs", sets.shared},
              {"sentence", sets.sentence}};
    json["phases"] = Json::array();
    for (const Pair& pair : pair_up(a, b, sets)) {
        json["phases"].push_back(
            {{"algorithm", pair.algorithm},
             {"phase", pair.phase},
             {"a", json_of(pair.sides[0])},
             {"b", json_of(pair.sides[1])},
             {"time_ratio", json_of(pair.time_ratio())},
             {"overhead_ratio", json_of(pair.overhead_ratio())},
             {"statistics", pair.comparison != nullptr ? json_of(*pair.comparison) : Json(nullptr)}});
    }
    return json;
}

} // namespace

std::string compare_table(Runs a, Runs b, const SetComparison& sets, const SetNames& names) {
    return what_is_compared(a.size(), b.size(), sets, names) + body_of(a, b, sets);
}

std::string compare_json(Runs a, Runs b, const SetComparison& sets) {
    return json_text(document_of(a, b, sets));
}

std::string compare_scenarios_table(const analyse::Matching& matching, std::span<const SetComparison> compared,
                                    const SetNames& names) {
    std::string out;
    for (std::size_t i = 0; i < compared.size(); ++i) {
        const analyse::MatchedRuns& runs = matching.scenarios[i];
        const record::RunRow& first = runs.a.front().run;
        out += wrapped(fmt::format("{}[{} of {}] {} {} on {}", i == 0 ? "" : "\n\n", i + 1, compared.size(),
                                   printable(first.scenario_name), printable(first.plan_hash.substr(0, 12)),
                                   printable(analyse::place_of(first))),
                       2);
        out += compare_table(runs.a, runs.b, compared[i], names);
    }
    out += matching.only_a.empty() && matching.only_b.empty() ? "" : "\n";
    for (const auto& [letter, names_of_only] : {std::pair("A", &matching.only_a), std::pair("B", &matching.only_b)}) {
        for (const std::string& name : *names_of_only) {
            out += wrapped(fmt::format("only {} has {}", letter, printable(name)), 4);
        }
    }
    return out;
}

std::string compare_scenarios_json(const analyse::Matching& matching, std::span<const SetComparison> compared,
                                   std::string_view baseline) {
    Json scenarios = Json::array();
    for (std::size_t i = 0; i < compared.size(); ++i) {
        scenarios.push_back(document_of(matching.scenarios[i].a, matching.scenarios[i].b, compared[i]));
    }
    return json_text(Json{{"schema", "railbreak-compare-scenarios"},
                          {"version", 1},
                          {"baseline", baseline},
                          {"scenarios", std::move(scenarios)},
                          {"only_a", matching.only_a},
                          {"only_b", matching.only_b}});
}

} // namespace railbreak::reports
