// One scenario over many nights: how a measure moves from run to run, and since when it is another.
//
// Every run is held against the runs before it (the running baseline): their typical value, with the band in which one
// more run of the same kind falls 99 times of 100. A run outside of the band may be chance or a bad night. That the
// level itself has moved is told by Pettitt's test (A non-parametric approach to the change-point problem, Appl.
// Statist. 28, 1979) on the medians of all runs, which are split again on both sides while it finds something. From a
// change on, the baseline begins anew. So does it where the plan is another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/analyse/measure.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// One run as a trend needs it.
struct TrendRun {
    std::string run_id;
    std::string plan_hash;
    std::string cluster; ///< RunRow::cluster, or the backend where that is empty
    std::string version; ///< of railbreak
    std::string verdict; ///< "pass", ...; empty when it was never judged
    std::string reason;
    std::int64_t started_realtime_ns = 0;
    /// How many times as long as usual the time since the run before is; empty for the first run, and while it is usual
    /// (up to twice the median distance of all runs).
    std::optional<double> gap;
    bool new_plan = false; ///< another plan hash than the run before: another experiment
};

/// One run in the series of one algorithm and phase.
struct TrendPoint {
    std::optional<double> value;    ///< the measure's median in that run; empty: the run has none, a gap in the line
    std::optional<double> overhead; ///< median time / fluid lower bound of that run, whatever the measure
    std::int32_t iterations = 0;    ///< that the median is of
    /// Running baseline: geometric mean of the last sound runs before (same plan, same level; while these are fewer
    /// than TrendOptions::min_runs, those of the level before). Empty while there are too few.
    std::optional<double> baseline;
    std::optional<double> band_low;
    std::optional<double> band_high;
    std::optional<double> change; ///< value / baseline - 1
    bool outside = false;         ///< the value is outside of the band
    bool counts = false;          ///< the run passed and has a value: it is part of later baselines
};

/// The level of a series is another from one run on.
struct ChangePoint {
    std::size_t first = 0; ///< index of the first run of the new level
    double before = 0;     ///< median of the runs of the level before
    double after = 0;      ///< median of the runs of the new level
    double p_value = 1;    ///< how often chance alone shows as much
    /// after / before - 1.
    [[nodiscard]] double change() const { return after / before - 1; }
};

/// One algorithm's phase over all runs.
struct TrendSeries {
    std::string algorithm;
    std::string phase;
    std::vector<TrendPoint> points;   ///< one for each run of Trend::runs
    std::vector<ChangePoint> changes; ///< oldest first
};

/// What a trend page shows.
struct Trend {
    std::string scenario_name;
    std::string cluster;
    Measure measure = Measure::kTime;
    std::vector<TrendRun> runs;      ///< in the order of recording
    std::vector<TrendSeries> series; ///< in the order of the latest run, then what only earlier ones have
    std::vector<std::string> notes;  ///< what was left out and why, one sentence each
};

/// How a trend is made.
struct TrendOptions {
    Measure measure = Measure::kTime;
    std::int32_t window = 20;     ///< runs that the running baseline is of, at most
    std::int32_t min_runs = 5;    ///< and at least
    double confidence = 0.99;     ///< of the band, and of a change point
    std::int32_t shuffles = 2000; ///< random orders that the change-point test compares with
    std::uint64_t seed = 1;       ///< of these
};

/// The trend of the runs of one scenario, given in any order, shown in that of recording. Runs of another scenario or
/// cluster than the latest are left out, and a note says so.
[[nodiscard]] Trend trend_data(std::span<const record::RunData> runs, const TrendOptions& options = {});

} // namespace railbreak::analyse
