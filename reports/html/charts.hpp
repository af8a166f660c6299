// The charts of a run's page. Each is a pure function of the run.
#pragma once

#include <vector>

#include "reports/html/chart.hpp"
#include "reports/html/view.hpp"

namespace railbreak::reports::html {

/// Iterations over time: how long each took, what was broken meanwhile, what was best possible, and when all was well
/// again.
[[nodiscard]] Figure timeline(const View& view, const AlgorithmView& algorithm);

/// Times, bandwidths and ratios of every algorithm and phase.
[[nodiscard]] Element phase_table(const View& view);

/// Median times beside the lower bounds, by phase and algorithm.
[[nodiscard]] Figure overhead(const View& view);

/// How far the iterations of each algorithm and phase lie from their median.
[[nodiscard]] Figure distribution(const View& view);

/// Who carried the bytes: ranks by what they sent and received in an iteration, NICs by what their counters say. Empty
/// where neither was recorded.
[[nodiscard]] std::vector<Element> traffic(const View& view);

/// The schedules that ran, as pictures that were stored with the run. They come from the database, so they are embedded
/// as images, in which nothing runs and nothing is fetched.
[[nodiscard]] std::vector<Element> schedules(const View& view);

} // namespace railbreak::reports::html
