// A truly degraded Ethernet port: the modes that the NIC offers its partner (ethtool netlink, LINKMODES).
//
// Auto-negotiation stays on and only modes of the wanted speed are advertised, so the link trains anew at that speed
// and all traffic, RoCE included, is slower. The link bounces; when the partner cannot do that speed it stays down.
// Undo sends the whole advertised set back: switching auto-negotiation on again is not enough, the narrowed set would
// stay. Needs CAP_NET_ADMIN over the NIC's network namespace. The channels here are of protocol NETLINK_GENERIC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/hardware/generic_netlink.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// One link mode bit that the NIC supports.
struct LinkMode {
    std::uint32_t index = 0; ///< ETHTOOL_LINK_MODE_*_BIT
    std::string name;        ///< the kernel's, for example "25000baseCR/Full" or "Pause"
    bool advertised = false;
    bool operator==(const LinkMode&) const = default;
};
/// The speed in a mode's name ("25000baseCR/Full": 25 Gbit/s), 0 for bits that are no speed ("Autoneg", "Pause").
[[nodiscard]] BitRate speed_of(const LinkMode& mode);

/// Settings of a port, as ETHTOOL_MSG_LINKMODES_GET tells them: what a restore needs.
struct LinkModes {
    bool autonegotiation = false;
    std::optional<BitRate> speed; ///< nullopt: unknown, as on a link that is down
    std::uint8_t duplex = 0xff;   ///< DUPLEX_*; 0xff unknown
    std::optional<std::uint32_t> lanes;
    std::vector<LinkMode> modes; ///< every supported bit, by index; empty when the driver tells none
    bool operator==(const LinkModes&) const = default;
};
/// Indices of the advertised modes, ascending.
[[nodiscard]] std::vector<std::uint32_t> advertised(const LinkModes& modes);

/// The set to advertise for that speed: every advertised bit that is no speed, and the supported modes of that speed.
/// kInput when the NIC supports no such mode; kRefused without auto-negotiation, where both ends would have to be set
/// alike by hand.
[[nodiscard]] Result<std::vector<std::uint32_t>> narrowed_to(const LinkModes& modes, BitRate speed);

/// ETHTOOL_MSG_LINKMODES_GET for the interface.
[[nodiscard]] NetlinkMessage link_modes_get_request(const GenericFamily& ethtool, std::string_view nic);
/// Reads its answer. kHarness when it is no such answer.
[[nodiscard]] Result<LinkModes> parse_link_modes(const nlmsghdr& record);
/// What one ETHTOOL_MSG_LINKMODES_SET writes.
struct LinkModesChange {
    bool autonegotiation = true;
    std::vector<std::uint32_t> advertise; ///< the exact set
    std::optional<BitRate> speed;         ///< only without auto-negotiation
    std::optional<std::uint8_t> duplex;   ///< only without auto-negotiation
};
[[nodiscard]] NetlinkMessage link_modes_set_request(const GenericFamily& ethtool, std::string_view nic,
                                                    const LinkModesChange& change);

/// The port's present settings. kRefused with errno=EOPNOTSUPP when the driver tells none.
[[nodiscard]] Result<LinkModes> read_link_modes(NetlinkChannel& channel, const GenericFamily& ethtool,
                                                std::string_view nic);
/// Advertises only modes of that speed, and proves by read-back that this very set is advertised. The link trains
/// afterwards, in seconds: whether it came up at that speed is read with read_link_modes() after the next link event.
/// `former` is the state to restore later, also after an Error: a failed set may have changed something.
[[nodiscard]] Result<void> set_link_speed(NetlinkChannel& channel, const GenericFamily& ethtool, std::string_view nic,
                                          const LinkModes& former, BitRate speed);
/// Writes auto-negotiation and the whole advertised set back (without auto-negotiation: speed and duplex), and proves
/// it by read-back; kTeardown when it is not there afterwards.
[[nodiscard]] Result<void> restore_link_modes(NetlinkChannel& channel, const GenericFamily& ethtool,
                                              std::string_view nic, const LinkModes& former);

} // namespace railbreak::injectors::hardware
