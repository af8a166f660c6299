// What the NICs of this host have carried so far.
#pragma once

#include "harness/launch/rpc.hpp"

namespace railbreak::agent {

/// {"nics": [{"name", "tx_bytes", "rx_bytes"}]} of every interface of the network namespace: the kernel's own counters
/// (rtnl_link_stats64), headers included. Error: netlink does not answer.
[[nodiscard]] Result<launch::Json> nic_counters();

} // namespace railbreak::agent
