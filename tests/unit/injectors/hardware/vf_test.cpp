// Virtual functions: exact messages, a list of VFs as the kernel lays it out, and what a device without VFs says.
#include "injectors/hardware/vf.hpp"

#include <cerrno>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "tests/unit/injectors/hardware/replay_kernel.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

/// RTM_NEWLINK of interface 7 with two VFs: 0 limited to 1000 Mbit/s with 10 guaranteed, 1 without carrier.
constexpr std::string_view kTwoVfs =
    "a4000000 10000000 00000000 00000000 00000100 07000000 43100000 00000000"                   // nlmsghdr, ifinfomsg
    "08001500 02000000"                                                                         // IFLA_NUM_VF
    "7c001680"                                                                                  // IFLA_VFINFO_LIST
    "4c000180"                                                                                  // IFLA_VF_INFO
    "28000100 00000000 02000000 00010000 00000000 00000000 00000000 00000000 00000000 00000000" // IFLA_VF_MAC
    "10000600 00000000 0a000000 e8030000"                                                       // IFLA_VF_RATE
    "0c000500 00000000 00000000 04000300" // IFLA_VF_LINK_STATE, an empty other
    "2c000180"
    "10000600 01000000 00000000 00000000"
    "0c000500 01000000 02000000"
    "0c000400 01000000 01000000"; // IFLA_VF_SPOOFCHK

VfRecord vf(std::uint32_t number, BitRate min, BitRate max, VfLinkState state) {
    VfRecord record;
    record.number = number;
    record.min_rate = min;
    record.max_rate = max;
    record.link_state = state;
    return record;
}

