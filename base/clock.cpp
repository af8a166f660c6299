#include "base/clock.hpp"

#include <algorithm>
#include <ctime>
#include <limits>

#include <fmt/format.h>

namespace railbreak {

namespace {

Nanoseconds read_clock(clockid_t id) {
    timespec now{};
    ::clock_gettime(id, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

} // namespace

Nanoseconds monotonic_now() {
    return read_clock(CLOCK_MONOTONIC);
}

Nanoseconds realtime_now() {
    return read_clock(CLOCK_REALTIME);
}

std::string to_iso8601(Nanoseconds since_epoch) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    const std::time_t whole = seconds.count();
    std::tm utc{};
    ::gmtime_r(&whole, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, (since_epoch - seconds).count());
}

Deadline Deadline::after(Nanoseconds budget) {
    const Nanoseconds now = monotonic_now();
    return Deadline(budget > Nanoseconds::max() - now ? Nanoseconds::max() : now + budget);
}

Nanoseconds Deadline::left() const {
    const Nanoseconds now = monotonic_now();
    return when_ > now ? when_ - now : Nanoseconds::zero();
}

int Deadline::poll_timeout_ms() const {
    const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    return static_cast<int>(std::min<std::int64_t>(rounded_up, std::numeric_limits<int>::max()));
}

} // namespace railbreak
