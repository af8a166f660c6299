#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/summary.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using ::testing::ElementsAre;
using testing::errors_of;
using ::testing::HasSubstr;
using testing::kFull;
using testing::load;
using testing::with;

Summary summary_of(std::string_view text) {
    const auto scenario = load(text);
    if (!scenario) {
        throw std::logic_error(errors_of(scenario));
    }
    return summarise(*scenario);
}

TEST(Summarise, PrintsBackWhatWasUnderstood) {
    EXPECT_EQ(to_text(summary_of(kFull)),
              "scenario: full\n"
              "cluster: 8 hosts, 2 NICs each, 500 Mbit/s, MTU 9000 bytes\n"
              "workload: allreduce of 32 MiB (33554432 bytes of float32) on each rank\n"
              "algorithms: ring, optcc\n"
              "iterations: 32 in all; each algorithm: 1 warmup, 4 steady, 5 degraded, 6 recovered; time-out 20 s each\n"
              "lease: 15 s\n"
              "fault half-rate: cap on host 3, NIC 0, send at 250 Mbit/s, during all degraded iterations\n"
              "fault third: cap on host 2, NIC 1, both at 166.7 Mbit/s (1/3 of the line rate), during all degraded "
              "iterations\n"
              "fault blink: link_down on host chosen from the seed, NIC 0, 200 ms after the start of degraded "
              "iteration 2, for 300 ms\n"
              "expect: optcc, degraded, median of overhead_exclusive at most 1.1\n"
              "expect: every algorithm, recovered, median of vs_steady at least 0.97, at most 1.03\n"
              "estimate: about 50.42 s in iterations, if every algorithm were as slow as the ring\n"
              "note: fault \"third\" acts on NIC 1, but data flows over NIC 0 only\n");
}

TEST(Summarise, CountsTheIterationsOfAllAlgorithms) {
    EXPECT_EQ(summary_of(kFull).iterations, 2 * (1 + 4 + 5 + 6));
}

TEST(Summarise, NotesVectorsSmallerThanTheNumberOfRanks) {
    EXPECT_THAT(summary_of(with(kFull, "32MiB", "28B")).notes,
                ::testing::Contains(HasSubstr("fewer elements (7) than there are ranks (8)")));
    EXPECT_THAT(summary_of(with(kFull, "32MiB", "32B")).notes, ElementsAre(HasSubstr("NIC 1")));
}

TEST(Summarise, NotesScenariosThatJudgeOrBreakNothing) {
    const std::string text = "railbreak: 1\nname: x\ncluster: {hosts: 2, rate: 1Gbit/s}\n"
                             "workload: {collective: allreduce, bytes: 4KiB, algorithms: [ring]}\n";
    EXPECT_THAT(summary_of(text).notes, ElementsAre(HasSubstr("no expectation"), HasSubstr("no fault")));
}

TEST(EstimateRunTime, IsTheRingsTimeAtTheRateThatTcpLeaves) {
    // One rank's payload of 1448 bytes in frames of 1514: 2(p-1)/p * 8 bit * 1448 KiB at 1514 kbit/s is 8.192 s.
    const auto scenario = load("railbreak: 1\nname: x\ncluster: {hosts: 2, rate: 1514kbit/s}\n"
                               "workload:\n  collective: allreduce\n  bytes: 1482752B\n  algorithms: [ring]\n"
                               "  iterations: {warmup: 0, steady: 2, degraded: 1, recovered: 0}\n"
                               "faults:\n- {name: a, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n");
    ASSERT_TRUE(scenario) << errors_of(scenario);
    EXPECT_NEAR(std::chrono::duration<double>(estimate_run_time(*scenario)).count(), 8.192 * 4, 1e-4);
}

TEST(EstimateRunTime, DoesNotOverflow) {
    std::string text = with(kFull, "rate: 500Mbit/s", "rate: 250Mbit/s");
    text = with(text, "32MiB", "1TiB");
    text = with(text, "degraded: 5", "degraded: 100000");
    EXPECT_GT(summary_of(text).estimated_run_time, std::chrono::hours(1));
}

} // namespace
} // namespace railbreak::scenarios
