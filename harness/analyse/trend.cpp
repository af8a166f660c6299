#include "harness/analyse/trend.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "harness/analyse/band.hpp"
#include "harness/analyse/change_point.hpp"
#include "harness/analyse/comparison.hpp"
#include "harness/analyse/history.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::analyse {

using record::RunData;

namespace {

/// A distance between runs beyond that many usual ones is a gap.
constexpr double kGap = 2;

/// The runs of the latest one's scenario and place, oldest first.
std::vector<const RunData*> choose(std::span<const RunData> runs, Trend& trend) {
    std::vector<const RunData*> sorted;
    for (const RunData& run : runs) {
        sorted.push_back(&run);
    }
    // In the order of recording: a clock may have been set back meanwhile.
    std::ranges::sort(sorted, {}, [](const RunData* run) { return std::tie(run->run.id, run->run.run_id); });
    if (sorted.empty()) {
        return sorted;
    }
    trend.scenario_name = sorted.back()->run.scenario_name;
    trend.cluster = place_of(sorted.back()->run);
    const auto before = sorted.size();
    std::erase_if(sorted, [&](const RunData* run) {
        return run->run.scenario_name != trend.scenario_name || place_of(run->run) != trend.cluster;
    });
    if (sorted.size() < before) {
        trend.notes.push_back(fmt::format("{} runs of another scenario or cluster than the latest (on {}) are left out",
                                          before - sorted.size(), trend.cluster));
    }
    return sorted;
}

std::vector<TrendRun> describe(const std::vector<const RunData*>& runs) {
    std::vector<TrendRun> result;
    std::vector<double> distances;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const record::RunRow& row = runs[i]->run;
        const auto verdict = std::ranges::find(runs[i]->verdicts, "run", &record::VerdictRow::scope);
        const bool judged = verdict != runs[i]->verdicts.end();
        result.push_back({.run_id = row.run_id,
                          .plan_hash = row.plan_hash,
                          .cluster = place_of(row),
                          .version = row.version,
                          .verdict = judged ? verdict->verdict : "",
                          .reason = judged ? verdict->reason : "",
                          .started_realtime_ns = row.started_realtime_ns,
                          .new_plan = i > 0 && runs[i - 1]->run.plan_hash != row.plan_hash});
        if (i > 0) {
            distances.push_back(static_cast<double>(row.started_realtime_ns - runs[i - 1]->run.started_realtime_ns));
        }
    }
    const double usual = record::median(distances).value_or(0);
    for (std::size_t i = 0; i < distances.size() && usual > 0; ++i) {
        if (distances[i] > kGap * usual) {
            result[i + 1].gap = distances[i] / usual;
        }
    }
    return result;
}

/// The values of all runs, and the series that they make: the latest run's first.
class SeriesMaker {
public:
    SeriesMaker(const std::vector<const RunData*>& runs, const Trend& trend, const TrendOptions& options)
        : trend_(trend), options_(options) {
        for (const RunData* run : runs) {
            values_.push_back(values_of(*run, options.measure));
            statistics_.push_back(record::phase_statistics(*run));
            sound_.push_back(is_sound(*run));
        }
    }

    std::vector<TrendSeries> make() const {
        std::vector<TrendSeries> all;
        for (auto run = values_.rbegin(); run != values_.rend(); ++run) {
            for (const PhaseValues& entry : *run) {
                const bool known = std::ranges::any_of(all, [&](const TrendSeries& series) {
                    return series.algorithm == entry.algorithm && series.phase == entry.phase;
                });
                if (!known) {
                    all.push_back(series_of(entry.algorithm, entry.phase));
                }
            }
        }
        return all;
    }

private:
    TrendSeries series_of(const std::string& algorithm, const std::string& phase) const {
        TrendSeries series{algorithm, phase, {}, {}};
        for (std::size_t i = 0; i < values_.size(); ++i) {
            TrendPoint& point = series.points.emplace_back();
            const std::vector<double> values = find_values(values_[i], algorithm, phase);
            point.value = record::median(values);
            point.iterations = static_cast<std::int32_t>(values.size());
            const record::PhaseStatistics* entry = record::find(statistics_[i], algorithm, phase);
            point.overhead = entry != nullptr ? entry->overhead_fluid : std::nullopt;
            point.counts = point.value && sound_[i];
        }
        for (std::size_t first = 0; first < values_.size();) {
            std::size_t end = first + 1;
            while (end < values_.size() && !trend_.runs[end].new_plan) {
                ++end;
            }
            follow_plan(series, first, end);
            first = end;
        }
        return series;
    }

