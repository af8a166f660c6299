// DCB class rates: exact messages, answers as the kernel's uapi lays them out, and what a device without DCB says.
#include "injectors/hardware/dcb.hpp"

#include <cerrno>

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "tests/unit/injectors/hardware/replay_kernel.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}
constexpr BitRate gbit(std::uint64_t value) {
    return mbit(value * 1000);
}
ClassRates all(BitRate rate) {
    ClassRates rates;
    rates.fill(rate);
    return rates;
}

/// Answer to IEEE_GET of a port whose priority i is in class 7 - i, class 0 is limited to 100 Gbit/s, class 3 to
/// 25.5 Gbit/s, and DCBX belongs to the host in its IEEE version.
constexpr std::string_view kStateAnswer = R"(
    b0000000 4e000000 00000000 00000000  00150000  # nlmsghdr RTM_GETDCB; dcbmsg DCB_CMD_IEEE_GET
    09000100 65746830 00000000                     # DCB_ATTR_IFNAME "eth0"
    88000d80                                       # DCB_ATTR_IEEE
    3f000100 00 08 00 00000000 00000000 00000000 00000000 00000000 00000000
             07060504 03020100 00000000 00000000 00000000 00000000 00000000 00000000 00  # IEEE_ETS: prio_tc at 27
    44000700 00e1f505 00000000 00000000 00000000 00000000 00000000 60198501 00000000
             00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
    05000e00 09000000                              # DCB_ATTR_DCBX: HOST | VER_IEEE
)";

std::string strip_comments(std::string_view text) {
    std::string kept;
    bool comment = false;
    for (const char c : text) {
        comment = c == '#' || (comment && c != '\n');
        kept += comment ? ' ' : c;
    }
    return kept;
}

/// An answer to IEEE_GET with these rates.
std::string state_answer(const ClassRates& rates, std::optional<std::uint8_t> dcbx) {
    NetlinkMessage message(RTM_GETDCB, 0);
    message.append_header(dcbmsg{0, DCB_CMD_IEEE_GET, 0});
    message.put_string(DCB_ATTR_IFNAME, "eth0");
    nlattr* nest = message.begin_nest(DCB_ATTR_IEEE);
    ieee_maxrate kernel{};
    for (std::size_t i = 0; i < kTrafficClasses; ++i) {
        kernel.tc_maxrate[i] = rates[i].bits_per_s() / 1000;
    }
    message.put_bytes(DCB_ATTR_IEEE_MAXRATE, &kernel, sizeof kernel);
    message.end_nest(nest);
    if (dcbx) {
        message.put_u8(DCB_ATTR_DCBX, *dcbx);
    }
    return bytes_of(message);
}

/// The reply to IEEE_SET: the driver's verdict is one byte.
std::string verdict(int error) {
    NetlinkMessage message(RTM_SETDCB, 0);
    message.append_header(dcbmsg{0, DCB_CMD_IEEE_SET, 0});
    message.put_u8(DCB_ATTR_IEEE, static_cast<std::uint8_t>(-error));
    return bytes_of(message);
}

Exchange asks(const ClassRates& seen, std::optional<std::uint8_t> dcbx = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE) {
    return {bytes_of(dcb_get_request("eth0")), {state_answer(seen, dcbx)}};
}
Exchange sets(const ClassRates& rates, int error = 0) {
    return {bytes_of(*dcb_set_request("eth0", rates)), {verdict(error)}};
}

TEST(DcbMessage, AQuestionIsExactlyThis) {
    EXPECT_EQ(to_hex(bytes_of(dcb_get_request("nic0"))),
              "20000000 4e000000 00000000 00000000 00150000 09000100 6e696330 00000000");
}

TEST(DcbMessage, EightRatesInKbitPerSecond) {
    ClassRates rates{};
    rates[0] = gbit(100);
    rates[7] = mbit(1);
    const auto message = dcb_set_request("nic0", rates);
    ASSERT_TRUE(done(message));
    EXPECT_EQ(to_hex(bytes_of(*message)), "68000000 4f000000 00000000 00000000 00140000 09000100 6e696330 00000000 "
                                          "48000d80 44000700 00e1f505 00000000 00000000 00000000 00000000 00000000 "
                                          "00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
                                          "e8030000 00000000");
}

TEST(DcbMessage, ARateThatIsNoWholeKbitIsRefused) {
    const auto message = dcb_set_request("nic0", all(BitRate::bits_per_s(1500)));
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().kind(), ErrorKind::kInput);
}

