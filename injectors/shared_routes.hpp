// Routes with hops over several NICs, when more than one of these NICs is down.
//
// Such a route belongs to every NIC that it has a hop over. It cannot be given back while one of them is down, for the
// kernel does not take it. So each NIC's former state holds the whole route, the NIC that comes up last gives it back,
// and the others leave it to that one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Interface indices of the route's output and hops, in its order.
[[nodiscard]] std::vector<std::int32_t> hop_devices(std::string_view route);

/// True when the route has a hop over a device other than `ifindex` that cannot carry it now: it is down or gone, or
/// the route is IPv6 and the device's MTU is below what IPv6 needs.
[[nodiscard]] bool waits_for_another(std::string_view route, std::int32_t ifindex,
                                     const std::vector<LinkRecord>& links);

/// Completes a snapshot of `ifindex` that was taken while other NICs were down: what `others` hold of routes with a hop
/// over it takes the place of what is left of them here, or is added.
void complete_shared_routes(std::vector<std::string>& routes, std::int32_t ifindex,
                            const std::vector<std::string>& others);

} // namespace railbreak::injectors
