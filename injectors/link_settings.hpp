// The kernel settings (sysctls) that an interface has for IPv6. The kernel throws them away when the interface's MTU
// falls below what IPv6 needs, and makes new ones with default values when it rises again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Smallest MTU with which an interface has IPv6 (RFC 8200, section 5; IPV6_MIN_MTU of the kernel).
inline constexpr std::uint32_t kSmallestIpv6Mtu = 1280;

/// Name below /proc/sys/net/ipv6 with "*" for the interface ("conf/*/accept_ra"), and value.
using LinkSettings = std::vector<std::pair<std::string, std::string>>;

/// Every setting of the interface that can be read; none where it has no IPv6. Settings that the kernel derives from
/// something else are left out.
[[nodiscard]] Result<LinkSettings> read_link_settings(HostOps& ops, const std::string& nic);

/// Writes those of `former` that have another value now. Every one gets its chance; the first failure is reported.
[[nodiscard]] Result<void> restore_link_settings(HostOps& ops, const std::string& nic, const LinkSettings& former);

/// Names of settings that do not have their value of `former`.
[[nodiscard]] Result<std::vector<std::string>> changed_link_settings(HostOps& ops, const std::string& nic,
                                                                     const LinkSettings& former);

} // namespace railbreak::injectors
