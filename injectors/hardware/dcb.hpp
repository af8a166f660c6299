// The NIC's own rate limit per traffic class: DCB "ieee maxrate" (linux/dcbnl.h, struct ieee_maxrate).
//
// It acts on everything that the port sends in that class, RoCE included, which tc cannot see. Four traps are closed
// here: the driver's verdict travels in an inner byte of a reply that otherwise says success; a driver without the
// operation ignores the attribute silently; mlx5 rounds down to coarse steps and older kernels wrap rates above
// 255 Gbit/s; and a DCBX agent may own the settings and overwrite them. So every write is checked by both the inner
// byte and a read-back. Writing needs CAP_NET_ADMIN in the initial user namespace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <linux/netlink.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors::hardware {

/// Traffic classes of a port (IEEE_8021QAZ_MAX_TCS).
inline constexpr std::size_t kTrafficClasses = 8;
/// The limit of each traffic class; 0 = unlimited. The kernel's unit is kbit/s.
using ClassRates = std::array<BitRate, kTrafficClasses>;
/// "1 Gbit/s, unlimited, ...", one for each class; once where all are alike.
[[nodiscard]] std::string to_line(const ClassRates& rates);

/// What a port answers to DCB_CMD_IEEE_GET, as far as a rate limit needs it.
struct DcbState {
    std::optional<ClassRates> max_rates; ///< nullopt: the driver has no maxrate
    /// Traffic class of each of the eight priorities (struct ieee_ets, prio_tc); nullopt when not told.
    std::optional<std::array<std::uint8_t, kTrafficClasses>> class_of_priority;
    std::optional<std::uint8_t> dcbx; ///< DCB_CAP_DCBX_* bits; nullopt: no DCBX in this driver
    bool operator==(const DcbState&) const = default;
};

/// True when nobody but the host decides about the settings: no DCBX at all, or DCBX with DCB_CAP_DCBX_HOST and
/// without DCB_CAP_DCBX_LLD_MANAGED.
[[nodiscard]] bool host_owns_dcb(const DcbState& state);

/// RTM_GETDCB / DCB_CMD_IEEE_GET for the interface.
[[nodiscard]] NetlinkMessage dcb_get_request(std::string_view nic);
/// RTM_SETDCB / DCB_CMD_IEEE_SET with all eight rates. kInput for a rate that is no whole number of kbit/s.
[[nodiscard]] Result<NetlinkMessage> dcb_set_request(std::string_view nic, const ClassRates& rates);
/// Reads the answer to dcb_get_request. kHarness when it is no such answer.
[[nodiscard]] Result<DcbState> parse_dcb_state(const nlmsghdr& record);
/// errno that the driver answered to dcb_set_request, from the reply's inner byte (0 = done). A code that does not fit
/// eight bits arrives wrapped, so the number is a hint; that it is not 0 is certain. kHarness when the byte is missing.
[[nodiscard]] Result<int> parse_dcb_set_status(const nlmsghdr& record);

/// The largest rate not above `wanted` that an mlx5 port keeps exactly: steps of 100 Mbit/s up to 25.5 Gbit/s, of
/// 1 Gbit/s up to 255 Gbit/s. kInput below 100 Mbit/s; kRefused above 255 Gbit/s, where kernels before the end of 2025
/// wrap silently and newer ones answer EINVAL.
[[nodiscard]] Result<BitRate> mlx5_class_rate(BitRate wanted);
/// What an mlx5 kernel with the wrap makes of a rate above 255 Gbit/s (300 Gbit/s becomes 44): names the known issue
/// when it is read back.
[[nodiscard]] BitRate mlx5_wrapped_rate(BitRate wanted);
/// mlx5_class_rate for the driver "mlx5_core", else `wanted` cut to whole kbit/s; the read-back decides for the rest.
[[nodiscard]] Result<BitRate> plan_class_rate(std::string_view driver, BitRate wanted);

/// The port's present state. kRefused with errno=EOPNOTSUPP when the driver has no DCB.
[[nodiscard]] Result<DcbState> read_dcb(NetlinkChannel& channel, std::string_view nic);
/// Sets all eight limits and looks at the driver's own verdict, but proves nothing. kRefused with errno=EOPNOTSUPP when
/// the driver has no DCB. Route channel.
[[nodiscard]] Result<void> write_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& rates);
/// kHarness unless the limits read are those written; names the known issue when the driver wrapped them.
[[nodiscard]] Result<void> check_class_rates(std::string_view nic, const ClassRates& written, const ClassRates& read);
/// kRefused when the driver has no limits, or a DCBX agent owns the port's settings.
[[nodiscard]] Result<void> check_dcb_usable(std::string_view nic, const DcbState& state);
/// Sets all eight limits and proves it by read-back. Refused without maxrate in the driver and when a DCBX agent owns
/// the port. The state must have been read (and kept for restore_class_rates) before; after an Error from the write on,
/// some classes may have changed, so restore then too. Route channel.
[[nodiscard]] Result<void> set_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& wanted);
/// Writes the former eight limits back and proves it by read-back; kTeardown when they are not there afterwards.
[[nodiscard]] Result<void> restore_class_rates(NetlinkChannel& channel, std::string_view nic, const ClassRates& former);

} // namespace railbreak::injectors::hardware
