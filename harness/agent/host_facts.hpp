// What the agent says of its host, apart from faults.
#pragma once

#include <string>

#include "harness/launch/rpc.hpp"

namespace railbreak::agent {

/// The host's name as it knows itself; empty where it has none.
[[nodiscard]] std::string host_name();
/// Inode of the network namespace; empty where the kernel does not say.
[[nodiscard]] std::string netns_inode();
/// The kernel's id of this boot.
[[nodiscard]] std::string boot_id();

/// {"nics": [{"name", "tx_bytes", "rx_bytes"}]} of every interface of the network namespace: what it has carried since
/// it exists, by the kernel's own counters (rtnl_link_stats64), headers included. Error: netlink does not answer.
[[nodiscard]] Result<launch::Json> nic_counters();

} // namespace railbreak::agent
