#include "injectors/hardware/devlink_rate.hpp"

#include <fmt/format.h>
#include <linux/devlink.h>

#include "base/check.hpp"
#include "injectors/hardware/refusal.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::uint64_t kMega = 1'000'000;
constexpr std::uint64_t kBitsPerByte = 8;
constexpr std::string_view kMechanism = "rate objects (devlink rate)";

NetlinkMessage rate_message(const GenericFamily& devlink, std::uint8_t command, const RateKey& key) {
    RB_CHECK(key.port.has_value() != !key.node.empty(), "a rate object is either a leaf with a port or a named node");
    auto message = generic_message(devlink, command);
    message.put_string(DEVLINK_ATTR_BUS_NAME, key.bus);
    message.put_string(DEVLINK_ATTR_DEV_NAME, key.device);
    if (key.port) {
        message.put_u32(DEVLINK_ATTR_PORT_INDEX, *key.port);
    } else {
        message.put_string(DEVLINK_ATTR_RATE_NODE_NAME, key.node);
    }
    return message;
}

void put_limits(NetlinkMessage& message, const RateLimits& limits) {
    message.put_u64(DEVLINK_ATTR_RATE_TX_SHARE, limits.share.bytes_per_s());
    message.put_u64(DEVLINK_ATTR_RATE_TX_MAX, limits.max.bytes_per_s());
}

Result<void> send(NetlinkChannel& channel, NetlinkMessage message, const RateKey& key, std::string_view what) {
    auto sent = channel.request(message, fmt::format("{} {}", what, to_string(key)));
    return sent ? sent : fail(name_missing(sent.error(), to_string(key), kMechanism));
}

/// Writes the limits that differ; the guarantee moves first when it shrinks, so that it never exceeds the max.
Result<void> write_limits(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key,
                          const RateLimits& now, const RateLimits& wanted) {
    const auto share = [&]() -> Result<void> {
        return now.share == wanted.share
                   ? Result<void>()
                   : send(channel, rate_share_request(devlink, key, wanted.share), key, "set the guaranteed rate of");
    };
    const auto max = [&]() -> Result<void> {
        return now.max == wanted.max ? Result<void>() : write_rate_max(channel, devlink, key, wanted.max);
    };
    const bool shrinks = wanted.share < now.share;
    if (auto first = shrinks ? share() : max(); !first) {
        return first;
    }
    return shrinks ? max() : share();
}

/// Proves limits and parent.
Result<void> check_object(NetlinkChannel& channel, const GenericFamily& devlink, const RateObject& wanted) {
    const auto seen = read_rate(channel, devlink, wanted.key);
    if (!seen) {
        return fail(Error(seen.error()));
    }
    if (seen->limits == wanted.limits && seen->parent == wanted.parent) {
        return {};
    }
    const auto line = [](const RateObject& object) {
        return fmt::format("share {}, max {}, parent \"{}\"", railbreak::to_string(object.limits.share),
                           railbreak::to_string(object.limits.max), object.parent);
    };
    return fail(
        Error(ErrorKind::kHarness, fmt::format("{}: rates read back differ from those written", to_string(wanted.key)))
            .with("written", line(wanted))
            .with("read", line(*seen)));
}

} // namespace

std::string to_string(const RateKey& key) {
    return fmt::format("{}/{}/{}", key.bus, key.device, key.port ? std::to_string(*key.port) : key.node);
}

Result<void> check_limits(const RateLimits& limits) {
    for (const BitRate rate : {limits.share, limits.max}) {
        if (rate.bits_per_s() % kMega != 0) {
            return fail(Error(ErrorKind::kInput, "a devlink rate is a whole number of Mbit/s")
                            .with("rate_bits_per_s", std::to_string(rate.bits_per_s())));
        }
    }
    if (limits.max != BitRate() && limits.share > limits.max) {
        return fail(ErrorKind::kInput, "a guaranteed rate cannot exceed the largest rate");
    }
    return {};
}

