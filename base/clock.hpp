// Time: one monotonic clock for durations and deadlines, one wall clock for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace railbreak {

using Nanoseconds = std::chrono::nanoseconds;

/// CLOCK_MONOTONIC now, as nanoseconds since an arbitrary origin that is shared by all processes of one host.
[[nodiscard]] Nanoseconds monotonic_now();

/// CLOCK_REALTIME now, as nanoseconds since 1970-01-01T00:00:00Z.
[[nodiscard]] Nanoseconds realtime_now();

/// "2026-01-31T12:34:56.123456789Z".
[[nodiscard]] std::string to_iso8601(Nanoseconds since_epoch);

/// A point on the monotonic clock after which a wait must end. Every wait in railbreak takes one.
class Deadline {
public:
    /// Ends `budget` from now; a budget beyond the end of the clock means its end.
    [[nodiscard]] static Deadline after(Nanoseconds budget);
    /// Ends at the given monotonic time.
    [[nodiscard]] static Deadline at(Nanoseconds when) { return Deadline(when); }

    [[nodiscard]] Nanoseconds when() const { return when_; }
    [[nodiscard]] bool passed() const { return monotonic_now() >= when_; }
    /// Time left, never negative.
    [[nodiscard]] Nanoseconds left() const;
    /// Time left in whole milliseconds, rounded up, clamped to int: what poll() and epoll_wait() take.
    [[nodiscard]] int poll_timeout_ms() const;

private:
    explicit Deadline(Nanoseconds when) : when_(when) {}
    Nanoseconds when_;
};

} // namespace railbreak
