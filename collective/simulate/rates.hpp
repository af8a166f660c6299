// How fast every port side is at any time, and the clock of the simulator. Private to the simulator.
//
// Time is a whole number of picoseconds, so that flows that end together end together, and no error builds up along a
// chain of flows beyond half a picosecond a flow. Work is a double: the picoseconds a healthy port would need.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "collective/simulate/ports.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::collective::simulation {

/// Picoseconds since the start.
using Ticks = std::int64_t;

inline constexpr Ticks kTicksPerNanosecond = 1000;
/// About 53 days. Whatever would end later counts as never ending.
inline constexpr Ticks kEndOfTime = std::numeric_limits<Ticks>::max() / 2;

/// Longest offset, overhead or latency that the simulator takes: 10 days.
inline constexpr Nanoseconds kLongestOffset = std::chrono::hours(240);

[[nodiscard]] constexpr Ticks to_ticks(Nanoseconds duration) {
    return duration.count() * kTicksPerNanosecond;
}
/// Rounded to the nearest nanosecond.
[[nodiscard]] constexpr Nanoseconds to_nanoseconds(Ticks ticks) {
    return Nanoseconds((ticks + kTicksPerNanosecond / 2) / kTicksPerNanosecond);
}

/// A side of a port gets another rate.
struct SideChange {
    Ticks at = 0;
    SideNumber side = 0;
    double rate = 1; ///< fraction of that of a healthy NIC
};

/// Rates of all port sides. A rate is a fraction of that of a healthy NIC: 0 = down, infinite = without limit.
class Rates {
public:
    /// Errors (kInput): an option is out of range.
    [[nodiscard]] static Result<Rates> make(const PortTable& ports, const SimulationOptions& options);

    /// At time 0, before any change.
    [[nodiscard]] double initial(SideNumber side) const { return initial_[static_cast<std::size_t>(side)]; }
    /// All changes in order of time.
    [[nodiscard]] const std::vector<SideChange>& changes() const { return changes_; }
    /// Picoseconds that a healthy NIC needs for one element.
    [[nodiscard]] double element_ticks() const { return element_ticks_; }
    /// When a transfer begun at `start` ends that always goes at the slower of the two rates; nothing: never.
    [[nodiscard]] std::optional<Ticks> transfer_end(SideNumber a, SideNumber b, std::int64_t elements,
                                                    Ticks start) const;

private:
    Result<void> add_change(const PortTable& ports, const SimulationOptions& options, const RateChange& change);
    [[nodiscard]] std::optional<Ticks> changing_end(SideNumber a, SideNumber b, double work, Ticks start) const;

    std::vector<double> initial_;
    std::vector<double> slowdown_; ///< 1 / initial, but as exact as the input
    std::vector<SideChange> changes_;
    std::vector<std::vector<SideChange>> changes_of_; ///< of each side, in order of time; empty without any change
    double element_ticks_ = 0;
};

} // namespace railbreak::collective::simulation