NetlinkMessage rate_get_request(const GenericFamily& devlink, const RateKey& key) {
    return rate_message(devlink, DEVLINK_CMD_RATE_GET, key);
}

NetlinkMessage rate_list_request(const GenericFamily& devlink) {
    return generic_message(devlink, DEVLINK_CMD_RATE_GET);
}

NetlinkMessage rate_share_request(const GenericFamily& devlink, const RateKey& key, BitRate share) {
    auto message = rate_message(devlink, DEVLINK_CMD_RATE_SET, key);
    message.put_u64(DEVLINK_ATTR_RATE_TX_SHARE, share.bytes_per_s());
    return message;
}

NetlinkMessage rate_max_request(const GenericFamily& devlink, const RateKey& key, BitRate max) {
    auto message = rate_message(devlink, DEVLINK_CMD_RATE_SET, key);
    message.put_u64(DEVLINK_ATTR_RATE_TX_MAX, max.bytes_per_s());
    return message;
}

NetlinkMessage rate_parent_request(const GenericFamily& devlink, const RateKey& key, std::string_view parent) {
    auto message = rate_message(devlink, DEVLINK_CMD_RATE_SET, key);
    message.put_string(DEVLINK_ATTR_RATE_PARENT_NODE_NAME, parent);
    return message;
}

Result<RateObject> parse_rate(const nlmsghdr& record) {
    const auto attributes = generic_attributes(record);
    const auto type = attributes.value<std::uint16_t>(DEVLINK_ATTR_RATE_TYPE);
    RateObject object;
    object.key.bus = attributes.text(DEVLINK_ATTR_BUS_NAME);
    object.key.device = attributes.text(DEVLINK_ATTR_DEV_NAME);
    if (type == DEVLINK_RATE_TYPE_LEAF) {
        object.key.port = attributes.value<std::uint32_t>(DEVLINK_ATTR_PORT_INDEX);
    } else if (type == DEVLINK_RATE_TYPE_NODE) {
        object.key.node = attributes.text(DEVLINK_ATTR_RATE_NODE_NAME);
    }
    if (generic_command(record) != DEVLINK_CMD_RATE_NEW || (!object.key.port && object.key.node.empty())) {
        return fail(ErrorKind::kHarness, "the kernel's answer describes no rate object");
    }
    const auto rate = [&](int attribute) {
        return BitRate::bits_per_s(attributes.value<std::uint64_t>(attribute).value_or(0) * kBitsPerByte);
    };
    object.limits = {rate(DEVLINK_ATTR_RATE_TX_SHARE), rate(DEVLINK_ATTR_RATE_TX_MAX)};
    object.parent = attributes.text(DEVLINK_ATTR_RATE_PARENT_NODE_NAME);
    return object;
}

Result<DevlinkPort> parse_devlink_port(const nlmsghdr& record) {
    const auto attributes = generic_attributes(record);
    const auto index = attributes.value<std::uint32_t>(DEVLINK_ATTR_PORT_INDEX);
    if (generic_command(record) != DEVLINK_CMD_PORT_NEW || !index) {
        return fail(ErrorKind::kHarness, "the kernel's answer describes no devlink port");
    }
    DevlinkPort port;
    port.bus = attributes.text(DEVLINK_ATTR_BUS_NAME);
    port.device = attributes.text(DEVLINK_ATTR_DEV_NAME);
    port.index = *index;
    port.ifindex =
        static_cast<std::int32_t>(attributes.value<std::uint32_t>(DEVLINK_ATTR_PORT_NETDEV_IFINDEX).value_or(0));
    port.flavour = attributes.value<std::uint16_t>(DEVLINK_ATTR_PORT_FLAVOUR).value_or(0);
    if (port.flavour == DEVLINK_PORT_FLAVOUR_PCI_VF) {
        port.vf = attributes.value<std::uint16_t>(DEVLINK_ATTR_PORT_PCI_VF_NUMBER);
    }
    return port;
}

