#include "reports/trend.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "reports/facts.hpp"
#include "reports/text.hpp"

namespace railbreak::reports {

using analyse::ChangePoint;
using analyse::Trend;
using analyse::TrendPoint;
using analyse::TrendRun;
using analyse::TrendSeries;
using Json = nlohmann::ordered_json;

namespace {

bool is_time(const Trend& trend) {
    return trend.measure == analyse::Measure::kTime;
}

std::string figure(const Trend& trend, const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value * (is_time(trend) ? 1e-6 : 1)) : "-";
}

std::string percent(double share) {
    return fmt::format("{:+.1f} %", std::fabs(share) < 0.0005 ? 0.0 : share * 100); // no "-0.0"
}

/// One character for each run, '_' the lowest and '#' the highest; a space where there is no value, '|' before a
/// change.
std::string spark_line(const TrendSeries& series) {
    constexpr std::string_view kLevels = "_.-=+*#";
    std::optional<double> low;
    std::optional<double> high;
    for (const TrendPoint& point : series.points) {
        if (point.value) {
            low = std::min(low.value_or(*point.value), *point.value);
            high = std::max(high.value_or(*point.value), *point.value);
        }
    }
    std::string line;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
        if (std::ranges::find(series.changes, i, &ChangePoint::first) != series.changes.end()) {
            line += '|';
        }
        const std::optional<double>& value = series.points[i].value;
        if (!value) {
            line += ' ';
            continue;
        }
        // A range below 2 % is shown as if it were 2 %, so that mere noise does not look like mountains.
        const double range = std::max(*high - *low, 0.02 * *low);
        const auto level =
            static_cast<std::size_t>((*value - *low) / range * static_cast<double>(kLevels.size() - 1) + 0.5);
        line += kLevels[std::min(level, kLevels.size() - 1)];
    }
    return line;
}

std::string changes_of(const Trend& trend, const TrendSeries& series) {
    std::string text;
    for (const ChangePoint& change : series.changes) {
        const TrendRun& run = trend.runs[change.first];
        text +=
            "  " + wrapped(fmt::format("since {} ({}) another level: {}, {} before, {} now (p = {:.4f})",
                                       utc(run.started_realtime_ns), printable(run.run_id), percent(change.change()),
                                       figure(trend, change.before), figure(trend, change.after), change.p_value),
                           4);
    }
    return text;
}

std::vector<std::string> row_of(const Trend& trend, const TrendSeries& series, std::size_t at) {
    const TrendRun& run = trend.runs[at];
    const TrendPoint& point = series.points[at];
    const bool change = std::ranges::find(series.changes, at, &ChangePoint::first) != series.changes.end();
    std::string remark = run.gap ? fmt::format("{:.1f} x the usual break", *run.gap) : "";
    const auto add = [&](std::string_view text) { remark += fmt::format("{}{}", remark.empty() ? "" : ", ", text); };
    if (run.new_plan) {
        add("another plan");
    }
    if (change) {
        add("ANOTHER LEVEL");
    } else if (point.outside) {
        add("outside of the band");
    }
    return {utc(run.started_realtime_ns),
            run.verdict.empty() ? "unfinished" : printable(run.verdict),
            figure(trend, point.value),
            point.overhead ? fmt::format("{:.3f}", *point.overhead) : "-",
            figure(trend, point.baseline),
            point.band_low ? fmt::format("{}..{}", figure(trend, point.band_low), figure(trend, point.band_high)) : "-",
            point.change ? percent(*point.change) : "-",
            remark};
}

Json json_of(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json json_of(const TrendRun& run) {
    return {{"run_id", run.run_id},
            {"started_at", to_iso8601(Nanoseconds(run.started_realtime_ns))},
            {"plan_hash", run.plan_hash},
            {"railbreak_version", run.version},
            {"verdict", run.verdict.empty() ? Json(nullptr) : Json(run.verdict)},
            {"reason", run.reason},
            {"gap", json_of(run.gap)},
            {"new_plan", run.new_plan}};
}

Json json_of(const TrendPoint& point) {
    return {{"value", json_of(point.value)},
            {"overhead_fluid", json_of(point.overhead)},
            {"iterations", point.iterations},
            {"baseline", json_of(point.baseline)},
            {"band_low", json_of(point.band_low)},
            {"band_high", json_of(point.band_high)},
            {"change", json_of(point.change)},
            {"outside", point.outside},
            {"counts", point.counts}};
}

} // namespace

std::string trend_table(const Trend& trend) {
    if (trend.runs.empty()) {
        return "no runs\n";
    }
    std::string out = wrapped(fmt::format("{} on {}: {} runs from {} to {}, {} (median of a run's iterations)",
                                          printable(trend.scenario_name), printable(trend.cluster), trend.runs.size(),
                                          utc(trend.runs.front().started_realtime_ns),
                                          utc(trend.runs.back().started_realtime_ns), to_string(trend.measure)),
                              2);
    for (const std::string& note : trend.notes) {
        out += wrapped("note: " + printable(note), 2);
    }
    for (const TrendSeries& series : trend.series) {
        out += fmt::format("\n{} {}  {}\n", printable(series.algorithm), printable(series.phase), spark_line(series));
        out += changes_of(trend, series);
        std::vector<std::vector<std::string>> rows{
            {"started", "verdict", is_time(trend) ? "ms" : "value", "over bound", "baseline", "band", "change", ""}};
        for (std::size_t i = 0; i < series.points.size(); ++i) {
            rows.push_back(row_of(trend, series, i));
        }
        out += aligned(rows, "llrrrrrl", "  ");
    }
    return out;
}

std::string trend_json(const Trend& trend) {
    Json json{{"schema", "railbreak-trend-report"},
              {"version", 1},
              {"scenario", trend.scenario_name},
              {"cluster", trend.cluster},
              {"measure", to_string(trend.measure)},
              {"measure_unit", is_time(trend) ? "ns" : "1"},
              {"notes", trend.notes}};
    json["runs"] = Json::array();
    for (const TrendRun& run : trend.runs) {
        json["runs"].push_back(json_of(run));
    }
    json["series"] = Json::array();
    for (const TrendSeries& series : trend.series) {
        Json points = Json::array();
        for (const TrendPoint& point : series.points) {
            points.push_back(json_of(point));
        }
        Json changes = Json::array();
        for (const ChangePoint& change : series.changes) {
            changes.push_back({{"run_id", trend.runs[change.first].run_id},
                               {"before", change.before},
                               {"after", change.after},
                               {"change", change.change()},
                               {"p_value", change.p_value}});
        }
        json["series"].push_back({{"algorithm", series.algorithm},
                                  {"phase", series.phase},
                                  {"points", std::move(points)},
                                  {"changes", std::move(changes)}});
    }
    return json_text(json);
}

} // namespace railbreak::reports
