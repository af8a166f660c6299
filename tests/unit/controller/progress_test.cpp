#include "harness/controller/progress.hpp"
#include "harness/controller/run_clock.hpp"

#include <gtest/gtest.h>

namespace railbreak::controller {
namespace {

using std::chrono::seconds;

// Two hosts at 8 bit/s with 10 bytes: a ring takes 10 s.
scenarios::Plan plan_of_two() {
    scenarios::Plan plan;
    plan.cluster.hosts = 2;
    plan.cluster.ranks_per_host = 1;
    plan.cluster.rate = BitRate::bits_per_s(8);
    plan.workload.bytes = ByteCount::bytes(10);
    plan.workload.algorithms = {{.name = "ring", .label = "ring"}, {.name = "optcc", .label = "optcc"}};
    plan.workload.iterations = {.warmup = 1, .steady = 2, .degraded = 2, .recovered = 1};
    plan.faults.resize(1);
    return plan;
}

TEST(RunClock, KnowsFromThePlanHowManyIterationsAreAhead) {
    scenarios::Plan plan = plan_of_two();
    EXPECT_EQ(RunClock(plan).left(), seconds(2 * 6 * 10));
    plan.faults.clear(); // no degraded phase then
    EXPECT_EQ(RunClock(plan).left(), seconds(2 * 4 * 10));
}

TEST(RunClock, LearnsFromIterationsAndForgetsThoseThatWereLeftOut) {
    RunClock clock(plan_of_two());
    clock.finished("ring", "warmup", seconds(20)); // twice as long as a ring should take: so will the others
    EXPECT_EQ(clock.left(), seconds(11 * 20));
    clock.finished("ring", "steady", seconds(20));
    clock.finished("ring", "recovered", seconds(20)); // its degraded phase ended early
    EXPECT_EQ(clock.left(), seconds(6 * 20));
    clock.finished("optcc", "recovered", seconds(1));
    EXPECT_EQ(clock.left(), seconds(0));
    clock.finished("optcc", "comparison", seconds(1)); // none of the plan
    EXPECT_EQ(clock.left(), seconds(0));
}

/// What a Progress writes to stderr.
std::string told(bool terminal) {
    testing::internal::CaptureStderr();
    {
        Progress progress(terminal);
        progress.doing("building");
        progress.doing("building");
        progress.doing("steady 1/2", "steady");
        progress.doing("steady 2/2", "steady");
        progress.doing("degraded 1/1", "degraded");
        progress.note("as expected");
    }
    return testing::internal::GetCapturedStderr();
}

TEST(Progress, RenewsOneLineOnATerminal) {
    EXPECT_EQ(told(true), "\r\x1b[Kbuilding\r\x1b[Kbuilding\r\x1b[Ksteady 1/2\r\x1b[Ksteady 2/2\r\x1b[Kdegraded 1/1"
                          "\r\x1b[Kas expected\n");
}

TEST(Progress, IsALineForEachPartElsewhere) {
    EXPECT_EQ(told(false), "building\nbuilding\nsteady 1/2\ndegraded 1/1\nas expected\n");
}

} // namespace
} // namespace railbreak::controller