/// A link record that lists these VFs.
std::string link_answer(const std::vector<VfRecord>& vfs) {
    NetlinkMessage message(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = 7;
    message.append_header(header);
    nlattr* list = message.begin_nest(IFLA_VFINFO_LIST);
    for (const VfRecord& each : vfs) {
        nlattr* info = message.begin_nest(IFLA_VF_INFO);
        const ifla_vf_rate rate{each.number, static_cast<std::uint32_t>(each.min_rate.bits_per_s() / 1'000'000),
                                static_cast<std::uint32_t>(each.max_rate.bits_per_s() / 1'000'000)};
        message.put_bytes(IFLA_VF_RATE, &rate, sizeof rate);
        const ifla_vf_link_state state{each.number, static_cast<std::uint32_t>(each.link_state)};
        message.put_bytes(IFLA_VF_LINK_STATE, &state, sizeof state);
        message.end_nest(info);
    }
    message.end_nest(list);
    return bytes_of(message);
}

Exchange asks(const VfRecord& seen) {
    return {bytes_of(vf_get_request(7)), {link_answer({vf(0, {}, {}, VfLinkState::kAuto), seen})}};
}
Exchange sets_rate(const VfRecord& to, int error = 0) {
    return {bytes_of(*vf_rate_request(7, to.number, to.min_rate, to.max_rate)), {}, error};
}
Exchange sets_state(const VfRecord& to, int error = 0) {
    return {bytes_of(vf_link_state_request(7, to.number, to.link_state)), {}, error};
}

TEST(VfMessage, TheQuestionAsksForVfs) {
    EXPECT_EQ(to_hex(bytes_of(vf_get_request(3))), "28000000 12000000 00000000 00000000 00000000 03000000 00000000 "
                                                   "00000000 08001d00 01000000");
}

TEST(VfMessage, OneAttributeAMessage) {
    const auto rate = vf_rate_request(3, 2, mbit(5), mbit(250));
    ASSERT_TRUE(done(rate));
    EXPECT_EQ(to_hex(bytes_of(*rate)), "38000000 13000000 00000000 00000000 00000000 03000000 00000000 00000000 "
                                       "18001680 14000180 10000600 02000000 05000000 fa000000");
    EXPECT_EQ(to_hex(bytes_of(vf_link_state_request(3, 2, VfLinkState::kDisable))),
              "34000000 13000000 00000000 00000000 00000000 03000000 00000000 00000000 "
              "14001680 10000180 0c000500 02000000 02000000");
}

TEST(VfMessage, ARateIsAWholeNumberOfMbit) {
    EXPECT_FALSE(vf_rate_request(3, 2, {}, BitRate::bits_per_s(1'500'000)));
    EXPECT_FALSE(vf_rate_request(3, 2, {}, mbit(1ULL << 32U)));
    EXPECT_TRUE(done(vf_rate_request(3, 2, {}, mbit(400'000))));
}

TEST(VfMessage, TheVfsAreRead) {
    const auto record = recorded(kTwoVfs);
    const auto vfs = parse_vfs(*record.header());
    ASSERT_TRUE(done(vfs));
    ASSERT_EQ(vfs->size(), 2U);
    auto first = vf(0, mbit(10), mbit(1000), VfLinkState::kAuto);
    first.mac = "02:00:00:00:00:01";
    EXPECT_EQ((*vfs)[0], first);
    EXPECT_EQ((*vfs)[1], vf(1, {}, {}, VfLinkState::kDisable));
}

TEST(VfMessage, AnotherRecordIsNoLink) {
    const auto record = recorded("10000000 10000000 00000000 00000000");
    EXPECT_FALSE(parse_vfs(*record.header()));
    const auto address = recorded("20000000 14000000 00000000 00000000 00000100 07000000 43100000 00000000");
    EXPECT_FALSE(parse_vfs(*address.header()));
}

TEST(VfReplay, ARateKeepsTheGuarantee) {
    const auto before = vf(1, mbit(10), {}, VfLinkState::kAuto);
    const auto after = vf(1, mbit(10), mbit(500), VfLinkState::kAuto);
    ReplayKernel kernel({asks(before), sets_rate(after), asks(after)});
    EXPECT_TRUE(done(set_vf_max_rate(kernel.channel(), 7, 1, mbit(500))));
}

TEST(VfReplay, ADriverWithoutRatesIsNamed) {
    const auto before = vf(1, {}, {}, VfLinkState::kAuto);
    ReplayKernel kernel({asks(before), sets_rate(vf(1, {}, mbit(500), VfLinkState::kAuto), EOPNOTSUPP)});
    const auto set = set_vf_max_rate(kernel.channel(), 7, 1, mbit(500));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kRefused);
    EXPECT_NE(set.error().message().find("VF rate"), std::string::npos);
}

TEST(VfReplay, ARateThatDidNotTakeIsFound) {
    const auto before = vf(1, {}, {}, VfLinkState::kAuto);
    const auto wanted = vf(1, {}, mbit(500), VfLinkState::kAuto);
    ReplayKernel kernel({asks(before), sets_rate(wanted), asks(before)});
    const auto set = set_vf_max_rate(kernel.channel(), 7, 1, mbit(500));
    ASSERT_FALSE(set);
    EXPECT_NE(fact(set.error(), "written"), fact(set.error(), "read"));
}

TEST(VfReplay, TheLinkOfAVfGoesAndComesBack) {
    const auto up = vf(1, mbit(10), mbit(500), VfLinkState::kAuto);
    const auto down = vf(1, mbit(10), mbit(500), VfLinkState::kDisable);
    ReplayKernel kernel({asks(up), sets_state(down), asks(down), asks(down), sets_state(up), asks(up)});
    EXPECT_TRUE(done(set_vf_link_state(kernel.channel(), 7, 1, VfLinkState::kDisable)));
    EXPECT_TRUE(done(restore_vf(kernel.channel(), 7, up)));
}

TEST(VfReplay, RestoreWritesOnlyWhatDiffers) {
    const auto former = vf(1, mbit(10), mbit(500), VfLinkState::kEnable);
    ReplayKernel kernel({asks(former), asks(former)});
    EXPECT_TRUE(done(restore_vf(kernel.channel(), 7, former)));
}

TEST(VfReplay, AVfThatIsGoneIsATeardownError) {
    ReplayKernel kernel({asks(vf(1, {}, {}, VfLinkState::kAuto))});
    const auto restored = restore_vf(kernel.channel(), 7, vf(2, {}, {}, VfLinkState::kAuto));
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST_F(VethNamespace, AVethHasNoVfs) {
    const auto vfs = read_vfs(*route_, ifindex_);
    ASSERT_TRUE(done(vfs));
    EXPECT_TRUE(vfs->empty());
    const auto set = set_vf_max_rate(*route_, ifindex_, 0, mbit(100));
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().kind(), ErrorKind::kInput);
}

TEST_F(VethNamespace, TheKernelUnderstandsTheRequestsAndAVethRefusesThem) {
    auto rate = vf_rate_request(ifindex_, 0, {}, mbit(100));
    ASSERT_TRUE(done(rate));
    const auto rated = route_->request(*rate, "set a VF rate");
    ASSERT_FALSE(rated);
    EXPECT_EQ(kernel_errno(rated.error()), EOPNOTSUPP) << rated.error().to_line();
    auto state = vf_link_state_request(ifindex_, 0, VfLinkState::kDisable);
    const auto stated = route_->request(state, "set a VF link state");
    ASSERT_FALSE(stated);
    EXPECT_EQ(kernel_errno(stated.error()), EOPNOTSUPP) << stated.error().to_line();
}

} // namespace
} // namespace railbreak::injectors::hardware
