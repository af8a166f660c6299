#include "collective/topology.hpp"

#include "base/check.hpp"

namespace railbreak::collective {

Topology healthy_topology(Rank servers) {
    RB_CHECK(servers >= 1, "a cluster has at least one server");
    Topology topology;
    topology.servers.resize(static_cast<std::size_t>(servers));
    return topology;
}

Topology one_straggler(Rank servers, Rank straggler, const Rational& slowdown) {
    RB_CHECK(straggler >= 0 && straggler < servers, "the straggler is a server of the cluster");
    RB_CHECK(slowdown >= 1, "a slowdown is healthy bandwidth over present bandwidth, never below 1");
    Topology topology = healthy_topology(servers);
    topology.servers[static_cast<std::size_t>(straggler)] = {.send = slowdown, .receive = slowdown};
    return topology;
}

Topology stragglers_first(Rank servers, const std::vector<Rational>& slowdowns) {
    RB_CHECK(static_cast<std::size_t>(servers) >= slowdowns.size(), "stragglers are servers of the cluster");
    Topology topology = healthy_topology(servers);
    for (std::size_t server = 0; server < slowdowns.size(); ++server) {
        RB_CHECK(slowdowns[server] >= 1, "a slowdown is healthy bandwidth over present bandwidth, never below 1");
        topology.servers[server] = {.send = slowdowns[server], .receive = slowdowns[server]};
    }
    return topology;
}

} // namespace railbreak::collective
