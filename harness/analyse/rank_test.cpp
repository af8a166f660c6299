#include "harness/analyse/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include <boost/math/distributions/normal.hpp>
#include <boost/math/special_functions/binomial.hpp>

namespace railbreak::analyse {

namespace {

/// Twice the mid-ranks of the values of both sets, those of `a` first: whole numbers even where values are tied.
std::vector<std::int64_t> doubled_ranks(std::span<const double> a, std::span<const double> b) {
    std::vector<double> all(a.begin(), a.end());
    all.insert(all.end(), b.begin(), b.end());
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return all[i]; });
    std::vector<std::int64_t> ranks(all.size());
    for (std::size_t first = 0; first < order.size();) {
        std::size_t last = first;
        while (last + 1 < order.size() && all[order[last + 1]] == all[order[first]]) {
            ++last;
        }
        for (std::size_t i = first; i <= last; ++i) {
            ranks[order[i]] = static_cast<std::int64_t>(first + last) + 2; // twice the mean of first+1 .. last+1
        }
        first = last + 1;
    }
    return ranks;
}

/// How many choices of `size` ranks have each sum: counts[sum]. One rank after the other is taken or left.
std::vector<double> count_sums(const std::vector<std::int64_t>& ranks, std::size_t size) {
    const auto total = static_cast<std::size_t>(std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}));
    std::vector<std::vector<double>> ways(size + 1, std::vector<double>(total + 1, 0.0));
    ways[0][0] = 1;
    for (const std::int64_t rank : ranks) {
        const auto step = static_cast<std::size_t>(rank);
        for (std::size_t taken = size; taken > 0; --taken) {
            for (std::size_t sum = total; sum >= step; --sum) {
                ways[taken][sum] += ways[taken - 1][sum - step];
            }
        }
    }
    return std::move(ways[size]);
}

double exact_p_value(const std::vector<std::int64_t>& ranks, std::size_t size, std::int64_t sum) {
    // All is scaled by the number of values, so that the mean of the sum is whole as well.
    const auto values = static_cast<std::int64_t>(ranks.size());
    const std::int64_t mean =
        std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}) * static_cast<std::int64_t>(size);
    const std::int64_t distance = std::abs(sum * values - mean);
    const std::vector<double> counts = count_sums(ranks, size);
    double all = 0;
    double as_far = 0;
    for (std::size_t other = 0; other < counts.size(); ++other) {
        all += counts[other];
        as_far += std::abs(static_cast<std::int64_t>(other) * values - mean) >= distance ? counts[other] : 0;
    }
    return as_far / all;
}

double normal_p_value(const std::vector<std::int64_t>& ranks, double a, double b, double u) {
    const double n = a + b;
    std::vector<std::int64_t> sorted = ranks;
    std::ranges::sort(sorted);
    double ties = 0;
    for (auto first = sorted.begin(); first != sorted.end();) {
        const auto last = std::upper_bound(first, sorted.end(), *first);
        const auto count = static_cast<double>(last - first);
        ties += count * count * count - count;
        first = last;
    }
    const double variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
    const double distance = std::max(std::fabs(u - a * b / 2) - 0.5, 0.0);
    if (variance <= 0) {
        return 1; // all values are equal
    }
    const boost::math::normal standard;
    return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(standard, distance / std::sqrt(variance))));
}

} // namespace

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) {
        return {};
    }
    const std::vector<std::int64_t> ranks = doubled_ranks(a, b);
    const std::int64_t sum_b =
        std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), ranks.end(), std::int64_t{0});
    const auto size_a = static_cast<double>(a.size());
    const auto size_b = static_cast<double>(b.size());
    RankTest test;
    test.u = static_cast<double>(sum_b) / 2 - size_b * (size_b + 1) / 2;
    test.exact = ranks.size() <= kMostExact;
    test.p_value = test.exact ? exact_p_value(ranks, b.size(), sum_b) : normal_p_value(ranks, size_a, size_b, test.u);
    return test;
}

double smallest_p_value(std::size_t a, std::size_t b) {
    if (a == 0 || b == 0) {
        return 1;
    }
    // Beyond that nothing depends on how small it is, and the number of ways may exceed what a double holds.
    constexpr std::size_t kEnough = 30;
    const auto n = static_cast<unsigned>(std::min(a, kEnough));
    const auto m = static_cast<unsigned>(std::min(b, kEnough));
    return std::min(1.0, 2 / boost::math::binomial_coefficient<double>(n + m, n));
}

std::vector<double> holm(std::span<const double> p_values) {
    std::vector<std::size_t> order(p_values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
    std::vector<double> adjusted(p_values.size());
    double least = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        least = std::max(least, p_values[order[i]] * static_cast<double>(order.size() - i));
        adjusted[order[i]] = std::min(least, 1.0);
    }
    return adjusted;
}

} // namespace railbreak::analyse
