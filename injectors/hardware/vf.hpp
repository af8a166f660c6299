// Virtual functions through their physical function: transmit rate and link state (linux/if_link.h).
//
// A VF whose link state is "disable" loses its carrier while every other function of the port stays untouched: the
// narrowest "the NIC of this container failed". Needs CAP_NET_ADMIN over the PF's network namespace. Route channel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linux/netlink.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// IFLA_VF_LINK_STATE_*.
enum class VfLinkState : std::uint8_t {
    kAuto,    ///< mirrors the physical function's carrier
    kEnable,  ///< always has carrier
    kDisable, ///< never has carrier
};
/// "auto", "enable", "disable".
[[nodiscard]] std::string_view to_string(VfLinkState state);

/// One virtual function as its physical function lists it.
struct VfRecord {
    std::uint32_t number = 0;
    std::string mac;
    BitRate min_rate; ///< 0 = no guarantee; the kernel's unit is Mbit/s
    BitRate max_rate; ///< 0 = unlimited
    VfLinkState link_state = VfLinkState::kAuto;
    bool operator==(const VfRecord&) const = default;
};

/// RTM_GETLINK with RTEXT_FILTER_VF for the physical function.
[[nodiscard]] NetlinkMessage vf_get_request(std::int32_t ifindex);
/// The VFs in the answer, in the kernel's order; none when the device has none. kHarness when it is no link record.
[[nodiscard]] Result<std::vector<VfRecord>> parse_vfs(const nlmsghdr& record);
/// RTM_SETLINK with IFLA_VF_RATE. kInput for a rate that is no whole number of Mbit/s or beyond 32 bits of them.
[[nodiscard]] Result<NetlinkMessage> vf_rate_request(std::int32_t ifindex, std::uint32_t vf, BitRate min, BitRate max);
/// RTM_SETLINK with IFLA_VF_LINK_STATE.
[[nodiscard]] NetlinkMessage vf_link_state_request(std::int32_t ifindex, std::uint32_t vf, VfLinkState state);

/// All VFs of the device now; empty when it has none.
[[nodiscard]] Result<std::vector<VfRecord>> read_vfs(NetlinkChannel& channel, std::int32_t ifindex);
/// One VF. kInput when the device has no VF of that number.
[[nodiscard]] Result<VfRecord> read_vf(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf);
/// Sets both rates of one VF, but proves nothing. kRefused with errno=EOPNOTSUPP when the driver has no VF rate.
[[nodiscard]] Result<void> write_vf_rates(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf, BitRate min,
                                          BitRate max);
/// Limits what one VF sends (0 = unlimited) and proves it by read-back; its guaranteed rate stays. Not to be mixed with
/// devlink rates on the same VF. kRefused with errno=EOPNOTSUPP when the driver has no VF rate.
[[nodiscard]] Result<void> set_vf_max_rate(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf,
                                           BitRate max);
/// Sets the link state of one VF and proves it by read-back. Errors as above.
[[nodiscard]] Result<void> set_vf_link_state(NetlinkChannel& channel, std::int32_t ifindex, std::uint32_t vf,
                                             VfLinkState state);
/// Puts rates and link state of a VF back to those of an earlier read_vf, writing only what differs, and proves it;
/// kTeardown when they are not there afterwards.
[[nodiscard]] Result<void> restore_vf(NetlinkChannel& channel, std::int32_t ifindex, const VfRecord& former);

} // namespace railbreak::injectors::hardware
