// What faults do to the rates of NICs.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/simulate/fault_script.hpp"

namespace railbreak::simulate {
namespace {

using collective::RateChange;
using scenarios::Direction;
using scenarios::FaultKind;
using scenarios::PlannedFault;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

scenarios::Plan plan_with(std::vector<PlannedFault> faults) {
    scenarios::Plan plan;
    plan.cluster = {.hosts = 4, .nics_per_host = 2, .rate = BitRate::bits_per_s(1000)};
    plan.faults = std::move(faults);
    return plan;
}

PlannedFault cap(std::uint64_t bits_per_s, Direction direction = Direction::kBoth) {
    return {
        .kind = FaultKind::kCap, .host = 3, .nic = 1, .direction = direction, .rate = BitRate::bits_per_s(bits_per_s)};
}

PlannedFault timed(PlannedFault fault, std::int32_t iteration, milliseconds offset, milliseconds duration) {
    fault.at_iteration = iteration;
    fault.offset = offset;
    fault.duration = duration;
    return fault;
}

auto changes(std::int64_t at_ms, double send, double receive) {
    return testing::AllOf(testing::Field(&RateChange::at, Nanoseconds(milliseconds(at_ms))),
                          testing::Field(&RateChange::server, 3),
                          testing::Field(&RateChange::nic, testing::Optional(1)),
                          testing::Field(&RateChange::send, testing::Optional(send)),
                          testing::Field(&RateChange::receive, testing::Optional(receive)));
}

TEST(FaultScript, PhaseFaultActsInEveryIteration) {
    const scenarios::Plan plan = plan_with({cap(500, Direction::kSend)});
    for (const std::int32_t iteration : {0, 1, 7}) {
        EXPECT_THAT(rate_changes(plan, iteration), ElementsAre(changes(0, 0.5, 1)));
    }
}

TEST(FaultScript, TimedFaultActsInItsIterationAlone) {
    const scenarios::Plan plan = plan_with({timed(cap(250), 2, milliseconds(30), milliseconds(40))});
    EXPECT_THAT(rate_changes(plan, 1), IsEmpty());
    EXPECT_THAT(rate_changes(plan, 2), ElementsAre(changes(30, 0.25, 0.25), changes(70, 1, 1)));
}

TEST(FaultScript, OfOverlappingFaultsTheStrongestActs) {
    const PlannedFault down{.kind = FaultKind::kLinkDown, .host = 3, .nic = 1};
    const scenarios::Plan plan = plan_with(
        {cap(500), timed(cap(250, Direction::kReceive), 1, milliseconds(10), milliseconds(40)),
         timed(down, 1, milliseconds(20), milliseconds(10)), timed(cap(800), 1, milliseconds(60), milliseconds(5))});
    EXPECT_THAT(rate_changes(plan, 1), ElementsAre(changes(0, 0.5, 0.5), changes(10, 0.5, 0.25), changes(20, 0, 0),
                                                   changes(30, 0.5, 0.25), changes(50, 0.5, 0.5)));
}

TEST(FaultScript, OnlyCapsOfTheWholePhaseAreKnownToPlans) {
    const PlannedFault down{.kind = FaultKind::kLinkDown, .host = 1};
    const controller::NicSlowdowns damage = phase_damage(
        plan_with({cap(300), cap(400, Direction::kSend), down, timed(cap(1), 1, milliseconds(1), milliseconds(1))}));
    EXPECT_EQ(damage[3][1].send, Rational(10, 3));
    EXPECT_EQ(damage[3][1].receive, Rational(10, 3));
    EXPECT_EQ(damage[3][0].send, 1);
    EXPECT_EQ(damage[1][0].send, 1);
}

PlannedFault late(std::int32_t host, milliseconds by) {
    return {.kind = FaultKind::kLate, .host = host, .strength = {.late = by}};
}

TEST(FaultScript, LateRanksBeginLateInTheirIterations) {
    PlannedFault once = late(2, milliseconds(70));
    once.at_iteration = 2;
    const scenarios::Plan plan = plan_with({late(1, milliseconds(50)), once});
    const auto at = [](std::int64_t ms) { return Nanoseconds(milliseconds(ms)); };
    EXPECT_THAT(rank_starts(plan, 1), ElementsAre(at(0), at(50), at(0), at(0)));
    EXPECT_THAT(rank_starts(plan, 2), ElementsAre(at(0), at(50), at(70), at(0)));
    EXPECT_THAT(rank_starts(plan, 0), IsEmpty()) << "forms are compared without it";
    EXPECT_THAT(rate_changes(plan, 2), IsEmpty());
    EXPECT_EQ(phase_damage(plan)[1][0].send, 1);
    EXPECT_EQ(acts_in(once, 2)->until, at(70));
}

TEST(FaultScript, BlackholeOfOneDirectionStopsBoth) {
    const PlannedFault hole{.kind = FaultKind::kBlackhole, .host = 3, .nic = 1, .direction = Direction::kSend};
    const scenarios::Plan plan = plan_with({timed(hole, 1, milliseconds(10), milliseconds(20))});
    EXPECT_THAT(rate_changes(plan, 1), ElementsAre(changes(10, 0, 0), changes(30, 1, 1)));
}

TEST(FaultScript, WhatTheModelDoesNotKnowIsRefusedByName) {
    for (const FaultKind kind : scenarios::kFaultKinds) {
        PlannedFault fault{.name = "it", .kind = kind};
        fault.strength.probability = 1;
        fault.strength.delay = fault.strength.late = milliseconds(1);
        const bool known = kind == FaultKind::kCap || kind == FaultKind::kLinkDown || kind == FaultKind::kBlackhole ||
                           kind == FaultKind::kLate;
        const Result<void> playable = check_playable(plan_with({cap(1), fault}));
        EXPECT_EQ(playable.has_value(), known) << to_string(kind);
        if (!playable) {
            EXPECT_EQ(playable.error().kind(), ErrorKind::kRefused);
            EXPECT_THAT(playable.error().to_line(), testing::HasSubstr(std::string(to_string(kind))));
            EXPECT_THAT(playable.error().to_line(), testing::HasSubstr("\"it\""));
        }
    }
    EXPECT_TRUE(check_playable(plan_with({{.kind = FaultKind::kLoss}}))) << "with probability 0 it is off";
}

TEST(FaultScript, RecordsSayThatNothingRealWasTouched) {
    const scenarios::Plan plan = plan_with({cap(250, Direction::kReceive)});
    const record::InjectionRow row =
        injection_row(plan, plan.faults[0], BitRate::bits_per_s(960), milliseconds(5), milliseconds(9));
    EXPECT_EQ(row.realism, "pretended");
    EXPECT_EQ(row.mechanism, "simulated");
    EXPECT_EQ(row.observed_at, 5'000'000);
    EXPECT_EQ(row.restored_at, 9'000'000);
    EXPECT_EQ(row.wanted_rate_bits_per_s, 250);
    EXPECT_EQ(row.measured_receive_bits_per_s, 240);
    EXPECT_EQ(row.measured_send_bits_per_s, 0) << "the cap does not act on sending";
}

} // namespace
} // namespace railbreak::simulate
