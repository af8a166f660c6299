// Link modes: exact messages, recorded answers, and what a device without modes says.
#include "injectors/hardware/link_modes.hpp"

#include <cerrno>

#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>

#include "tests/unit/injectors/hardware/replay_kernel.hpp"

namespace railbreak::injectors::hardware {
namespace {

const GenericFamily kEthtool{"ethtool", 0x15, 1};

constexpr BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

/// Recorded from a veth of Linux 6.18: forced 10 Gbit/s full duplex, 121 known bits of which none is supported.
constexpr std::string_view kVethAnswer =
    "5c000000 15000000 04000000 61340000 04010000 18000180 08000100 03000000 09000200 6e696330 00000000 "
    "05000200 00000000 10000380 08000200 79000000 04000380 08000500 10270000 05000600 01000000 05000a00 00000000";

/// Recorded from an e1000e of Linux 6.1 with its link up.
constexpr std::string_view kE1000eAnswer =
    "44010000 14000000 04000000 a7000000 04010000 18000180 08000100 02000000 09000200 65746830 00000000 05000200 "
    "01000000 f8000380 08000200 5d000000 ec000380 24000180 08000100 00000000 11000200 31306261 7365542f 48616c66 "
    "00000000 04000300 24000180 08000100 01000000 11000200 31306261 7365542f 46756c6c 00000000 04000300 24000180 "
    "08000100 02000000 12000200 31303062 61736554 2f48616c 66000000 04000300 24000180 08000100 03000000 12000200 "
    "31303062 61736554 2f46756c 6c000000 04000300 24000180 08000100 05000000 13000200 31303030 62617365 542f4675 "
    "6c6c0000 04000300 1c000180 08000100 06000000 0c000200 4175746f 6e656700 04000300 18000180 08000100 07000000 "
    "07000200 54500000 04000300 08000500 e8030000 05000600 01000000 05000a00 00000000";

/// A gigabit copper NIC (the bits of e1000e) that advertises the modes with `advertised`.
LinkModes copper(const std::vector<std::uint32_t>& advertised) {
    LinkModes modes;
    modes.autonegotiation = true;
    modes.speed = mbit(1000);
    modes.duplex = DUPLEX_FULL;
    modes.modes = {{0, "10baseT/Half", false},
                   {1, "10baseT/Full", false},
                   {2, "100baseT/Half", false},
                   {3, "100baseT/Full", false},
                   {5, "1000baseT/Full", false},
                   {6, "Autoneg", false},
                   {7, "TP", false}};
    for (LinkMode& mode : modes.modes) {
        mode.advertised = std::find(advertised.begin(), advertised.end(), mode.index) != advertised.end();
    }
    return modes;
}
const std::vector<std::uint32_t> kEverything{0, 1, 2, 3, 5, 6, 7};

std::string answer(const LinkModes& modes) {
    auto message = generic_message(kEthtool, ETHTOOL_MSG_LINKMODES_GET_REPLY);
    message.put_u8(ETHTOOL_A_LINKMODES_AUTONEG, modes.autonegotiation ? 1 : 0);
    nlattr* ours = message.begin_nest(ETHTOOL_A_LINKMODES_OURS | NLA_F_NESTED);
    message.put_u32(ETHTOOL_A_BITSET_SIZE, 93);
    nlattr* bits = message.begin_nest(ETHTOOL_A_BITSET_BITS | NLA_F_NESTED);
    for (const LinkMode& mode : modes.modes) {
        nlattr* bit = message.begin_nest(ETHTOOL_A_BITSET_BITS_BIT | NLA_F_NESTED);
        message.put_u32(ETHTOOL_A_BITSET_BIT_INDEX, mode.index);
        message.put_string(ETHTOOL_A_BITSET_BIT_NAME, mode.name);
        if (mode.advertised) {
            message.put_bytes(ETHTOOL_A_BITSET_BIT_VALUE, nullptr, 0);
        }
        message.end_nest(bit);
    }
    message.end_nest(bits);
    message.end_nest(ours);
    message.put_u32(ETHTOOL_A_LINKMODES_SPEED,
                    modes.speed ? static_cast<std::uint32_t>(modes.speed->bits_per_s() / 1'000'000) : UINT32_MAX);
    message.put_u8(ETHTOOL_A_LINKMODES_DUPLEX, modes.duplex);
    return bytes_of(message);
}

Exchange asks(const LinkModes& seen) {
    return {bytes_of(link_modes_get_request(kEthtool, "nic0")), {answer(seen)}};
}
Exchange sets(const LinkModesChange& change, int error = 0) {
    return {bytes_of(link_modes_set_request(kEthtool, "nic0", change)), {}, error};
}

TEST(LinkModesMessage, TheQuestionIsExactlyThis) {
    EXPECT_EQ(to_hex(bytes_of(link_modes_get_request(kEthtool, "nic0"))),
              "24000000 15000000 00000000 00000000 04010000 10000180 09000200 6e696330 00000000");
}

TEST(LinkModesMessage, TheWholeSetWithoutAMask) {
    EXPECT_EQ(to_hex(bytes_of(link_modes_set_request(kEthtool, "nic0", {true, {1, 2}, mbit(10), 1}))),
              "50000000 15000000 00000000 00000000 05010000 10000180 09000200 6e696330 00000000 "
              "05000200 01000000 24000380 04000100 1c000380 0c000180 08000100 01000000 0c000180 08000100 02000000");
}

TEST(LinkModesMessage, SpeedAndDuplexOnlyWhenForced) {
    EXPECT_EQ(to_hex(bytes_of(link_modes_set_request(kEthtool, "nic0", {false, {}, mbit(10'000), 1}))),
              "48000000 15000000 00000000 00000000 05010000 10000180 09000200 6e696330 00000000 "
              "05000200 00000000 0c000380 04000100 04000380 08000500 10270000 05000600 01000000");
}

TEST(LinkModesMessage, AVethsAnswerIsRead) {
    const auto record = recorded(kVethAnswer);
    const auto modes = parse_link_modes(*record.header());
    ASSERT_TRUE(done(modes));
    LinkModes expected;
    expected.speed = mbit(10'000);
    expected.duplex = DUPLEX_FULL;
    EXPECT_EQ(*modes, expected);
}

TEST(LinkModesMessage, AnE1000esAnswerIsRead) {
    const auto record = recorded(kE1000eAnswer);
    const auto modes = parse_link_modes(*record.header());
    ASSERT_TRUE(done(modes));
    EXPECT_EQ(*modes, copper(kEverything));
}

TEST(LinkModesMessage, SupportedAndAdvertisedBitsAreToldApart) {
    const NetlinkMessage record{std::string_view(answer(copper({3, 5, 6})))};
    const auto modes = parse_link_modes(*record.header());
    ASSERT_TRUE(done(modes));
    EXPECT_EQ(*modes, copper({3, 5, 6}));
    EXPECT_EQ(advertised(*modes), (std::vector<std::uint32_t>{3, 5, 6}));
}

TEST(LinkModesMessage, AnUnknownSpeedIsNone) {
    auto down = copper(kEverything);
    down.speed.reset();
    down.duplex = DUPLEX_UNKNOWN;
    const NetlinkMessage record{std::string_view(answer(down))};
    EXPECT_EQ(parse_link_modes(*record.header()).value_or(LinkModes{}), down);
}

TEST(LinkModesMessage, AnotherRecordHoldsNoModes) {
    const auto record = recorded("14000000 15000000 00000000 00000000 05010000");
    EXPECT_FALSE(parse_link_modes(*record.header()));
}

TEST(LinkModeSpeed, IsInTheKernelsName) {
    const auto speed = [](std::string name) { return speed_of({0, std::move(name), true}); };
    EXPECT_EQ(speed("10baseT/Half"), mbit(10));
    EXPECT_EQ(speed("10baseT1L/Full"), mbit(10));
    EXPECT_EQ(speed("2500baseX/Full"), mbit(2500));
    EXPECT_EQ(speed("10000baseR_FEC"), mbit(10'000));
    EXPECT_EQ(speed("400000baseCR8/Full"), mbit(400'000));
    EXPECT_EQ(speed("Autoneg"), BitRate());
    EXPECT_EQ(speed("FEC_RS"), BitRate());
    EXPECT_EQ(speed("100"), BitRate());
    EXPECT_EQ(speed(""), BitRate());
}

TEST(NarrowedTo, KeepsWhatIsNoSpeed) {
    EXPECT_EQ(narrowed_to(copper(kEverything), mbit(100)).value_or(std::vector<std::uint32_t>{}),
              (std::vector<std::uint32_t>{2, 3, 6, 7}));
    // Of the other bits only those that were advertised.
    EXPECT_EQ(narrowed_to(copper({3, 5, 6}), mbit(100)).value_or(std::vector<std::uint32_t>{}),
              (std::vector<std::uint32_t>{2, 3, 6}));
}

TEST(NarrowedTo, RefusesWhatTheNicCannotDo) {
    const auto unknown = narrowed_to(copper(kEverything), mbit(2500));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kInput);
    EXPECT_FALSE(narrowed_to(copper(kEverything), BitRate()));
    auto forced = copper(kEverything);
    forced.autonegotiation = false;
    const auto refused = narrowed_to(forced, mbit(100));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
}

TEST(LinkModesReplay, TheSpeedIsNarrowedAndTheWholeSetComesBack) {
    const auto former = copper(kEverything);
    const LinkModesChange narrow{true, {2, 3, 6, 7}, {}, {}};
    const LinkModesChange full{true, kEverything, {}, {}};
    ReplayKernel kernel({sets(narrow), asks(copper({2, 3, 6, 7})), sets(full), asks(former)});
    EXPECT_TRUE(done(set_link_speed(kernel.channel(), kEthtool, "nic0", former, mbit(100))));
    EXPECT_TRUE(done(restore_link_modes(kernel.channel(), kEthtool, "nic0", former)));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(LinkModesReplay, AnUndoThatLeftTheNarrowSetIsATeardownError) {
    const auto former = copper(kEverything);
    ReplayKernel kernel({sets({true, kEverything, {}, {}}), asks(copper({2, 3, 6, 7}))});
    const auto restored = restore_link_modes(kernel.channel(), kEthtool, "nic0", former);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST(LinkModesReplay, AForcedPortGetsSpeedAndDuplexBack) {
    auto former = copper({3});
    former.autonegotiation = false;
    former.speed = mbit(100);
    ReplayKernel kernel({sets({false, {3}, mbit(100), DUPLEX_FULL}), asks(former)});
    EXPECT_TRUE(done(restore_link_modes(kernel.channel(), kEthtool, "nic0", former)));
}

TEST(LinkModesReplay, ADriverWithoutSettingsIsNamed) {
    ReplayKernel kernel({{bytes_of(link_modes_get_request(kEthtool, "nic0")), {}, EOPNOTSUPP}});
    const auto modes = read_link_modes(kernel.channel(), kEthtool, "nic0");
    ASSERT_FALSE(modes);
    EXPECT_EQ(modes.error().kind(), ErrorKind::kRefused);
}

TEST_F(VethNamespace, AVethTellsItsSpeedButTakesNoModes) {
    const auto ethtool = find_family(*generic_, "ethtool");
    if (!ethtool) {
        GTEST_SKIP() << ethtool.error().to_line();
    }
    const auto modes = read_link_modes(*generic_, *ethtool, "nic0");
    ASSERT_TRUE(done(modes));
    EXPECT_TRUE(modes->modes.empty());
    EXPECT_FALSE(set_link_speed(*generic_, *ethtool, "nic0", *modes, mbit(100)));
    // The kernel understands the request: it is the driver that says no.
    auto message = link_modes_set_request(*ethtool, "nic0", {true, {3, 5}, {}, {}});
    const auto sent = generic_->request(message, "set link modes");
    ASSERT_FALSE(sent);
    EXPECT_EQ(kernel_errno(sent.error()), EOPNOTSUPP) << sent.error().to_line();
    const auto loopback = read_link_modes(*generic_, *ethtool, "lo");
    ASSERT_FALSE(loopback);
    EXPECT_EQ(loopback.error().kind(), ErrorKind::kRefused) << loopback.error().to_line();
}

} // namespace
} // namespace railbreak::injectors::hardware
