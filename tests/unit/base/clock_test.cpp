// Time stamps and deadlines.
#include "base/clock.hpp"

#include <limits>

#include <gtest/gtest.h>

using namespace std::chrono_literals;

namespace railbreak {
namespace {

TEST(ToIso8601, PrintsKnownMoments) {
    EXPECT_EQ(to_iso8601(0ns), "1970-01-01T00:00:00.000000000Z");
    EXPECT_EQ(to_iso8601(1ns), "1970-01-01T00:00:00.000000001Z");
    EXPECT_EQ(to_iso8601(-1ns), "1969-12-31T23:59:59.999999999Z");
    EXPECT_EQ(to_iso8601(951'782'400s), "2000-02-29T00:00:00.000000000Z");
    EXPECT_EQ(to_iso8601(1'769'862'896s + 123'456'789ns), "2026-01-31T12:34:56.123456789Z");
}

TEST(MonotonicNow, NeverGoesBack) {
    const Nanoseconds before = monotonic_now();
    EXPECT_GT(before, 0ns);
    EXPECT_GE(monotonic_now(), before);
}

TEST(RealtimeNow, IsAfterThisWasWritten) {
    EXPECT_GT(realtime_now(), 1'700'000'000s);
}

TEST(Deadline, HasPassedWhenItsTimeIsInThePast) {
    for (const Deadline deadline :
         {Deadline::after(0ns), Deadline::after(-1h), Deadline::at(0ns), Deadline::at(Nanoseconds::min())}) {
        EXPECT_TRUE(deadline.passed());
        EXPECT_EQ(deadline.left(), 0ns);
        EXPECT_EQ(deadline.poll_timeout_ms(), 0);
    }
}

TEST(Deadline, LeavesAtMostItsBudget) {
    const Deadline deadline = Deadline::after(1h);
    EXPECT_FALSE(deadline.passed());
    EXPECT_LE(deadline.left(), 1h);
    EXPECT_GT(deadline.left(), 0ns);
    EXPECT_EQ(Deadline::at(deadline.when()).when(), deadline.when());
}

TEST(Deadline, RoundsThePollTimeoutUpSoThatAWaitNeverSpins) {
    // 0 ms would make poll() return at once, again and again, until the last nanosecond had passed. The clock moves
    // on between the two lines, so what is certain is a range: 10 h and 1 ns are left at most, rounded up.
    const Deadline deadline = Deadline::after(10h + 1ns);
    const int timeout_ms = deadline.poll_timeout_ms();
    const Nanoseconds left_after = deadline.left();
    EXPECT_LE(timeout_ms, 36'000'001);
    EXPECT_GE(std::chrono::milliseconds(timeout_ms), left_after);
}

TEST(Deadline, ClampsThePollTimeoutToInt) {
    EXPECT_EQ(Deadline::after(24h * 365).poll_timeout_ms(), std::numeric_limits<int>::max());
    EXPECT_EQ(Deadline::at(Nanoseconds::max()).poll_timeout_ms(), std::numeric_limits<int>::max());
}

TEST(Deadline, DoesNotOverflowOnAnEndlessBudget) {
    const Deadline deadline = Deadline::after(Nanoseconds::max());
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(deadline.when(), Nanoseconds::max());
}

} // namespace
} // namespace railbreak
