#include "harness/controller/suite_progress.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace railbreak::controller {

namespace {

/// The middle value, of two the lower; there is at least one.
template <class Value> Value median(std::vector<Value> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace

Nanoseconds median_of(std::vector<Nanoseconds> values) {
    return median(std::move(values));
}

void SuiteClock::finished(const ExpectedItem& item, Nanoseconds took) {
    took_[item.scenario].push_back(took);
    if (item.estimate > Nanoseconds(0)) {
        ratios_.push_back(static_cast<double>(took.count()) / static_cast<double>(item.estimate.count()));
    }
}

Nanoseconds SuiteClock::left(const std::vector<ExpectedItem>& items) const {
    const double ratio = ratios_.empty() ? 1.0 : median(ratios_);
    std::map<std::string_view, Nanoseconds> medians;
    for (const auto& [scenario, took] : took_) {
        medians.emplace(scenario, median(took));
    }
    double total = 0; // a few items of years are more than 64 bits of nanoseconds hold
    for (const ExpectedItem& item : items) {
        const auto known = medians.find(item.scenario);
        total += known != medians.end() ? static_cast<double>(known->second.count())
                                        : static_cast<double>(item.estimate.count()) * ratio;
    }
    constexpr double kMost = 9e18;
    return Nanoseconds(static_cast<std::int64_t>(std::min(total, kMost)));
}

std::string rough(Nanoseconds duration) {
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kHour = 60 * kMinute;
    const std::int64_t seconds = std::chrono::round<std::chrono::seconds>(duration).count();
    if (seconds < kMinute) {
        return fmt::format("{} s", seconds);
    }
    return seconds < kHour ? fmt::format("{} min {:02} s", seconds / kMinute, seconds % kMinute)
                           : fmt::format("{} h {:02} min", seconds / kHour, seconds % kHour / kMinute);
}

} // namespace railbreak::controller
