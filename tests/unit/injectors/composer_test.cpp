#include "injectors/composer.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace rc {

template <> struct Arbitrary<railbreak::injectors::ActiveFault> {
    static Gen<railbreak::injectors::ActiveFault> arbitrary() {
        using namespace railbreak::injectors; // NOLINT(google-build-using-namespace): a few lines of generator
        return gen::apply(
            [](int kind, int direction, std::uint64_t rate) {
                return ActiveFault{kind == 0 ? FaultKind::kLinkDown : FaultKind::kCap,
                                   static_cast<Direction>(direction), railbreak::BitRate::bits_per_s(rate)};
            },
            gen::inRange(0, 4), gen::inRange(0, 3), gen::inRange<std::uint64_t>(8000, 400'000'000'000));
    }
};

} // namespace rc

namespace railbreak::injectors {
namespace {

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

TEST(Composer, WantsNothingWithoutFaults) {
    EXPECT_EQ(compose({}), WantedState{});
}

TEST(Composer, TakesTheLowerRateOfEachDirection) {
    const std::vector<ActiveFault> faults{{FaultKind::kCap, Direction::kBoth, mbit(300)},
                                          {FaultKind::kCap, Direction::kSend, mbit(200)},
                                          {FaultKind::kCap, Direction::kReceive, mbit(400)}};
    const WantedState wanted = compose(faults);
    EXPECT_EQ(wanted.send, mbit(200));
    EXPECT_EQ(wanted.receive, mbit(300));
    EXPECT_FALSE(wanted.down);
}

TEST(Composer, LeavesTheOtherDirectionAlone) {
    const std::vector<ActiveFault> faults{{FaultKind::kCap, Direction::kReceive, mbit(5)}};
    EXPECT_FALSE(compose(faults).send.has_value());
}

TEST(Composer, KeepsACapUnderALinkThatIsDown) {
    const std::vector<ActiveFault> faults{{FaultKind::kLinkDown, Direction::kBoth, {}},
                                          {FaultKind::kCap, Direction::kSend, mbit(5)}};
    const WantedState wanted = compose(faults);
    EXPECT_TRUE(wanted.down);
    EXPECT_EQ(wanted.send, mbit(5));
    EXPECT_FALSE(wanted.receive.has_value());
}

TEST(Composer, DoesNotDependOnOrder) {
    EXPECT_TRUE(rc::check("any order of the same faults means the same", [](std::vector<ActiveFault> faults) {
        const WantedState wanted = compose(faults);
        const auto shift = *rc::gen::inRange<std::size_t>(0, faults.size() + 1);
        std::rotate(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(shift % (faults.size() + 1)),
                    faults.end());
        std::reverse(faults.begin(), faults.end());
        RC_ASSERT(compose(faults) == wanted);
    }));
}

TEST(Composer, OneMoreFaultNeverMakesTheInterfaceBetter) {
    EXPECT_TRUE(rc::check("adding a fault lowers or keeps", [](std::vector<ActiveFault> faults, ActiveFault one) {
        const WantedState before = compose(faults);
        faults.push_back(one);
        const WantedState after = compose(faults);
        RC_ASSERT(!before.down || after.down);
        RC_ASSERT(!before.send || (after.send && *after.send <= *before.send));
        RC_ASSERT(!before.receive || (after.receive && *after.receive <= *before.receive));
    }));
}

} // namespace
} // namespace railbreak::injectors
