#include "harness/analyse/bootstrap.hpp"

#include <algorithm>
#include <cmath>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include "base/check.hpp"
#include "scenarios/random.hpp"

namespace railbreak::analyse {

namespace {

/// Median that leaves the values in another order: no copy, no sorting.
double median_in_place(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return values.size() % 2 == 1 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

/// The median of as many values as there are, drawn with replacement. `drawn` is room to work in.
double draw(std::span<const double> values, scenarios::SplitMix64& random, std::vector<double>& drawn) {
    drawn.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
        drawn.push_back(values[random.below(values.size())]);
    }
    return median_in_place(drawn);
}

/// The share of a tail at which the percentiles are read.
double expanded_tail(double tail, std::size_t runs) {
    const auto n = static_cast<double>(runs);
    const boost::math::students_t t(n - 1);
    const double quantile = boost::math::quantile(t, tail) * std::sqrt(n / (n - 1));
    return boost::math::cdf(boost::math::normal(), quantile);
}

/// The value below which that share of the sorted values lies, interpolated.
double percentile(const std::vector<double>& sorted, double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double standard_deviation(const std::vector<double>& values) {
    double mean = 0;
    for (const double value : values) {
        mean += value / static_cast<double>(values.size());
    }
    double squares = 0;
    for (const double value : values) {
        squares += (value - mean) * (value - mean);
    }
    return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

} // namespace

LogScatter bootstrap_log_ratio(std::span<const double> a, std::span<const double> b, double confidence,
                               std::int32_t resamples, std::uint64_t seed) {
    RB_CHECK(a.size() > 1 && b.size() > 1 && resamples > 1, "a bootstrap needs several runs on both sides");
    scenarios::SplitMix64 random(seed);
    std::vector<double> drawn;
    std::vector<double> ratios;
    ratios.reserve(static_cast<std::size_t>(resamples));
    for (std::int32_t i = 0; i < resamples; ++i) {
        const double below = draw(a, random, drawn);
        ratios.push_back(std::log(draw(b, random, drawn) / below));
    }
    const double tail = expanded_tail((1 - confidence) / 2, std::min(a.size(), b.size()));
    LogScatter scatter{standard_deviation(ratios), {}};
    std::ranges::sort(ratios);
    scatter.interval = {percentile(ratios, tail), percentile(ratios, 1 - tail)};
    return scatter;
}

} // namespace railbreak::analyse
