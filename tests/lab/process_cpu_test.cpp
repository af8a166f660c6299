// CPU quotas on real processes, alone and together with standing still, in any order.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "tests/lab/process_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Millionths kTenth = kMillion / 10;

class CpuFault : public ProcessLab {
protected:
    void SetUp() override {
        ProcessLab::SetUp();
        if (!IsSkipped() && cpu_mechanism().empty()) {
            GTEST_SKIP() << "no controller cpu with quotas is mounted here";
        }
    }
    static std::map<std::string, std::string> readback_of(const FaultEvidence& evidence) {
        return {evidence.readback.begin(), evidence.readback.end()};
    }
    /// Lets the worker count until it has had `cpu` of CPU time. Gives the time that this took.
    Nanoseconds let_run(Nanoseconds cpu) const {
        const Nanoseconds start = monotonic_now();
        const Nanoseconds had = worker_->cpu_time();
        for (const Deadline deadline = Deadline::after(kPatience); worker_->cpu_time() < had + cpu;) {
            if (deadline.passed()) {
                ADD_FAILURE() << "the worker gets no CPU time";
                break;
            }
            (void)ops_->wait_event(Deadline::after(std::chrono::milliseconds(1)));
        }
        return monotonic_now() - start;
    }
};

TEST_P(CpuFault, GetsItsPartAndNoMore) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(slow_down(1, kTenth));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, cpu_mechanism());
    EXPECT_EQ(readback_of(*applied).at("cpu_quota_us"), "1000");
    EXPECT_EQ(readback_of(*applied).at("cpu_period_us"), "10000");
    worker_->hurry(true);
    const auto granted = std::chrono::milliseconds(50);
    // The quota allows 50 ms in 500 ms; half of that leaves room for what was saved up and for rounding.
    EXPECT_GT(let_run(granted), granted * 5);
    EXPECT_TRUE(worker_->all_count());
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    worker_->hurry(false);
    const auto readback = readback_of(*reverted);
    EXPECT_GT(std::stoull(readback.at("cpu_throttled_periods")), 5U);
    EXPECT_GE(std::stoull(readback.at("cpu_periods")), std::stoull(readback.at("cpu_throttled_periods")));
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_P(CpuFault, TheSmallestPartHolds) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(slow_down(1, kMillion / 2)).has_value());
    const auto lower = keeper.apply(slow_down(2, kMillion / 100)); // a hundredth: the period grows
    ASSERT_TRUE(lower.has_value()) << lower.error().to_line();
    EXPECT_EQ(readback_of(*lower).at("cpu_quota_us"), "1000");
    EXPECT_EQ(readback_of(*lower).at("cpu_period_us"), "100000");
    const auto several = keeper.apply(slow_down(3, 3 * kMillion)); // three CPUs
    ASSERT_TRUE(several.has_value()) << several.error().to_line();
    EXPECT_EQ(readback_of(*several).at("cpu_quota_us"), "1000");
    ASSERT_TRUE(keeper.revert(2).has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    ASSERT_TRUE(keeper.revert(3).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_P(CpuFault, GoesTogetherWithAPauseInAnyOrder) {
    const auto before = snapshot();
    for (const bool pause_first : {true, false}) {
        for (const std::int32_t ends_first : {1, 2}) {
            FaultKeeper keeper = open_keeper(*ops_, options());
            const auto one = keeper.apply(pause_first ? pause(1) : slow_down(1, kTenth));
            const auto two = keeper.apply(pause_first ? slow_down(2, kTenth) : pause(2));
            ASSERT_TRUE(one.has_value()) << one.error().to_line();
            ASSERT_TRUE(two.has_value()) << two.error().to_line();
            EXPECT_TRUE(worker_->none_counts());
            const auto first = keeper.revert(ends_first);
            ASSERT_TRUE(first.has_value()) << first.error().to_line();
            const bool still_paused = pause_first != (ends_first == 1);
            EXPECT_EQ(still_paused ? worker_->none_counts() : worker_->all_count(), true);
            const auto second = keeper.revert(3 - ends_first);
            ASSERT_TRUE(second.has_value()) << second.error().to_line();
            EXPECT_TRUE(worker_->all_count());
            expect_as_before(before, ends_first);
            EXPECT_TRUE(keeper.close().has_value());
        }
    }
}

TEST_P(CpuFault, TwoProcessesOfOneCgroupEndInAnyOrder) {
    Worker other;
    settle(other);
    const auto before = snapshot();
    for (const std::int32_t ends_first : {1, 2}) {
        // Two runs, since the host's agents do not know of each other.
        FaultKeeper keeper = open_keeper(*ops_, options("one"));
        FaultKeeper second = open_keeper(*ops_, options("two"));
        ASSERT_TRUE(keeper.apply(slow_down(1, kTenth)).has_value());
        FaultRequest request = slow_down(2, kTenth);
        request.pid = other.pid();
        ASSERT_TRUE(second.apply(request).has_value());
        ASSERT_TRUE(ends_first == 1 ? keeper.revert(1).has_value() : second.revert(2).has_value());
        const std::map<std::string, std::string> left =
            readback_of(ends_first == 1 ? second.open_faults()[0].evidence : keeper.open_faults()[0].evidence);
        EXPECT_EQ(left.at("cpu_quota_us"), "1000");
        EXPECT_NE(snapshot(), before);
        EXPECT_TRUE(keeper.close().has_value());
        EXPECT_TRUE(second.close().has_value());
        expect_as_before(before, ends_first);
    }
}

TEST_P(CpuFault, FailsAtEveryEffect) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(slow_down(1, kTenth))), 5);
}

