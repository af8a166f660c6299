// The exclusive model in exact arithmetic: a tick is the time of an element on a healthy NIC over the least common
// multiple of the slowdowns' denominators, so every flow takes a whole number of ticks.
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>

#include "collective/simulate/exclusive.hpp"
#include "collective/simulate/ports.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::collective {

namespace {

using simulation::PortTable;
using simulation::SideNumber;

/// 128 bits hold the time of any schedule that can be walked in a lifetime.
using ExactTicks = __int128;

/// With at most this many ticks an element, 2^63 elements and 2^24 flows in a row still fit.
const boost::multiprecision::cpp_int kMostTicks = boost::multiprecision::cpp_int(1) << 39;

class ExactPace {
public:
    using Time = ExactTicks;

    static Result<ExactPace> make(const PortTable& ports) {
        boost::multiprecision::cpp_int common = 1;
        for (SideNumber side = 0; side < ports.side_count(); ++side) {
            common = lcm(common, denominator(ports.slowdown(side)));
        }
        ExactPace pace;
        for (SideNumber side = 0; side < ports.side_count(); ++side) {
            const boost::multiprecision::cpp_int ticks = numerator(Rational(ports.slowdown(side) * common));
            if (ticks > kMostTicks || common > kMostTicks) {
                return fail(ErrorKind::kInput, "the slowdowns have no common denominator of reasonable size");
            }
            pace.ticks_.push_back(static_cast<std::int64_t>(ticks));
        }
        pace.unit_ = static_cast<std::int64_t>(common);
        return pace;
    }

    /// Ticks of an element on a healthy NIC.
    [[nodiscard]] std::int64_t unit() const { return unit_; }
    [[nodiscard]] Time rank_start(Rank /*rank*/) const { return 0; }
    [[nodiscard]] Time latency() const { return 0; }
    [[nodiscard]] std::optional<Time> flow_end(SideNumber send, SideNumber receive, std::int64_t elements,
                                               Time start) const {
        const std::int64_t from = ticks_[static_cast<std::size_t>(send)];
        const std::int64_t to = ticks_[static_cast<std::size_t>(receive)];
        if (from < 0 || to < 0) {
            return std::nullopt;
        }
        return start + Time{std::max(from, to)} * elements;
    }

private:
    std::vector<std::int64_t> ticks_; ///< of an element on each side; below 0: dead
    std::int64_t unit_ = 1;
};

} // namespace

Result<Rational> simulate_exact(const Schedule& schedule, const Topology& topology) {
    const Result<PortTable> ports = PortTable::make(schedule, topology);
    if (!ports) {
        return tl::unexpected(ports.error());
    }
    const Result<ExactPace> pace = ExactPace::make(*ports);
    if (!pace) {
        return tl::unexpected(pace.error());
    }
    simulation::Exclusive<ExactPace> engine(schedule, *ports, *pace, {});
    if (const Result<void> ran = engine.run(); !ran) {
        return tl::unexpected(ran.error());
    }
    ExactTicks last = 0;
    for (const ExactTicks end : engine.tally().rank_ends) {
        last = std::max(last, end);
    }
    return Rational(boost::multiprecision::cpp_int(last)) / pace->unit();
}

} // namespace railbreak::collective
