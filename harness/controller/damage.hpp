// From measured NICs to what plans and bounds reckon with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collective/bounds.hpp"
#include "collective/topology.hpp"
#include "harness/controller/session.hpp"

namespace railbreak::controller {

/// How much slower than healthy one NIC is, by direction; 1 when nothing slows it.
struct NicSlowdown {
    Rational send{1};
    Rational receive{1};
    bool dead = false;    ///< carries nothing at all; every host has another NIC then
    bool cut_off = false; ///< carries nothing to or from some hosts: plans go round it, bounds do not know of it
    std::optional<std::int32_t> leaves_through{}; ///< NIC of the host that takes over what this one sends
};

/// By host, then by NIC.
using NicSlowdowns = std::vector<std::vector<NicSlowdown>>;

/// Every NIC of the cluster healthy.
[[nodiscard]] NicSlowdowns no_damage(const scenarios::ClusterSpec& cluster);

/// A measured slowdown as a fraction with three decimals: finer than any measurement here. At least 1.
[[nodiscard]] Rational to_slowdown(BitRate healthy, BitRate present);

/// Slows the sending of NICs that share one because of reroutes: each gets an equal part of what that NIC has left.
/// What the NICs of such a host can send together is then what those have left that still send anything, which is the
/// truth, so bounds stay bounds.
void add_reroutes(NicSlowdowns& damage);

/// The topology that algorithms plan for. The NICs of a host count as pooled when all are slowed alike, or when some
/// are dead; otherwise the host counts as slow as its slowest NIC, because a rank cannot leave its NIC. `healthy` is
/// the goodput of a NIC.
[[nodiscard]] collective::Topology plan_topology(const scenarios::ClusterSpec& cluster, const NicSlowdowns& damage,
                                                 BitRate healthy);

/// The binding lower bounds of both port models that hold for every schedule on that cluster, whichever NIC a flow
/// takes: the NICs of a host count as pooled. In the exclusive model that is only true while the NICs of every host are
/// alike; otherwise the fluid bound, which always holds, stands for both.
[[nodiscard]] std::vector<collective::Bound> bounds_of(const scenarios::ClusterSpec& cluster,
                                                       const NicSlowdowns& damage, BitRate healthy);

/// The largest slowdown of any NIC that is not dead.
[[nodiscard]] double worst_of(const NicSlowdowns& damage);

/// Shifts of probes (see Session::probe) that measure every `slow` host against a healthy one at least once on each
/// side, as few as can be found quickly; {1} when no host is slow, or all are.
[[nodiscard]] std::vector<std::int32_t> probe_shifts(std::int32_t hosts,
                                                     const std::function<bool(std::int32_t host)>& slow);

} // namespace railbreak::controller
