#include "harness/controller/progress.hpp"
#include "harness/controller/run_clock.hpp"

#include <map>

#include <gtest/gtest.h>

#include "scenarios/plan.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::controller {
namespace {

using std::chrono::seconds;

// Two hosts at 16 bit/s, of which headers leave half, with 10 bytes: a ring takes 10 s.
scenarios::Plan plan_of_two() {
    scenarios::Plan plan;
    plan.cluster.hosts = 2;
    plan.cluster.ranks_per_host = 1;
    plan.cluster.rate = BitRate::bits_per_s(16);
    plan.cluster.mtu_bytes = 118;
    plan.workload.bytes = ByteCount::bytes(10);
    plan.workload.iteration_timeout = seconds(60);
    plan.workload.algorithms = {{.name = "ring", .label = "ring"}, {.name = "optcc", .label = "optcc"}};
    plan.workload.iterations = {.warmup = 1, .steady = 2, .degraded = 2, .recovered = 1};
    scenarios::PlannedFault fault;
    fault.kind = scenarios::FaultKind::kDelay;
    fault.at_iteration = 1;
    fault.strength.delay = std::chrono::milliseconds(1);
    fault.duration = seconds(0);
    plan.faults = {fault};
    return plan;
}

Nanoseconds in_iterations(const RunClock& clock) {
    return clock.left() - clock.left_around();
}

TEST(RunClock, KnowsFromThePlanHowManyIterationsAreAhead) {
    scenarios::Plan plan = plan_of_two();
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * 6 * 10));
    plan.faults[0].duration = seconds(3);
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * (6 * 10 + 3)));
    plan.faults[0].kind = scenarios::FaultKind::kLinkDown; // TCP waits as long again
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * (6 * 10 + 6)));
    plan.faults.clear(); // no degraded phase then
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * 4 * 10));
}

TEST(RunClock, EndsThePhaseWithAnErrorThatIsExpected) {
    scenarios::Plan plan = plan_of_two();
    plan.faults[0].kind = scenarios::FaultKind::kKill;
    plan.faults[0].duration.reset();
    plan.faults[0].offset = seconds(4);
    plan.expectations = {{.phase = scenarios::Phase::kDegraded, .outcome = scenarios::Outcome::kError}};
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * (3 * 10 + 4 + 2 * 10))) << "and new ranks are warmed up";
    plan.faults[0].kind = scenarios::FaultKind::kLinkDown;
    plan.faults[0].duration = seconds(600);
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * (3 * 10 + 60 + 2 * 10))) << "the iteration's time-out";
}

TEST(RunClock, CountsWhatIsDoneBetweenIterations) {
    scenarios::Plan plan = plan_of_two();
    // A probe carries half as much again as 512 KiB, for so slow a port; at 8 bit/s of payload:
    const seconds probe{512 * 1024 * 3 / 2};
    const Nanoseconds hosts = std::chrono::milliseconds(2 * 80);
    EXPECT_EQ(RunClock(plan).left_around(), hosts + 3 * probe);
    plan.faults[0].kind = scenarios::FaultKind::kCap;
    plan.faults[0].at_iteration.reset();
    plan.faults[0].rate = BitRate::bits_per_s(8);
    EXPECT_EQ(RunClock(plan).left_around(), hosts + 3 * probe + 2 * 2 * probe) << "the capped port, for each algorithm";
    EXPECT_EQ(in_iterations(RunClock(plan)), seconds(2 * (4 * 10 + 2 * 20) + 8 * 20)) << "forms of OptCC are tried";
}

TEST(RunClock, LearnsFromIterationsAndForgetsThoseThatWereLeftOut) {
    RunClock clock(plan_of_two());
    clock.finished("ring", "warmup", seconds(20)); // twice as long as a ring should take: so will the others
    EXPECT_EQ(in_iterations(clock), seconds(11 * 20));
    EXPECT_EQ(clock.left_around(), std::chrono::milliseconds(2 * 30)) << "the ports are measured";
    clock.finished("ring", "steady", seconds(20));
    clock.finished("ring", "recovered", seconds(20)); // its degraded phase ended early
    EXPECT_EQ(in_iterations(clock), seconds(6 * 20));
    clock.finished("optcc", "recovered", seconds(1));
    EXPECT_EQ(in_iterations(clock), seconds(0));
    clock.finished("optcc", "comparison", seconds(1)); // none of the plan
    EXPECT_EQ(in_iterations(clock), seconds(0));
}

TEST(RunClock, KnowsAtTheStartHowLongTheSmokeSuiteTakes) {
    // Seconds that its items took in the lab on a machine with two CPUs that did nothing else.
    const std::map<std::string, double> took{{"smoke", 11.5},     {"link-down-short", 13.5},   {"flap", 11.7},
                                             {"reroute", 6.7},    {"partition-one-way", 11.7}, {"loss", 9.3},
                                             {"pause-rank", 8.1}, {"late-rank", 9.1},          {"kill-rank", 6.9}};
    double all = 0;
    double expected = 0;
    for (const auto& [name, seconds] : took) {
        const auto path = scenarios::testing::source_dir() / "scenarios/catalog" / (name + ".yaml");
        const auto scenario = scenarios::load_scenario_file(path.string(), scenarios::testing::algorithms());
        ASSERT_TRUE(scenario) << scenarios::testing::errors_of(scenario);
        const double left = std::chrono::duration<double>(RunClock(*scenarios::expand(*scenario, 1)).left()).count();
        EXPECT_NEAR(left, seconds, 0.15 * seconds) << name;
        all += seconds;
        expected += left;
    }
    EXPECT_NEAR(expected, all, 0.15 * all);
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
