#include "reports/compare.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

/// What one run has for an algorithm and phase.
struct Side {
    bool present = false;
    std::optional<double> time_ns;
    std::optional<double> overhead;
    std::vector<std::string> schedules;
};

/// An algorithm's phase in both runs.
struct Pair {
    std::string algorithm;
    std::string phase;
    std::array<Side, 2> sides;

    [[nodiscard]] std::optional<double> time_ratio() const { return ratio(sides[0].time_ns, sides[1].time_ns); }
    [[nodiscard]] std::optional<double> overhead_ratio() const { return ratio(sides[0].overhead, sides[1].overhead); }

private:
    static std::optional<double> ratio(const std::optional<double>& a, const std::optional<double>& b) {
        return a && b && *a > 0 ? std::optional(*b / *a) : std::nullopt;
    }
};

/// In the order of the first run, then what only the second has.
std::vector<Pair> pair_up(const RunData& a, const RunData& b) {
    std::vector<Pair> pairs;
    for (const std::size_t side : {0U, 1U}) {
        const RunData& run = side == 0 ? a : b;
        for (const PhaseStatistics& one : record::phase_statistics(run)) {
            if (one.phase == "warmup" || one.phase == "comparison") {
                continue;
            }
            Pair* found = nullptr;
            for (Pair& pair : pairs) {
                found = pair.algorithm == one.algorithm && pair.phase == one.phase ? &pair : found;
            }
            if (found == nullptr) {
                found = &pairs.emplace_back(Pair{one.algorithm, one.phase, {}});
            }
            found->sides[side] = {true, one.time_median_ns, one.overhead_fluid,
                                  schedules_of(run, one.algorithm, one.phase)};
        }
    }
    return pairs;
}

std::string figure(const std::optional<double>& value, double scale) {
    return value ? fmt::format("{:.3f}", *value * scale) : "-";
}

std::string title(const char* letter, const RunData& run) {
    return wrapped(fmt::format("{}: {}  {} on {}", letter, printable(run.run.run_id), printable(run.run.scenario_name),
                               printable(run.run.backend)),
                   3);
}

Json json_of(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Side& side) {
    return {{"time_median_ns", json_of(side.time_ns)},
            {"overhead_fluid", json_of(side.overhead)},
            {"schedules", side.schedules}};
}

Json json_of(const RunData& run) {
    return {{"run_id", run.run.run_id},
            {"scenario", run.run.scenario_name},
            {"backend", run.run.backend},
            {"plan_hash", run.run.plan_hash}};
}

} // namespace

std::string compare_table(const RunData& a, const RunData& b) {
    std::string out = title("A", a) + title("B", b);
    out += a.run.plan_hash == b.run.plan_hash ? "the plans are the same\n"
                                              : "THE PLANS DIFFER: the scenarios or seeds are not the same\n";
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "phase", "A/ms", "B/ms", "B/A", "A over bound", "B over bound", "B/A"}};
    std::string notes;
    for (const Pair& pair : pair_up(a, b)) {
        const Side& first = pair.sides[0];
        const Side& second = pair.sides[1];
        if (!first.present || !second.present) {
            notes += wrapped(fmt::format("only {} has {} {}", first.present ? "A" : "B", printable(pair.algorithm),
                                         printable(pair.phase)),
                             4);
            continue;
        }
        rows.push_back({printable(pair.algorithm), printable(pair.phase), figure(first.time_ns, 1e-6),
                        figure(second.time_ns, 1e-6), figure(pair.time_ratio(), 1), figure(first.overhead, 1),
                        figure(second.overhead, 1), figure(pair.overhead_ratio(), 1)});
        if (first.schedules != second.schedules) {
            notes += wrapped(fmt::format("{} {}: A ran {}, B ran {}", printable(pair.algorithm), printable(pair.phase),
                                         printable(fmt::format("{}", fmt::join(first.schedules, ", "))),
                                         printable(fmt::format("{}", fmt::join(second.schedules, ", ")))),
                             4);
        }
    }
    out += "\nMedian times, and over the fluid lower bound of each run's own bandwidths\n" +
           aligned(rows, "llrrrrrr", "  ");
    return notes.empty() ? out : out + "\n" + notes;
}

std::string compare_json(const RunData& a, const RunData& b) {
    Json json{{"schema", "railbreak-compare-report"}, {"version", 1}, {"a", json_of(a)}, {"b", json_of(b)}};
    json["phases"] = Json::array();
    for (const Pair& pair : pair_up(a, b)) {
        json["phases"].push_back({{"algorithm", pair.algorithm},
                                  {"phase", pair.phase},
                                  {"a", json_of(pair.sides[0])},
                                  {"b", json_of(pair.sides[1])},
                                  {"time_ratio", json_of(pair.time_ratio())},
                                  {"overhead_ratio", json_of(pair.overhead_ratio())}});
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace railbreak::reports
