// The kernel objects of a lab: namespaces, bridges, veths, addresses, routes, neighbours and shapers.
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/processes.hpp"

namespace railbreak::lab {

/// The namespaces of a lab that is up. As long as one of these descriptors is open, its namespace exists.
struct Fabric {
    UniqueFd switch_netns;
    std::vector<UniqueFd> host_netns; ///< by host index
    std::vector<NamespaceId> ids;     ///< the switch, then the hosts
};

/// Builds everything that a valid spec asks for. kRefused without the capabilities; kHarness when the kernel refuses
/// a step. The calling thread stays in its namespace; on failure everything made so far vanishes.
[[nodiscard]] Result<Fabric> build_fabric(const LabSpec& spec);

/// Waits until the switch namespace that the calling thread is in has no veth left: the kernel removes the hosts'
/// namespaces, and with them their ports, some time after the last descriptor is closed. kTeardown at the deadline.
[[nodiscard]] Result<void> wait_until_ports_gone(const Deadline& deadline);
/// The same for the switch namespace behind a descriptor. kRefused when this process may not enter it.
[[nodiscard]] Result<void> wait_until_ports_gone_in(int switch_netns_fd, const Deadline& deadline);

} // namespace railbreak::lab
