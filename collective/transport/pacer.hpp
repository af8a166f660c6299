// The rate limit of one direction of a port that no kernel limits.
//
// A busy-until clock: moving n bytes makes the port busy for the time that n bytes take, and nothing moves while it is
// busy. There is no bucket of tokens: an idle port gathers no credit, so a flow never starts faster than the port is.
// A port that was busy with data waiting for it goes on from where it was busy until, not from when its owner got round
// to it: the processor's delays (up to kMostLateness) cost no bandwidth.
#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace railbreak::collective {

/// See the file comment. Not thread-safe.
class Pacer {
public:
    static constexpr Nanoseconds kMostLateness = std::chrono::milliseconds(10);

    /// A rate of zero means no limit.
    explicit Pacer(BitRate rate) : rate_(rate) {}

    [[nodiscard]] bool limited() const { return rate_.bits_per_s() > 0; }
    /// Bytes that may move now; 0: none before wake_at(). To be asked only with data at hand that could move.
    [[nodiscard]] std::size_t allowance(Nanoseconds now);
    /// Tells what moved, at most the allowance that was given for the same `now`.
    void moved(std::size_t bytes, Nanoseconds now);
    /// When to ask again; nothing unless data waits for the port.
    [[nodiscard]] std::optional<Nanoseconds> wake_at() const;

private:
    BitRate rate_;
    Nanoseconds busy_until_{0};
    bool waited_for_ = false; ///< data has asked in vain since something last moved
};

} // namespace railbreak::collective
