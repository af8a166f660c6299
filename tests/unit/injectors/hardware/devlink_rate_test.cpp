// devlink rates: exact messages, answers as the kernel's uapi lays them out, and the order of changes.
#include "injectors/hardware/devlink_rate.hpp"

#include <cerrno>

#include <linux/devlink.h>

#include "tests/unit/injectors/hardware/replay_kernel.hpp"

namespace railbreak::injectors::hardware {
namespace {

const GenericFamily kDevlink{"devlink", 0x1a, 1};
const RateKey kLeaf{"pci", "0000:03:00.0", 1, ""};
const RateKey kNode{"pci", "0000:03:00.0", {}, "group1"};

constexpr BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

/// A leaf with 1 Mbit/s guaranteed and at most 100 Gbit/s, in the node "group1".
constexpr std::string_view kLeafAnswer = "64000000 1a000000 00000000 00000000 4c010000 "
                                         "08000100 70636900 "                            // BUS_NAME "pci"
                                         "11000200 30303030 3a30333a 30302e30 00000000 " // DEV_NAME
                                         "0600a500 00000000 "                            // RATE_TYPE leaf
                                         "08000300 01000000 "                            // PORT_INDEX
                                         "0c00a600 48e80100 00000000 "                   // RATE_TX_SHARE, bytes/s
                                         "0c00a700 00dd0ee9 02000000 "                   // RATE_TX_MAX, bytes/s
                                         "0b00a900 67726f75 70310000";                   // RATE_PARENT_NODE_NAME

std::string answer(const RateObject& object) {
    auto message = generic_message(kDevlink, DEVLINK_CMD_RATE_NEW);
    message.put_string(DEVLINK_ATTR_BUS_NAME, object.key.bus);
    message.put_string(DEVLINK_ATTR_DEV_NAME, object.key.device);
    message.put_u16(DEVLINK_ATTR_RATE_TYPE,
                    object.key.port ? std::uint16_t{DEVLINK_RATE_TYPE_LEAF} : std::uint16_t{DEVLINK_RATE_TYPE_NODE});
    if (object.key.port) {
        message.put_u32(DEVLINK_ATTR_PORT_INDEX, *object.key.port);
    } else {
        message.put_string(DEVLINK_ATTR_RATE_NODE_NAME, object.key.node);
    }
    message.put_u64(DEVLINK_ATTR_RATE_TX_SHARE, object.limits.share.bytes_per_s());
    message.put_u64(DEVLINK_ATTR_RATE_TX_MAX, object.limits.max.bytes_per_s());
    if (!object.parent.empty()) {
        message.put_string(DEVLINK_ATTR_RATE_PARENT_NODE_NAME, object.parent);
    }
    return bytes_of(message);
}

Exchange asks(const RateObject& seen) {
    return {bytes_of(rate_get_request(kDevlink, seen.key)), {answer(seen)}};
}
Exchange sets_share(const RateKey& key, BitRate share, int error = 0) {
    return {bytes_of(rate_share_request(kDevlink, key, share)), {}, error};
}
Exchange sets_max(const RateKey& key, BitRate max, int error = 0) {
    return {bytes_of(rate_max_request(kDevlink, key, max)), {}, error};
}
RateObject leaf(BitRate share, BitRate max, std::string parent = "") {
    return {kLeaf, {share, max}, std::move(parent)};
}

TEST(DevlinkRateMessage, ALimitOfALeafInBytesPerSecond) {
    EXPECT_EQ(to_hex(bytes_of(rate_max_request(kDevlink, kLeaf, mbit(100'000)))),
              "44000000 1a000000 00000000 00000000 4b010000 08000100 70636900 "
              "11000200 30303030 3a30333a 30302e30 00000000 08000300 01000000 0c00a700 00dd0ee9 02000000");
    EXPECT_EQ(to_hex(bytes_of(rate_share_request(kDevlink, kNode, mbit(1)))),
              "48000000 1a000000 00000000 00000000 4b010000 08000100 70636900 "
              "11000200 30303030 3a30333a 30302e30 00000000 0b00a800 67726f75 70310000 0c00a600 48e80100 00000000");
}

TEST(DevlinkRateMessage, ALeafIsRead) {
    const auto record = recorded(kLeafAnswer);
    const auto object = parse_rate(*record.header());
    ASSERT_TRUE(done(object));
    EXPECT_EQ(*object, leaf(mbit(1), mbit(100'000), "group1"));
    EXPECT_EQ(to_string(object->key), "pci/0000:03:00.0/1");
}

TEST(DevlinkRateMessage, ANodeIsRead) {
    const RateObject node{kNode, {{}, mbit(40'000)}, ""};
    const NetlinkMessage record{std::string_view(answer(node))};
    const auto object = parse_rate(*record.header());
    ASSERT_TRUE(done(object));
    EXPECT_EQ(*object, node);
    EXPECT_EQ(to_string(object->key), "pci/0000:03:00.0/group1");
}

TEST(DevlinkRateMessage, AnotherRecordIsNoRate) {
    const auto empty = recorded("14000000 1a000000 00000000 00000000 4c010000");
    EXPECT_FALSE(parse_rate(*empty.header()));
    EXPECT_FALSE(parse_devlink_port(*empty.header()));
}

TEST(DevlinkRateMessage, APortIsRead) {
    auto message = generic_message(kDevlink, DEVLINK_CMD_PORT_NEW);
    message.put_string(DEVLINK_ATTR_BUS_NAME, "pci");
    message.put_string(DEVLINK_ATTR_DEV_NAME, "0000:03:00.0");
    message.put_u32(DEVLINK_ATTR_PORT_INDEX, 65535);
    message.put_u16(DEVLINK_ATTR_PORT_TYPE, DEVLINK_PORT_TYPE_ETH);
    message.put_u32(DEVLINK_ATTR_PORT_NETDEV_IFINDEX, 7);
    message.put_string(DEVLINK_ATTR_PORT_NETDEV_NAME, "eth0");
    message.put_u16(DEVLINK_ATTR_PORT_FLAVOUR, DEVLINK_PORT_FLAVOUR_PHYSICAL);
    const auto port = parse_devlink_port(*message.header());
    ASSERT_TRUE(done(port));
    EXPECT_EQ(*port, (DevlinkPort{"pci", "0000:03:00.0", 65535, 7, DEVLINK_PORT_FLAVOUR_PHYSICAL}));
}

TEST(DevlinkLimits, AreWholeMegabitsAndConsistent) {
    EXPECT_TRUE(done(check_limits({mbit(1), mbit(2)})));
    EXPECT_TRUE(done(check_limits({mbit(1), {}})));
    EXPECT_FALSE(check_limits({{}, BitRate::bits_per_s(1'500'000)}));
    EXPECT_FALSE(check_limits({mbit(3), mbit(2)}));
}

TEST(DevlinkReplay, BothLimitsOneMessageEach) {
    ReplayKernel kernel({asks(leaf({}, {})), sets_max(kLeaf, mbit(1000)), sets_share(kLeaf, mbit(10)),
                         asks(leaf(mbit(10), mbit(1000)))});
    EXPECT_TRUE(done(set_rate(kernel.channel(), kDevlink, kLeaf, {mbit(10), mbit(1000)})));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DevlinkReplay, AShrinkingGuaranteeGoesFirst) {
    ReplayKernel kernel({asks(leaf(mbit(500), mbit(1000))), sets_share(kLeaf, mbit(10)), sets_max(kLeaf, mbit(100)),
                         asks(leaf(mbit(10), mbit(100)))});
    EXPECT_TRUE(done(set_rate(kernel.channel(), kDevlink, kLeaf, {mbit(10), mbit(100)})));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DevlinkReplay, TheKernelsRefusalStopsTheRest) {
    ReplayKernel kernel({asks(leaf({}, {})), sets_max(kLeaf, mbit(900'000), EINVAL)});
    const auto set = set_rate(kernel.channel(), kDevlink, kLeaf, {mbit(10), mbit(900'000)});
    ASSERT_FALSE(set);
    EXPECT_EQ(kernel_errno(set.error()), EINVAL);
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DevlinkReplay, ARateThatDidNotTakeIsFound) {
    ReplayKernel kernel({asks(leaf({}, {})), sets_max(kLeaf, mbit(100)), asks(leaf({}, {}))});
    EXPECT_FALSE(set_rate(kernel.channel(), kDevlink, kLeaf, {{}, mbit(100)}));
}

TEST(DevlinkReplay, RestorePutsLimitsAndParentBack) {
    const Exchange parent{bytes_of(rate_parent_request(kDevlink, kLeaf, "group1")), {}};
    ReplayKernel kernel({asks(leaf({}, mbit(100))), sets_max(kLeaf, {}), parent, asks(leaf({}, {}, "group1"))});
    EXPECT_TRUE(done(restore_rate(kernel.channel(), kDevlink, leaf({}, {}, "group1"))));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DevlinkReplay, AnObjectThatIsGoneIsATeardownError) {
    ReplayKernel kernel({{bytes_of(rate_get_request(kDevlink, kLeaf)), {}, ENODEV}});
    const auto restored = restore_rate(kernel.channel(), kDevlink, leaf({}, {}));
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
}

TEST(DevlinkReplay, ANodeIsMadeUsedAndRemoved) {
    auto made = generic_message(kDevlink, DEVLINK_CMD_RATE_NEW);
    made.put_string(DEVLINK_ATTR_BUS_NAME, "pci");
    made.put_string(DEVLINK_ATTR_DEV_NAME, "0000:03:00.0");
    made.put_string(DEVLINK_ATTR_RATE_NODE_NAME, "group1");
    made.put_u64(DEVLINK_ATTR_RATE_TX_SHARE, 0);
    made.put_u64(DEVLINK_ATTR_RATE_TX_MAX, 1'250'000'000);
    auto removed = generic_message(kDevlink, DEVLINK_CMD_RATE_DEL);
    removed.put_string(DEVLINK_ATTR_BUS_NAME, "pci");
    removed.put_string(DEVLINK_ATTR_DEV_NAME, "0000:03:00.0");
    removed.put_string(DEVLINK_ATTR_RATE_NODE_NAME, "group1");
    const auto parent = [](std::string_view node) {
        return Exchange{bytes_of(rate_parent_request(kDevlink, kLeaf, node)), {}};
    };
    ReplayKernel kernel({{bytes_of(made), {}},
                         asks(leaf({}, {})),
                         parent("group1"),
                         asks(leaf({}, {}, "group1")),
                         asks(leaf({}, {}, "group1")),
                         parent(""),
                         asks(leaf({}, {})),
                         {bytes_of(removed), {}}});
    auto& channel = kernel.channel();
    EXPECT_TRUE(done(make_rate_node(channel, kDevlink, kNode, {{}, mbit(10'000)})));
    EXPECT_TRUE(done(set_rate_parent(channel, kDevlink, kLeaf, "group1")));
    EXPECT_TRUE(done(set_rate_parent(channel, kDevlink, kLeaf, "")));
    EXPECT_TRUE(done(remove_rate_node(channel, kDevlink, kNode)));
    EXPECT_EQ(kernel.finish(), "");
}

TEST(DevlinkReplay, ObjectsAndPortsAreListed) {
    auto port = generic_message(kDevlink, DEVLINK_CMD_PORT_NEW);
    port.put_string(DEVLINK_ATTR_BUS_NAME, "pci");
    port.put_string(DEVLINK_ATTR_DEV_NAME, "0000:03:00.0");
    port.put_u32(DEVLINK_ATTR_PORT_INDEX, 1);
    ReplayKernel kernel({{bytes_of(rate_list_request(kDevlink)), {answer(leaf({}, mbit(5))), answer({kNode, {}, ""})}},
                         {bytes_of(generic_message(kDevlink, DEVLINK_CMD_PORT_GET)), {bytes_of(port)}}});
    const auto rates = list_rates(kernel.channel(), kDevlink);
    ASSERT_TRUE(done(rates));
    EXPECT_EQ(*rates, (std::vector<RateObject>{leaf({}, mbit(5)), {kNode, {}, ""}}));
    const auto ports = list_devlink_ports(kernel.channel(), kDevlink);
    ASSERT_TRUE(done(ports));
    EXPECT_EQ(*ports, (std::vector<DevlinkPort>{{"pci", "0000:03:00.0", 1, 0, 0}}));
}

} // namespace
} // namespace railbreak::injectors::hardware
