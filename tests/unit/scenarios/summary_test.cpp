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
              "cluster: 8 hosts, 2 ranks, 2 NICs each, 500 Mbit/s, MTU 9000 bytes, 2 Gbit/s inside a host\n"
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
              "estimate: about 27.57 s in iterations, if every algorithm were as slow as the ring\n");
}

TEST(Summarise, CountsTheIterationsOfAllAlgorithms) {
    EXPECT_EQ(summary_of(kFull).iterations, 2 * (1 + 4 + 5 + 6));
}

TEST(Summarise, NotesVectorsSmallerThanTheNumberOfRanks) {
    EXPECT_THAT(summary_of(with(kFull, "32MiB", "60B")).notes,
                ElementsAre(HasSubstr("fewer elements (15) than there are ranks (16)")));
    EXPECT_THAT(summary_of(with(kFull, "32MiB", "64B")).notes, ElementsAre());
}

TEST(Summarise, NotesFaultsOnNicsThatNoRankUses) {
    const std::string one = with(kFull, "ranks_per_host: 2, local_rate: 2Gbit/s", "ranks_per_host: 1");
    EXPECT_THAT(summary_of(one).notes, ElementsAre(HasSubstr("\"third\" acts on NIC 1, which no rank uses")));
}

TEST(Summarise, TellsWhatALabelStandsFor) {
    const std::string text = to_text(
        summary_of(with(kFull, "[ring, optcc]", "[ring, optcc, {name: optcc, k: 4, as: four}, {name: optcc, k: 8}]")));
    EXPECT_THAT(text, HasSubstr("algorithms: ring, optcc, four = optcc(k=4), optcc(k=8)\n"));
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
