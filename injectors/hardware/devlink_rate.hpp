// Rate limits of virtual and scalable functions in the NIC's own scheduler (devlink rate, linux/devlink.h).
//
// A leaf is the scheduling of one function's port, a node groups leaves. mlx5 offers them in switchdev mode for VFs and
// SFs, RoCE included, never for the physical function itself. The kernel counts in bytes/s and drivers take multiples
// of 1 Mbit/s. Needs CAP_NET_ADMIN in the initial user namespace. The channels here are of protocol NETLINK_GENERIC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <linux/netlink.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/hardware/generic_netlink.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// Names one rate object: a leaf by its port, a node by its name.
struct RateKey {
    std::string bus;    ///< "pci"
    std::string device; ///< "0000:03:00.0"
    std::optional<std::uint32_t> port;
    std::string node;
    bool operator==(const RateKey&) const = default;
};
/// "pci/0000:03:00.0/1" or "pci/0000:03:00.0/group1".
[[nodiscard]] std::string to_string(const RateKey& key);

/// Limits of a rate object; 0 = none.
struct RateLimits {
    BitRate share; ///< guaranteed
    BitRate max;
    bool operator==(const RateLimits&) const = default;
};

/// A rate object as the kernel lists it.
struct RateObject {
    RateKey key;
    RateLimits limits;
    std::string parent; ///< name of its node, or empty
    bool operator==(const RateObject&) const = default;
};

/// A devlink port that has a network interface.
struct DevlinkPort {
    std::string bus;
    std::string device;
    std::uint32_t index = 0;
    std::int32_t ifindex = 0;        ///< 0: none
    std::uint16_t flavour = 0;       ///< DEVLINK_PORT_FLAVOUR_*
    std::optional<std::uint16_t> vf; ///< of the flavour that stands for a virtual function: its number
    bool operator==(const DevlinkPort&) const = default;
};

/// kInput unless both limits are whole Mbit/s and the share is not above a given max.
[[nodiscard]] Result<void> check_limits(const RateLimits& limits);

/// DEVLINK_CMD_RATE_GET of one object, and of all (for NetlinkChannel::dump).
[[nodiscard]] NetlinkMessage rate_get_request(const GenericFamily& devlink, const RateKey& key);
[[nodiscard]] NetlinkMessage rate_list_request(const GenericFamily& devlink);
/// DEVLINK_CMD_RATE_SET of one limit: one attribute a message, because the kernel applies them one after another.
[[nodiscard]] NetlinkMessage rate_share_request(const GenericFamily& devlink, const RateKey& key, BitRate share);
[[nodiscard]] NetlinkMessage rate_max_request(const GenericFamily& devlink, const RateKey& key, BitRate max);
/// DEVLINK_CMD_RATE_SET of the parent; an empty name takes the object out of its node.
[[nodiscard]] NetlinkMessage rate_parent_request(const GenericFamily& devlink, const RateKey& key,
                                                 std::string_view parent);
/// Reads one record of an answer. kHarness when it describes no rate object.
[[nodiscard]] Result<RateObject> parse_rate(const nlmsghdr& record);
/// Reads one record of DEVLINK_CMD_PORT_GET. kHarness when it describes no port.
[[nodiscard]] Result<DevlinkPort> parse_devlink_port(const nlmsghdr& record);

/// All rate objects; empty when no driver offers any.
[[nodiscard]] Result<std::vector<RateObject>> list_rates(NetlinkChannel& channel, const GenericFamily& devlink);
/// One rate object. Errors: errno=ENODEV for an unknown device, ENODEV or EINVAL for an unknown object.
[[nodiscard]] Result<RateObject> read_rate(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key);
/// All devlink ports of the host.
[[nodiscard]] Result<std::vector<DevlinkPort>> list_devlink_ports(NetlinkChannel& channel,
                                                                  const GenericFamily& devlink);

/// Sets the largest rate of one object, but proves nothing.
[[nodiscard]] Result<void> write_rate_max(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key,
                                          BitRate max);
/// Sets both limits, in the order that never lets the share exceed the max, and proves it by read-back. After an Error
/// the first may have been set: restore then too.
[[nodiscard]] Result<void> set_rate(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& key,
                                    const RateLimits& wanted);
/// Puts limits and parent back to those of an earlier read_rate, and proves it; kTeardown when they are not there.
[[nodiscard]] Result<void> restore_rate(NetlinkChannel& channel, const GenericFamily& devlink,
                                        const RateObject& former);
/// Makes a node with these limits (errno EEXIST when there is one of that name), or removes it.
[[nodiscard]] Result<void> make_rate_node(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& node,
                                          const RateLimits& limits);
[[nodiscard]] Result<void> remove_rate_node(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& node);
/// Puts a leaf into the node of that name on the same device, or takes it out (empty name); proves it by read-back.
[[nodiscard]] Result<void> set_rate_parent(NetlinkChannel& channel, const GenericFamily& devlink, const RateKey& leaf,
                                           std::string_view node);

} // namespace railbreak::injectors::hardware