Result<std::vector<RateObject>> list_rates(NetlinkChannel& channel, const GenericFamily& devlink) {
    std::vector<RateObject> objects;
    auto message = rate_list_request(devlink);
    const auto asked = channel.dump(
        message, "list the devlink rates",
        [&](const nlmsghdr& record) {
            if (auto object = parse_rate(record)) {
                objects.push_back(std::move(*object));
            }
        },
        [&] { objects.clear(); });
    if (!asked) {
        return fail(Error(asked.error()));
    }
    return objects;
}

Result<RateObject> read_rate(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key) {
    auto message = rate_get_request(devlink, key);
    Result<RateObject> object = fail(ErrorKind::kHarness, fmt::format("no answer about {}", to_string(key)));
    const auto asked = channel.query(message, fmt::format("read the rates of {}", to_string(key)),
                                     [&](const nlmsghdr& record) { object = parse_rate(record); });
    if (!asked) {
        return fail(name_missing(asked.error(), to_string(key), kMechanism));
    }
    return object;
}

Result<std::vector<DevlinkPort>> list_devlink_ports(NetlinkChannel& channel, const GenericFamily& devlink) {
    std::vector<DevlinkPort> ports;
    auto message = generic_message(devlink, DEVLINK_CMD_PORT_GET);
    const auto asked = channel.dump(
        message, "list the devlink ports",
        [&](const nlmsghdr& record) {
            if (auto port = parse_devlink_port(record)) {
                ports.push_back(std::move(*port));
            }
        },
        [&] { ports.clear(); });
    if (!asked) {
        return fail(Error(asked.error()));
    }
    return ports;
}

Result<void> write_rate_max(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key, BitRate max) {
    return send(channel, rate_max_request(devlink, key, max), key, "set the largest rate of");
}

Result<void> set_rate(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key,
                      const RateLimits& wanted) {
    if (auto sound = check_limits(wanted); !sound) {
        return sound;
    }
    auto object = read_rate(channel, devlink, key);
    if (!object) {
        return fail(std::move(object.error()));
    }
    if (auto written = write_limits(channel, devlink, key, object->limits, wanted); !written) {
        return written;
    }
    object->limits = wanted;
    return check_object(channel, devlink, *object);
}

Result<void> restore_rate(NetlinkChannel& channel, const GenericFamily& devlink, const RateObject& former) {
    const auto now = read_rate(channel, devlink, former.key);
    if (!now) {
        return fail(as_teardown(now.error()));
    }
    auto done = write_limits(channel, devlink, former.key, now->limits, former.limits);
    if (done && now->parent != former.parent) {
        done = send(channel, rate_parent_request(devlink, former.key, former.parent), former.key, "set the parent of");
    }
    if (done) {
        done = check_object(channel, devlink, former);
    }
    return done ? done : fail(as_teardown(done.error()));
}

Result<void> make_rate_node(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& node,
                            const RateLimits& limits) {
    if (auto sound = check_limits(limits); !sound) {
        return sound;
    }
    auto message = rate_message(devlink, DEVLINK_CMD_RATE_NEW, node);
    put_limits(message, limits);
    return send(channel, std::move(message), node, "make the rate node");
}

Result<void> remove_rate_node(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& node) {
    return send(channel, rate_message(devlink, DEVLINK_CMD_RATE_DEL, node), node, "remove the rate node");
}

Result<void> set_rate_parent(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& leaf,
                             std::string_view node) {
    auto object = read_rate(channel, devlink, leaf);
    if (!object) {
        return fail(std::move(object.error()));
    }
    if (auto sent = send(channel, rate_parent_request(devlink, leaf, node), leaf, "set the parent of"); !sent) {
        return sent;
    }
    object->parent = node;
    return check_object(channel, devlink, *object);
}

} // namespace railbreak::injectors::hardware
