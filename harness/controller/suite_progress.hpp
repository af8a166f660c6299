// How long the rest of a suite will take.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace railbreak::controller {

/// The middle value, of two the lower; there is at least one.
[[nodiscard]] Nanoseconds median_of(std::vector<Nanoseconds> values);

/// An item that is to run.
struct ExpectedItem {
    std::string scenario;
    Nanoseconds estimate{0}; ///< without what the items before it teach
};

/// Learns from the items that have finished. An item takes as long as the median of those of its scenario; one of a
/// scenario that has not run yet its estimate, times what estimates were wrong by so far (the median again).
class SuiteClock {
public:
    void finished(const ExpectedItem& item, Nanoseconds took);
    /// Time that the items will take one after the other.
    [[nodiscard]] Nanoseconds left(const std::vector<ExpectedItem>& items) const;

private:
    std::map<std::string, std::vector<Nanoseconds>> took_; ///< by scenario
    std::vector<double> ratios_;
};

/// "45 s", "12 min 30 s", "3 h 05 min".
[[nodiscard]] std::string rough(Nanoseconds duration);

} // namespace railbreak::controller
