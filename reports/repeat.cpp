#include "reports/repeat.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "harness/record/statistics.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using Json = nlohmann::ordered_json;

namespace {

/// Smallest, middle and largest of one figure over the runs that have it.
struct Range {
    double min = 0;
    double median = 0;
    double max = 0;
};

std::optional<Range> range_of(std::vector<double> values) {
    if (values.empty()) {
        return std::nullopt;
    }
    const auto [min, max] = std::minmax_element(values.begin(), values.end());
    return Range{*min, record::median(values).value_or(0), *max};
}

/// The figures of one algorithm and phase, run by run.
struct PhaseOverRuns {
    std::string algorithm;
    std::string phase;
    std::vector<double> times_ms;
    std::vector<double> vs_healthy;
    std::vector<double> overheads;
};

std::vector<PhaseOverRuns> gather(const std::vector<RunData>& runs) {
    std::vector<PhaseOverRuns> all;
    for (const RunData& run : runs) {
        for (const PhaseStatistics& one : record::phase_statistics(run)) {
            if (one.phase == "warmup" || one.phase == "comparison" || !one.time_median_ns) {
                continue;
            }
            auto found = std::find_if(all.begin(), all.end(), [&](const PhaseOverRuns& entry) {
                return entry.algorithm == one.algorithm && entry.phase == one.phase;
            });
            if (found == all.end()) {
                all.push_back({one.algorithm, one.phase, {}, {}, {}});
                found = all.end() - 1;
            }
            found->times_ms.push_back(*one.time_median_ns / 1e6);
            if (one.vs_healthy) {
                found->vs_healthy.push_back(*one.vs_healthy);
            }
            if (one.overhead_exclusive) {
                found->overheads.push_back(*one.overhead_exclusive);
            }
        }
    }
    return all;
}

std::string cell(const std::vector<double>& values) {
    const std::optional<Range> range = range_of(values);
    return range ? fmt::format("{:.3f} / {:.3f} / {:.3f}", range->min, range->median, range->max) : "-";
}

Json json_of(const std::vector<double>& values, double scale) {
    const std::optional<Range> range = range_of(values);
    return range ? Json{{"min", range->min * scale}, {"median", range->median * scale}, {"max", range->max * scale}}
                 : Json(nullptr);
}

std::string_view verdict_of(const RunData& run) {
    const record::VerdictRow* row = find_verdict(run, "run");
    return row != nullptr ? std::string_view(row->verdict) : "none";
}

} // namespace

std::string repeat_table(const std::vector<RunData>& runs) {
    std::string out;
    std::map<std::string, std::size_t, std::less<>> counts;
    for (const RunData& run : runs) {
        const record::VerdictRow* row = find_verdict(run, "run");
        ++counts[std::string(verdict_of(run))];
        out += wrapped(fmt::format("{}  {}: {}", printable(run.run.run_id), verdict_of(run),
                                   row != nullptr ? printable(row->reason) : "the run was not judged"),
                       4);
    }
    std::vector<std::vector<std::string>> rows{
        {"algorithm", "phase", "runs", "time/ms min / median / max", "over healthy", "over exclusive bound"}};
    for (const PhaseOverRuns& phase : gather(runs)) {
        rows.push_back({printable(phase.algorithm), printable(phase.phase), std::to_string(phase.times_ms.size()),
                        cell(phase.times_ms), cell(phase.vs_healthy), cell(phase.overheads)});
    }
    out += "\nMedians of the runs, and how far they lie apart\n" + aligned(rows, "llrrrr", "  ");
    out += fmt::format("\n{} runs:", runs.size());
    for (const auto& [verdict, count] : counts) {
        out += fmt::format(" {} {}", count, verdict);
    }
    return out + "\n";
}

std::string repeat_json(const std::vector<RunData>& runs) {
    Json json{{"schema", "railbreak-repeat-report"}, {"version", 1}};
    json["runs"] = Json::array();
    for (const RunData& run : runs) {
        const record::VerdictRow* row = find_verdict(run, "run");
        json["runs"].push_back(
            {{"run_id", run.run.run_id}, {"verdict", verdict_of(run)}, {"reason", row != nullptr ? row->reason : ""}});
    }
    json["phases"] = Json::array();
    for (const PhaseOverRuns& phase : gather(runs)) {
        json["phases"].push_back({{"algorithm", phase.algorithm},
                                  {"phase", phase.phase},
                                  {"runs", phase.times_ms.size()},
                                  {"time_median_ns", json_of(phase.times_ms, 1e6)},
                                  {"vs_healthy", json_of(phase.vs_healthy, 1)},
                                  {"overhead_exclusive", json_of(phase.overheads, 1)}});
    }
    return json_text(json);
}

} // namespace railbreak::reports
