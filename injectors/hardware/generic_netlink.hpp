// Generic netlink: families (devlink, ethtool, ...) are found by name, since the kernel numbers them at run time.
//
// The channels taken here are opened with protocol NETLINK_GENERIC.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <linux/netlink.h>

#include "base/error.hpp"
#include "injectors/hardware/attributes.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// A generic netlink family of the running kernel.
struct GenericFamily {
    std::string name;
    std::uint16_t id = 0; ///< message type of its requests
    std::uint8_t version = 0;
    bool operator==(const GenericFamily&) const = default;
};

/// CTRL_CMD_GETFAMILY for that name (linux/genetlink.h).
[[nodiscard]] NetlinkMessage family_request(std::string_view name);
/// Reads the controller's answer; kHarness when it lacks the id.
[[nodiscard]] Result<GenericFamily> parse_family(const nlmsghdr& record);
/// The family of that name. kRefused with errno=ENOENT when the kernel has none (not built in, module not loaded).
[[nodiscard]] Result<GenericFamily> find_family(NetlinkChannel& channel, std::string_view name);

/// A request of the family with its command; attributes follow.
[[nodiscard]] NetlinkMessage generic_message(const GenericFamily& family, std::uint8_t command, int flags = 0);
/// The command of a family's record, 0 when the record is too short.
[[nodiscard]] std::uint8_t generic_command(const nlmsghdr& record);
/// The attributes of a family's record.
[[nodiscard]] AttributeView generic_attributes(const nlmsghdr& record);

} // namespace railbreak::injectors::hardware
