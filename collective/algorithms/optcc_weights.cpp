#include "collective/algorithms/optcc_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace railbreak::collective {

namespace {

constexpr double kSmallest = 1000;  ///< weight of the smallest segment: rounding then hardly matters
constexpr double kMostGrowth = 1e6; ///< the largest segment over the smallest

std::vector<std::int64_t> rounded(const std::vector<double>& sizes) {
    const double least = *std::min_element(sizes.begin(), sizes.end());
    std::vector<std::int64_t> weights;
    for (const double size : sizes) {
        weights.push_back(std::max<std::int64_t>(1, std::llround(size / least * kSmallest)));
    }
    return weights;
}

/// The first half of a ramp made symmetric, with `top` steps up and a plateau between them.
std::vector<double> mirrored(const std::vector<double>& half, std::int64_t segments, std::int64_t top) {
    std::vector<double> sizes;
    for (std::int64_t b = 0; b < segments; ++b) {
        const std::int64_t step = std::min({b, segments - 1 - b, top});
        sizes.push_back(half[static_cast<std::size_t>(step)]);
    }
    return sizes;
}

/// Cuts a ramp off at the height at which its ends and its largest segment together cost least.
std::vector<std::int64_t> best_plateau(const std::vector<double>& half, double slowdown, std::int64_t segments,
                                       std::int64_t healthy, double late) {
    const auto h = static_cast<double>(healthy);
    std::int64_t best = 0;
    double least = 0;
    double ramp = 0; // of the steps below `top`
    for (std::int64_t top = 0; top < static_cast<std::int64_t>(half.size()); ++top) {
        const double height = half[static_cast<std::size_t>(top)];
        const double total = 2 * ramp + static_cast<double>(segments - 2 * top) * height;
        const double cost = (2 * (h - 1) * half[0] + (slowdown + h * late) * height) / total;
        if (top == 0 || cost < least) {
            least = cost;
            best = top;
        }
        ramp += height;
    }
    return rounded(mirrored(half, segments, best));
}

} // namespace

std::vector<std::int64_t> lag_weights(double slowdown, std::int64_t segments, std::int64_t healthy, double late) {
    const double angle = std::numbers::pi / static_cast<double>(segments + 1);
    const double allowance = 1e-12;
    if (slowdown <= 2 * std::cos(angle) + allowance) {
        std::vector<double> sine;
        for (std::int64_t b = 1; b <= segments; ++b) {
            sine.push_back(std::sin(angle * static_cast<double>(b)));
        }
        return rounded(sine);
    }
    std::vector<double> half = {1};
    while (static_cast<std::int64_t>(half.size()) < (segments + 1) / 2 && half.back() < kMostGrowth) {
        const double before = half.size() > 1 ? half[half.size() - 2] : 0;
        const double next = slowdown * half.back() - before;
        if (next < half.back()) {
            break; // a slowdown below 2 bends the ramp down before its middle
        }
        half.push_back(next);
    }
    return best_plateau(half, slowdown, segments, healthy, late);
}

std::vector<std::int64_t> ramp_weights(double slowdown, std::int64_t segments, std::int64_t healthy, double late) {
    const double growth = std::max(2.0, slowdown);
    std::vector<double> half = {1};
    while (static_cast<std::int64_t>(half.size()) < (segments + 1) / 2 && half.back() * growth < kMostGrowth) {
        half.push_back(half.back() * growth);
    }
    return best_plateau(half, growth, segments, healthy, late);
}

std::vector<std::int64_t> lag_star_weights(double slowdown, const std::vector<std::int64_t>& weights) {
    const auto size = [&](std::size_t b) { return b < weights.size() ? static_cast<double>(weights[b]) : 0.0; };
    std::vector<double> left = {size(0)}; // idle time of the straggler in each phase
    for (std::size_t b = 0; b < weights.size(); ++b) {
        const double ring = size(b + 1) + (b > 0 ? size(b - 1) : 0.0);
        left.push_back(std::max(0.0, ring - slowdown * size(b)));
    }
    left.push_back(size(weights.size() - 1));
    std::vector<std::int64_t> chunks;
    for (std::size_t b = 0; b + 1 < left.size(); ++b) { // up in phase b, down in the next
        chunks.push_back(static_cast<std::int64_t>(std::min(left[b], left[b + 1]) / slowdown));
    }
    return chunks;
}

} // namespace railbreak::collective