TEST(DcbMessage, TheStateIsRead) {
    const auto record = recorded(strip_comments(kStateAnswer));
    const auto state = parse_dcb_state(*record.header());
    ASSERT_TRUE(done(state));
    ASSERT_TRUE(state->max_rates);
    ClassRates rates{};
    rates[0] = gbit(100);
    rates[3] = mbit(25500);
    EXPECT_EQ(*state->max_rates, rates);
    ASSERT_TRUE(state->class_of_priority);
    EXPECT_EQ(*state->class_of_priority, (std::array<std::uint8_t, 8>{7, 6, 5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(state->dcbx, DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE);
    EXPECT_TRUE(host_owns_dcb(*state));
}

TEST(DcbMessage, AnotherRecordIsNoState) {
    const auto record = recorded("14000000 4e000000 00000000 00000000 00150000");
    EXPECT_FALSE(parse_dcb_state(*record.header()));
    const auto truncated = recorded("10000000 4e000000 00000000 00000000");
    EXPECT_FALSE(parse_dcb_state(*truncated.header()));
}

TEST(DcbMessage, TheVerdictIsTheInnerByte) {
    const auto good = recorded("1c000000 4f000000 00000000 00000000 00140000 05000d00 00000000");
    EXPECT_EQ(parse_dcb_set_status(*good.header()), 0);
    const auto invalid = recorded("1c000000 4f000000 00000000 00000000 00140000 05000d00 ea000000");
    EXPECT_EQ(parse_dcb_set_status(*invalid.header()), EINVAL);
    const auto unsupported = recorded("1c000000 4f000000 00000000 00000000 00140000 05000d00 a1000000");
    EXPECT_EQ(parse_dcb_set_status(*unsupported.header()), EOPNOTSUPP);
    // -ENOTSUPP (524) cut to eight bits is -12: another errno, but still a failure.
    const auto wrapped = recorded("1c000000 4f000000 00000000 00000000 00140000 05000d00 f4000000");
    EXPECT_NE(parse_dcb_set_status(*wrapped.header()), 0);
    const auto missing = recorded("14000000 4f000000 00000000 00000000 00140000");
    EXPECT_FALSE(parse_dcb_set_status(*missing.header()));
}

TEST(DcbOwner, OnlyTheHostMayDecide) {
    const auto owned = [](std::uint8_t dcbx) { return host_owns_dcb(DcbState{{}, {}, dcbx}); };
    EXPECT_TRUE(host_owns_dcb(DcbState{}));
    EXPECT_TRUE(owned(DCB_CAP_DCBX_HOST));
    EXPECT_FALSE(owned(DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_LLD_MANAGED));
    EXPECT_FALSE(owned(DCB_CAP_DCBX_VER_IEEE | DCB_CAP_DCBX_VER_CEE));
}

TEST(Mlx5ClassRate, RoundsDownToWhatThePortKeeps) {
    const auto rate = [](BitRate wanted) { return mlx5_class_rate(wanted).value_or(BitRate()); };
    EXPECT_EQ(rate(mbit(100)), mbit(100));
    EXPECT_EQ(rate(mbit(199)), mbit(100));
    EXPECT_EQ(rate(mbit(12'345)), mbit(12'300));
    EXPECT_EQ(rate(mbit(25'500)), mbit(25'500));
    EXPECT_EQ(rate(mbit(25'501)), mbit(25'500));
    EXPECT_EQ(rate(mbit(25'999)), mbit(25'500));
    EXPECT_EQ(rate(mbit(26'000)), mbit(26'000));
    EXPECT_EQ(rate(mbit(26'999)), mbit(26'000));
    EXPECT_EQ(rate(gbit(255)), gbit(255));
    EXPECT_FALSE(mlx5_class_rate(mbit(99)));
    const auto above = mlx5_class_rate(gbit(256));
    ASSERT_FALSE(above);
    EXPECT_EQ(above.error().kind(), ErrorKind::kRefused);
}

TEST(Mlx5ClassRate, WhatIsPlannedIsKeptBySteps) {
    // The kernel's two steps: below 26 Gbit/s an eight-bit number of 100 Mbit/s, from there one of 1 Gbit/s.
    for (std::uint64_t wanted = 100; wanted <= 255'000; wanted += 37) {
        const std::uint64_t planned = mlx5_class_rate(mbit(wanted))->bits_per_s() / 1'000'000;
        const std::uint64_t step = planned < 26'000 ? 100 : 1000;
        const std::uint64_t kept = static_cast<std::uint8_t>(planned / step) * step;
        ASSERT_EQ(kept, planned) << wanted;
        ASSERT_LE(planned, wanted);
        ASSERT_LT(wanted - planned, wanted < 26'000 ? 500U : 1000U) << wanted;
    }
}

TEST(Mlx5ClassRate, TheWrapIsNamed) {
    EXPECT_EQ(mlx5_wrapped_rate(gbit(300)), gbit(44));
    EXPECT_EQ(mlx5_wrapped_rate(gbit(400)), gbit(144));
}

TEST(PlanClassRate, FollowsTheDriver) {
    EXPECT_EQ(plan_class_rate("mlx5_core", mbit(12'345)).value_or(BitRate()), mbit(12'300));
    EXPECT_EQ(plan_class_rate("mlxsw_spectrum", BitRate::bits_per_s(1'234'567)).value_or(BitRate()),
              BitRate::bits_per_s(1'234'000));
    EXPECT_FALSE(plan_class_rate("other", BitRate::bits_per_s(999)));
}

TEST(DcbReplay, ALimitIsSetAndReadBack) {
    const auto wanted = all(gbit(10));
    ReplayKernel kernel({asks(ClassRates{}), sets(wanted), asks(wanted)});
    EXPECT_TRUE(done(set_class_rates(kernel.channel(), "eth0", wanted)));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DcbReplay, TheDriversRefusalIsNotTakenForSuccess) {
    const auto wanted = all(gbit(10));
    ReplayKernel kernel({asks(ClassRates{}), sets(wanted, EINVAL)});
    const auto set = set_class_rates(kernel.channel(), "eth0", wanted);
    ASSERT_FALSE(set);
    EXPECT_EQ(kernel_errno(set.error()), EINVAL);
}

TEST(DcbReplay, ADriverThatIgnoresTheRequestIsFound) {
    const auto wanted = all(gbit(10));
    ReplayKernel kernel({asks(all(gbit(20))), sets(wanted), asks(all(gbit(20)))});
    const auto set = set_class_rates(kernel.channel(), "eth0", wanted);
    ASSERT_FALSE(set);
    EXPECT_NE(fact(set.error(), "read").find("20 Gbit/s"), std::string::npos);
    EXPECT_EQ(set.error().advice(), "");
}

TEST(DcbReplay, TheWrapOfOldKernelsIsNamed) {
    const auto wanted = all(gbit(300));
    ReplayKernel kernel({asks(ClassRates{}), sets(wanted), asks(all(gbit(44)))});
    const auto set = set_class_rates(kernel.channel(), "eth0", wanted);
    ASSERT_FALSE(set);
    EXPECT_NE(set.error().advice().find("255 Gbit/s"), std::string::npos) << set.error().to_line();
}

TEST(DcbReplay, NothingIsWrittenWhereAnAgentOwnsDcb) {
    ReplayKernel kernel({asks(ClassRates{}, DCB_CAP_DCBX_VER_IEEE)});
    const auto set = set_class_rates(kernel.channel(), "eth0", all(gbit(10)));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DcbReplay, NothingIsWrittenWithoutMaxrate) {
    NetlinkMessage answer(RTM_GETDCB, 0);
    answer.append_header(dcbmsg{0, DCB_CMD_IEEE_GET, 0});
    answer.end_nest(answer.begin_nest(DCB_ATTR_IEEE));
    ReplayKernel kernel({{bytes_of(dcb_get_request("eth0")), {bytes_of(answer)}}});
    const auto set = set_class_rates(kernel.channel(), "eth0", all(gbit(10)));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
}

TEST(DcbReplay, TheFormerRatesComeBack) {
    ClassRates former{};
    former[5] = gbit(40);
    ReplayKernel kernel({sets(former), asks(former)});
    EXPECT_TRUE(done(restore_class_rates(kernel.channel(), "eth0", former)));
}

TEST(DcbReplay, AnUndoThatDoesNotHoldIsATeardownError) {
    ReplayKernel kernel({sets(ClassRates{}), asks(all(gbit(10)))});
    const auto restored = restore_class_rates(kernel.channel(), "eth0", ClassRates{});
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST_F(VethNamespace, AVethHasNoDcb) {
    const auto state = read_dcb(*route_, "nic0");
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().kind(), ErrorKind::kRefused) << state.error().to_line();
    EXPECT_EQ(kernel_errno(state.error()), EOPNOTSUPP);
    const auto set = set_class_rates(*route_, "nic0", all(gbit(10)));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
    auto message = dcb_set_request("nic0", all(gbit(10)));
    const auto sent = route_->request(*message, "set class rates");
    ASSERT_FALSE(sent);
    // Where this test's user namespace is not the initial one the kernel refuses before it looks at the device.
    EXPECT_TRUE(kernel_errno(sent.error()) == EOPNOTSUPP || kernel_errno(sent.error()) == EPERM);
}

TEST_F(VethNamespace, DcbOfAMissingInterfaceIsNamed) {
    const auto state = read_dcb(*route_, "none0");
    ASSERT_FALSE(state);
    EXPECT_EQ(kernel_errno(state.error()), ENODEV);
}

} // namespace
} // namespace railbreak::injectors::hardware
