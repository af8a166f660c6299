#include "collective/topology.hpp"

#include "base/check.hpp"

namespace railbreak::collective {

Topology healthy_topology(Rank ranks) {
    RB_CHECK(ranks >= 1, "a cluster has at least one server");
    return Topology{std::vector<PortSlowdown>(static_cast<std::size_t>(ranks))};
}

Topology one_straggler(Rank ranks, Rank straggler, const Rational& slowdown) {
    RB_CHECK(straggler >= 0 && straggler < ranks, "the straggler is a member of the collective");
    RB_CHECK(slowdown >= 1, "a slowdown is healthy bandwidth over present bandwidth, never below 1");
    Topology topology = healthy_topology(ranks);
    topology.servers[static_cast<std::size_t>(straggler)] = PortSlowdown{slowdown, slowdown};
    return topology;
}

} // namespace railbreak::collective
