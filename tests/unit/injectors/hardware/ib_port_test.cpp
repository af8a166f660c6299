// InfiniBand port faults against ibsim: the packets and the library are real, the fabric answers as hardware does,
// except that it does not train links and has no subnet manager.
#include "injectors/hardware/ib_port.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::uint16_t kLid = 0x1234;
const IbFaultOptions kUnmanaged{kLid};

Deadline soon() {
    return Deadline::after(std::chrono::seconds(5));
}

template <class T> testing::AssertionResult done(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

/// What a test changes stays: the switch's ports 3 and 4 are for changes, the rest is only looked at, so that the tests
/// may run in any order.
class IbFabric : public testing::Test {
protected:
    void SetUp() override {
        if (std::getenv("RAILBREAK_IBSIM") == nullptr) {
            GTEST_SKIP() << "needs ibsim: apt-get install ibsim-utils libumad2sim0";
        }
    }
    /// One at a time: the simulator's library shares one handle of a device between all that open it.
    static IbPort open(std::vector<std::uint8_t> route, std::uint8_t port) {
        auto opened = IbPort::open({"ibsim0", 1, std::move(route), port});
        EXPECT_TRUE(done(opened));
        return std::move(opened.value());
    }
    static IbPortInfo query_at(std::vector<std::uint8_t> route, std::uint8_t port) {
        auto opened = open(std::move(route), port);
        return query(opened);
    }
    static IbPortInfo query(IbPort& port) {
        const auto info = port.query(soon());
        EXPECT_TRUE(done(info));
        return info.value_or(IbPortInfo{});
    }
};

TEST_F(IbFabric, TheOwnPortIsRead) {
    auto port = open({}, 1);
    const auto info = query(port);
    EXPECT_EQ(info.physical_state, IbPhysicalState::kLinkUp);
    EXPECT_EQ(info.state, IbPortState::kInitialize);
    EXPECT_EQ(info.width_supported, 31);
    EXPECT_EQ(info.width_active, kIbWidth4x);
    EXPECT_EQ(info.speed_supported, kIbSpeedSdr | kIbSpeedDdr | kIbSpeedQdr);
}

TEST_F(IbFabric, TheFarEndIsTheSwitchPortOfTheCable) {
    const auto far_end = [](std::vector<std::uint8_t> route, std::uint8_t number) {
        auto port = open(std::move(route), number);
        const auto far = port.far_end(soon());
        EXPECT_TRUE(done(far));
        return far.value_or(IbPortAddress{});
    };
    EXPECT_EQ(far_end({}, 1), (IbPortAddress{"ibsim0", 1, {1}, 1}));
    // From the switch's other port on, the other host.
    EXPECT_EQ(far_end({1}, 2), (IbPortAddress{"ibsim0", 1, {1, 2}, 1}));
}

TEST_F(IbFabric, NothingIsSetOnAPortWithoutALid) {
    auto port = open({1, 2}, 1);
    ASSERT_EQ(query(port).lid, 0);
    const auto set = disable_ib_port(port, {}, soon());
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(query(port).physical_state, IbPhysicalState::kLinkUp);
}

TEST_F(IbFabric, ADisabledSwitchPortCutsTheFarHostOffAndComesBack) {
    const IbPortInfo former = query_at({1}, 3);
    EXPECT_EQ(query_at({1, 3}, 1).physical_state, IbPhysicalState::kLinkUp);
    {
        auto port = open({1}, 3);
        ASSERT_TRUE(done(disable_ib_port(port, kUnmanaged, soon())));
        EXPECT_EQ(query(port).physical_state, IbPhysicalState::kDisabled);
    }
    {
        auto host = open({1, 3}, 1);
        const auto unreachable = host.query(Deadline::after(std::chrono::milliseconds(300)));
        ASSERT_FALSE(unreachable);
        EXPECT_EQ(kernel_errno(unreachable.error()), ETIMEDOUT) << unreachable.error().to_line();
    }
    auto port = open({1}, 3);
    ASSERT_TRUE(done(restore_ib_port(port, former, kUnmanaged, soon())));
    const auto now = query(port);
    EXPECT_EQ(now.width_enabled, former.width_enabled);
    EXPECT_EQ(now.speed_enabled, former.speed_enabled);
    // The simulator does not train: on hardware the port goes on from here by itself.
    EXPECT_EQ(now.physical_state, IbPhysicalState::kPolling);
    EXPECT_FALSE(ib_port_as_before(now, former));
}

TEST_F(IbFabric, AnAnswerAfterATimeoutIsNotTakenForAnother) {
    auto port = open({}, 1);
    static_cast<void>(port.query(Deadline::after(Nanoseconds(0))));
    EXPECT_EQ(query(port).width_active, kIbWidth4x);
}

TEST_F(IbFabric, TheWidthIsNarrowedAndWidenedAgain) {
    auto port = open({1}, 4);
    const auto former = query(port);
    ASSERT_TRUE(done(set_ib_width(port, kIbWidth1x, kUnmanaged, soon())));
    EXPECT_EQ(query(port).width_enabled, kIbWidth1x);
    EXPECT_EQ(query(port).speed_enabled, former.speed_enabled);
    ASSERT_TRUE(done(restore_ib_port(port, former, kUnmanaged, soon())));
    EXPECT_EQ(query(port).width_enabled, former.width_enabled);
}

TEST_F(IbFabric, APortThatWasDisabledIsDisabledAgain) {
    auto port = open({1}, 4);
    ASSERT_TRUE(done(disable_ib_port(port, kUnmanaged, soon())));
    const auto former = query(port);
    ASSERT_TRUE(done(set_ib_width(port, kIbWidth1x, kUnmanaged, soon())));
    EXPECT_NE(query(port).physical_state, IbPhysicalState::kDisabled);
    ASSERT_TRUE(done(restore_ib_port(port, former, kUnmanaged, soon())));
    EXPECT_EQ(query(port).physical_state, IbPhysicalState::kDisabled);
    EXPECT_EQ(query(port).width_enabled, former.width_enabled);
}

TEST_F(IbFabric, TheSpeedIsLoweredAndRaisedAgain) {
    auto port = open({1}, 4);
    const auto former = query(port);
    ASSERT_TRUE(done(set_ib_speed(port, kIbSpeedSdr, kIbExtendedSpeedsOff, kUnmanaged, soon())));
    EXPECT_EQ(query(port).speed_enabled, kIbSpeedSdr);
    EXPECT_EQ(query(port).width_enabled, former.width_enabled);
    ASSERT_TRUE(done(restore_ib_port(port, former, kUnmanaged, soon())));
    EXPECT_EQ(query(port).speed_enabled, former.speed_enabled);
    EXPECT_EQ(query(port).extended_speed_enabled, former.extended_speed_enabled);
}

TEST_F(IbFabric, WhatThePortDoesNotSupportIsRefused) {
    auto port = open({1}, 4);
    const auto former = query(port);
    for (const std::uint8_t mask : std::array<std::uint8_t, 3>{0, 32, 33}) {
        const auto set = set_ib_width(port, mask, kUnmanaged, soon());
        ASSERT_FALSE(set);
        EXPECT_EQ(set.error().kind(), ErrorKind::kInput);
    }
    EXPECT_FALSE(set_ib_speed(port, 8, kIbExtendedSpeedsOff, kUnmanaged, soon()));
    EXPECT_EQ(query(port), former);
}

TEST_F(IbFabric, AMissingDeviceIsARefusal) {
    const auto none = IbPort::open({"mlx5_9", 1, {}, 1});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::kRefused) << none.error().to_line();
}

TEST_F(IbFabric, APortMayMoveToAnotherObject) {
    auto port = open({}, 1);
    IbPort other = std::move(port);
    EXPECT_EQ(query(other).width_active, kIbWidth4x);
    port = std::move(other);
    EXPECT_EQ(query(port).width_active, kIbWidth4x);
}

} // namespace
} // namespace railbreak::injectors::hardware
