// When an agent takes back a fault that nobody has asked it to take back.
#include "harness/agent/fault_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railbreak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Nanoseconds kNow = std::chrono::hours(1);
constexpr Nanoseconds kTick{1};

TEST(FaultWatch, HasNothingToSayWithoutFaults) {
    FaultWatch watch;
    EXPECT_FALSE(watch.next());
    EXPECT_FALSE(watch.overdue(Nanoseconds::max()));
}

TEST(FaultWatch, WantsEveryFaultConfirmed) {
    FaultWatch watch;
    watch.applied(1, {"rail0"}, kNow, std::nullopt);
    watch.applied(2, {"rail1"}, kNow + kTick, std::nullopt);
    EXPECT_EQ(watch.next(), kNow + kConfirmTimeout);
    watch.confirmed(1);
    watch.confirmed(7); // of nobody's
    EXPECT_EQ(watch.next(), kNow + kTick + kConfirmTimeout);
    EXPECT_FALSE(watch.overdue(kNow + kConfirmTimeout));
    const auto reason = watch.overdue(kNow + kTick + kConfirmTimeout);
    ASSERT_TRUE(reason);
    EXPECT_THAT(*reason, HasSubstr("fault 2"));
    watch.confirmed(2);
    EXPECT_FALSE(watch.next());
    EXPECT_FALSE(watch.overdue(Nanoseconds::max()));
}

TEST(FaultWatch, EndsAConfirmedFaultAtTheLimitOfThePolicy) {
    FaultWatch watch;
    watch.applied(1, {}, kNow, std::chrono::minutes(10));
    watch.confirmed(1);
    EXPECT_EQ(watch.next(), kNow + std::chrono::minutes(10));
    EXPECT_FALSE(watch.overdue(kNow + std::chrono::minutes(10) - kTick));
    EXPECT_THAT(watch.overdue(kNow + std::chrono::minutes(10)).value_or(""), HasSubstr("site policy"));
    watch.applied(2, {}, kNow, Nanoseconds::max()); // no overflow
    watch.confirmed(2);
    watch.reverted(1);
    EXPECT_FALSE(watch.overdue(kNow + std::chrono::hours(1000)));
}

TEST(FaultWatch, KnowsTheNicsAtFault) {
    FaultWatch watch;
    watch.applied(1, {"rail0", "rail2"}, kNow, std::nullopt);
    watch.applied(2, {}, kNow, std::nullopt);
    EXPECT_THAT(watch.nics(), ElementsAre("rail0", "rail2"));
    watch.reverted(1);
    EXPECT_THAT(watch.nics(), ElementsAre());
    watch.clear();
    EXPECT_FALSE(watch.next());
}

} // namespace
} // namespace railbreak::agent