    /// The runs [first, end) are of one plan: changes of their level, then each against those before it.
    void follow_plan(TrendSeries& series, std::size_t first, std::size_t end) const {
        std::vector<std::size_t> places;
        std::vector<double> values;
        for (std::size_t i = first; i < end; ++i) {
            if (series.points[i].value && trend_.runs[i].verdict != "invalid") {
                places.push_back(i);
                values.push_back(*series.points[i].value);
            }
        }
        std::vector<std::size_t> levels{first};
        const std::vector<Split> splits =
            find_splits(values, 1 - options_.confidence, options_.shuffles, options_.seed);
        for (std::size_t i = 0; i < splits.size(); ++i) {
            const std::size_t from = i > 0 ? splits[i - 1].first : 0;
            const std::size_t at = splits[i].first;
            const std::size_t to = i + 1 < splits.size() ? splits[i + 1].first : values.size();
            series.changes.push_back({places[at], *record::median({&values[from], &values[at]}),
                                      *record::median({&values[at], values.data() + to}), splits[i].p_value});
            levels.push_back(places[at]);
        }
        for (std::size_t i = first; i < end; ++i) {
            compare_with_before(series, levels, i);
        }
    }

    void compare_with_before(TrendSeries& series, const std::vector<std::size_t>& levels, std::size_t at) const {
        const auto level = static_cast<std::size_t>(std::ranges::upper_bound(levels, at) - levels.begin()) - 1;
        std::vector<double> before = counted(series, levels[level], at);
        if (before.size() < static_cast<std::size_t>(options_.min_runs) && level > 0) {
            before = counted(series, levels[level - 1], levels[level]); // until there are enough of the new level
        }
        if (before.size() < static_cast<std::size_t>(options_.min_runs)) {
            return;
        }
        const std::size_t window = std::min(before.size(), static_cast<std::size_t>(options_.window));
        const std::optional<Band> band = prediction_band(std::span(before).last(window), options_.confidence);
        TrendPoint& point = series.points[at];
        if (!band) {
            return;
        }
        point.baseline = band->typical;
        point.band_low = band->low;
        point.band_high = band->high;
        if (point.value) {
            constexpr double kRounding = 1e-9; // where all runs are the same, as in a simulation
            point.change = *point.value / band->typical - 1;
            point.outside = *point.value < band->low * (1 - kRounding) || *point.value > band->high * (1 + kRounding);
        }
    }

    static std::vector<double> counted(const TrendSeries& series, std::size_t first, std::size_t end) {
        std::vector<double> values;
        for (std::size_t i = first; i < end; ++i) {
            if (series.points[i].counts) {
                values.push_back(*series.points[i].value);
            }
        }
        return values;
    }

    const Trend& trend_;
    const TrendOptions& options_;
    std::vector<std::vector<PhaseValues>> values_;
    std::vector<std::vector<record::PhaseStatistics>> statistics_;
    std::vector<bool> sound_;
};

} // namespace

Trend trend_data(std::span<const RunData> runs, const TrendOptions& options) {
    Trend trend;
    trend.measure = options.measure;
    const std::vector<const RunData*> chosen = choose(runs, trend);
    trend.runs = describe(chosen);
    trend.series = SeriesMaker(chosen, trend, options).make();
    return trend;
}

} // namespace railbreak::analyse
