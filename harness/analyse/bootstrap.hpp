// How far a ratio of medians would scatter if all runs were made again.
#pragma once

#include <cstdint>
#include <span>

#include "harness/analyse/comparison.hpp"

namespace railbreak::analyse {

/// The scatter of the logarithm of a ratio.
struct LogScatter {
    double standard_error = 0;
    Interval interval; ///< for the logarithm
};

/// Draws runs from the runs with replacement, `resamples` times, and looks how the logarithm of the ratio of the sets'
/// medians, b over a, scatters. A run is one value here, the median of its iterations, and is drawn whole: drawing its
/// iterations anew as well would count their scatter twice, because it is in the runs' medians already (Davison and
/// Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). With few runs the plain percentiles are too
/// narrow; they are moved outwards to what Student's t asks for (expanded percentile interval: Hesterberg, What
/// teachers should know about the bootstrap, Amer. Statist. 69, 2015). All values must be above 0, and both sets must
/// have at least 2.
[[nodiscard]] LogScatter bootstrap_log_ratio(std::span<const double> a, std::span<const double> b, double confidence,
                                             std::int32_t resamples, std::uint64_t seed);

} // namespace railbreak::analyse
