// netem messages byte by byte: what stands in them, and what is read back from what the kernel answers.
#include "injectors/netem.hpp"

#include <cstring>

#include <gtest/gtest.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

namespace railbreak::injectors {
namespace {

constexpr TcHandle kHandle = tc_handle(0xfa03, 0);

/// TCA_OPTIONS of a message.
const nlattr* options_of(const NetlinkMessage& message) {
    return nlmsg_find_attr(message.header(), sizeof(tcmsg), TCA_OPTIONS);
}

/// The bytes of one attribute behind the fixed structure.
std::string attribute(const nlattr* options, int type) {
    const auto* first =
        reinterpret_cast<const nlattr*>(static_cast<const char*>(nla_data(options)) + sizeof(tc_netem_qopt));
    const nlattr* found = nla_find(first, nla_len(options) - static_cast<int>(sizeof(tc_netem_qopt)), type);
    return found == nullptr
               ? "missing"
               : std::string(static_cast<const char*>(nla_data(found)), static_cast<std::size_t>(nla_len(found)));
}

template <class T> std::string bytes(const T& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

tc_netem_qopt plain_of(const nlattr* options) {
    tc_netem_qopt plain{};
    std::memcpy(&plain, nla_data(options), sizeof plain);
    return plain;
}

TEST(Netem, EveryCountOfMillionthsSurvivesTheWayThereAndBack) {
    for (Millionths part = 0; part <= kMillion; ++part) {
        ASSERT_EQ(netem_millionths(netem_fraction(part)), part);
    }
    EXPECT_EQ(netem_fraction(0), 0U);
    EXPECT_EQ(netem_fraction(kMillion), 0xFFFFFFFFU);
    EXPECT_EQ(netem_fraction(10'000), 42'949'673U); // 42949672.95
}

TEST(Netem, AMessageNamesEveryAttributeWhateverIsWanted) {
    const NetlinkMessage message = netem_message(0, 7, kTcRoot, kHandle, {{.loss = 10'000}, 2000});
    tcmsg header{};
    std::memcpy(&header, NLMSG_DATA(message.header()), sizeof header);
    EXPECT_EQ(message.header()->nlmsg_type, RTM_NEWQDISC);
    EXPECT_EQ(header.tcm_ifindex, 7);
    EXPECT_EQ(header.tcm_parent, kTcRoot);
    EXPECT_EQ(header.tcm_handle, kHandle);
    const nlattr* options = options_of(message);
    const tc_netem_qopt expected{
        .latency = 0, .limit = 2000, .loss = 42'949'673, .gap = 0, .duplicate = 0, .jitter = 0};
    EXPECT_EQ(bytes(plain_of(options)), bytes(expected));
    EXPECT_EQ(attribute(options, TCA_NETEM_LATENCY64), std::string(8, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_JITTER64), std::string(8, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_CORR), std::string(12, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_REORDER), std::string(8, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_CORRUPT), std::string(8, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_RATE), std::string(16, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_ECN), std::string(4, '\0'));
    EXPECT_EQ(attribute(options, TCA_NETEM_LOSS), "missing"); // its absence means losses one by one
}

TEST(Netem, DelaysAreNanosecondsAndReorderingNeedsAGap) {
    const PacketTreatment treatment{.delay = Nanoseconds(5'000'000'001),
                                    .jitter = Nanoseconds(1'000'003),
                                    .corrupt = kMillion,
                                    .duplicate = 500'000,
                                    .reorder = 250'000};
    const NetlinkMessage message = netem_message(0, 7, kTcRoot, kHandle, {treatment, 1});
    const nlattr* options = options_of(message);
    EXPECT_EQ(attribute(options, TCA_NETEM_LATENCY64), bytes(std::int64_t{5'000'000'001}));
    EXPECT_EQ(attribute(options, TCA_NETEM_JITTER64), bytes(std::int64_t{1'000'003}));
    EXPECT_EQ(attribute(options, TCA_NETEM_REORDER), bytes(tc_netem_reorder{1'073'741'824, 0}));
    EXPECT_EQ(attribute(options, TCA_NETEM_CORRUPT), bytes(tc_netem_corrupt{0xFFFFFFFF, 0}));
    EXPECT_EQ(plain_of(options).gap, 1U);
    EXPECT_EQ(plain_of(options).duplicate, 2'147'483'648U);
}

/// h is the part that the bad state lets through: a loss of everything there is 0.
TEST(Netem, BurstsAreSentAsTheKernelMeansThem) {
    const GilbertElliott chain{
        .good_to_bad = 20'000, .bad_to_good = 200'000, .loss_in_bad = 900'000, .loss_in_good = 10'000};
    const NetlinkMessage message = netem_message(0, 7, kTcRoot, kHandle, {{.bursts = chain}, 1});
    const std::string loss = attribute(options_of(message), TCA_NETEM_LOSS);
    nlattr head{};
    ASSERT_EQ(loss.size(), sizeof head + sizeof(tc_netem_gemodel));
    std::memcpy(&head, loss.data(), sizeof head);
    EXPECT_EQ(head.nla_type, NETEM_LOSS_GE);
    const tc_netem_gemodel expected{.p = 85'899'346, .r = 858'993'459, .h = 429'496'730, .k1 = 42'949'673};
    EXPECT_EQ(loss.substr(sizeof head), bytes(expected));
    const NetlinkMessage whole = netem_message(0, 7, kTcRoot, kHandle, {{.bursts = GilbertElliott{1, 1}}, 1});
    tc_netem_gemodel plain{};
    std::memcpy(&plain, attribute(options_of(whole), TCA_NETEM_LOSS).data() + sizeof head, sizeof plain);
    EXPECT_EQ(plain.h, 0U);
    EXPECT_EQ(plain.k1, 0U);
}

TEST(Netem, ReadsBackWhatWasSent) {
    const PacketTreatment all{.delay = Nanoseconds(5'000'000'001),
                              .jitter = Nanoseconds(1'000'003),
                              .loss = 1,
                              .corrupt = 999'999,
                              .duplicate = 123'456,
                              .reorder = 7};
    const PacketTreatment bursts{.bursts = GilbertElliott{1, 2, 999'997, 4}};
    for (const PacketTreatment& treatment : {PacketTreatment{}, all, bursts}) {
        const NetemShape shape{treatment, 4321};
        const NetlinkMessage message = netem_message(0, 7, kTcRoot, kHandle, shape);
        EXPECT_EQ(parse_netem(options_of(message)), shape);
    }
    EXPECT_EQ(parse_netem(nullptr), std::nullopt);
    NetlinkMessage fragment(RTM_NEWQDISC, 0);
    fragment.append_header(tcmsg{});
    fragment.put_u32(TCA_OPTIONS, 1);
    EXPECT_EQ(parse_netem(options_of(fragment)), std::nullopt);
}

} // namespace
} // namespace railbreak::injectors
