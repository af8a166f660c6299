// Readings of a network namespace over netlink, as records of HostOps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injectors/host_ops.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors {

/// Every interface.
[[nodiscard]] Result<std::vector<LinkRecord>> list_links(NetlinkChannel& channel);
/// See HostOps::records().
[[nodiscard]] Result<std::vector<std::string>> list_records(NetlinkChannel& channel, RecordKind kind,
                                                            std::int32_t ifindex);
/// See HostOps::filters().
[[nodiscard]] Result<std::vector<FilterRecord>> list_filters(NetlinkChannel& channel, std::int32_t ifindex);
/// See HostOps::default_route_devices().
[[nodiscard]] Result<std::vector<std::int32_t>> list_default_route_devices(NetlinkChannel& channel);
/// See HostOps::addresses().
[[nodiscard]] Result<std::vector<AddressRecord>> list_addresses(NetlinkChannel& channel);
/// See HostOps::route_devices().
[[nodiscard]] Result<std::vector<std::int32_t>> list_route_devices(NetlinkChannel& channel, const std::string& address);
/// Policy rules of both families, raw.
[[nodiscard]] Result<std::vector<std::string>> list_rules(NetlinkChannel& channel);

} // namespace railbreak::injectors