TEST_P(CpuFault, GuardGivesTheTimeBackWhenTheAgentIsKilledAtAnyEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(slow_down(1, kTenth)), false), 5);
}

TEST_P(CpuFault, GuardEndsBothWhenTheAgentIsKilledAtAnyEffect) {
    const Script both = [this](FaultKeeper& keeper) {
        return keeper.apply(slow_down(1, kTenth)) && keeper.apply(pause(2)) && keeper.revert(1) && keeper.revert(2);
    };
    EXPECT_GT(kill_at_every_effect(both, false), 10);
    EXPECT_TRUE(worker_->all_count());
}

TEST_P(CpuFault, RecoveryEndsBothWhenAgentAndGuardAreKilledAtAnyEffect) {
    const Script both = [this](FaultKeeper& keeper) {
        return keeper.apply(pause(1)) && keeper.apply(slow_down(2, kTenth)) && keeper.revert(1) && keeper.revert(2);
    };
    EXPECT_GT(kill_at_every_effect(both, true), 10);
    EXPECT_TRUE(worker_->all_count());
}

TEST_P(CpuFault, RefusesAPartTooSmallForTheKernel) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply(slow_down(1, 999));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kInput);
    EXPECT_TRUE(keeper.apply(slow_down(1, 1000)).has_value());
    EXPECT_TRUE(keeper.close().has_value());
}

INSTANTIATE_TEST_SUITE_P(In, CpuFault, ::testing::Values(Surroundings::kUnified, Surroundings::kOld),
                         [](const auto& info) { return std::string(to_string(info.param)); });

class NoCpuFault : public ProcessLab {};

TEST_P(NoCpuFault, IsRefusedWithTheReason) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto before = snapshot();
    const auto refused = keeper.apply(slow_down(1, kTenth));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("no cgroups with the controller cpu are mounted"));
    EXPECT_THAT(keeper.open_faults(), IsEmpty());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

INSTANTIATE_TEST_SUITE_P(In, NoCpuFault, ::testing::Values(Surroundings::kNone),
                         [](const auto& info) { return std::string(to_string(info.param)); });

} // namespace
} // namespace railbreak::injectors
