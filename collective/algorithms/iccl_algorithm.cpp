#include "collective/algorithms/iccl_algorithm.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"

namespace railbreak::collective {

namespace {

/// A ring with a channel on each NIC in use, before or after failover: one of two kinds.
struct FailoverRing {
    std::optional<ServerRingParameters> servers; ///< servers of several ranks
    std::vector<std::int32_t> nics;              ///< otherwise: the NIC of each channel
};

bool any_dead(const Topology& topology) {
    return std::any_of(topology.servers.begin(), topology.servers.end(),
                       [](const PortSlowdown& server) { return server.failed_nics != 0; });
}

Result<FailoverRing> healthy_ring(const PlanRequest& request, std::string_view algorithm) {
    const Topology& topology = request.topology;
    FailoverRing ring;
    if (topology.ranks_per_server > 1) {
        Result<ServerRingParameters> servers = server_ring(request, algorithm);
        if (!servers) {
            return tl::unexpected(servers.error());
        }
        ring.servers = std::move(*servers);
        return ring;
    }
    if (topology.nics_per_server > kMaxLanes) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} gives each NIC of a server a channel, at most {}; here "
                                                         "are {} NICs for one rank",
                                                         algorithm, kMaxLanes, topology.nics_per_server))
                        .advise("plan for as many ranks a server as it has NICs"));
    }
    for (std::int32_t nic = 0; nic < topology.nics_per_server; ++nic) {
        ring.nics.push_back(nic);
    }
    return ring;
}

Plan finish(const PlanRequest& request, const CostInput& cost, FailoverRing ring, std::string reason) {
    if (ring.servers) {
        const double predicted = server_ring_cost_ns(request, cost, *ring.servers);
        return {make_server_ring(std::move(*ring.servers)), Nanoseconds(static_cast<std::int64_t>(predicted)),
                std::move(reason)};
    }
    const double predicted = channel_ring_cost_ns(request, cost, ring.nics);
    return {make_channel_ring(cost.ranks, request.elements, std::move(ring.nics)),
            Nanoseconds(static_cast<std::int64_t>(predicted)), std::move(reason)};
}

/// What a plan without anything to fail over from or to is.
std::string plain_reason(const Topology& topology, const CostInput& cost) {
    return topology.nics_per_server == 1
               ? fmt::format("one NIC a server, nothing to fail over to: plain ring, slowdown {:.3f}", cost.slowdown)
               : fmt::format("no NIC is dead: plain ring, slowdown {:.3f}", cost.slowdown);
}

bool alive_on(const Topology& topology, const std::vector<Rank>& servers, std::int32_t nic) {
    return std::all_of(servers.begin(), servers.end(), [&](Rank server) { return nic_alive(topology, server, nic); });
}

/// The NIC that takes over from `nic` between these servers.
std::optional<std::int32_t> find_backup(const Topology& topology, const std::vector<Rank>& servers, std::int32_t nic,
                                        bool idle) {
    std::vector<std::int32_t> candidates;
    if (!idle) {
        candidates.push_back(nic ^ 1);
        for (std::int32_t step = 1; step < topology.nics_per_server; ++step) {
            candidates.push_back((nic + step) % topology.nics_per_server);
        }
    }
    const std::int32_t first_idle = topology.ranks_per_server > 1 ? nics_in_use(topology) : topology.nics_per_server;
    for (std::int32_t spare = first_idle; idle && spare < topology.nics_per_server; ++spare) {
        candidates.push_back(first_idle + (nic + spare - first_idle) % (topology.nics_per_server - first_idle));
    }
    for (const std::int32_t candidate : candidates) {
        if (candidate < topology.nics_per_server && alive_on(topology, servers, candidate)) {
            return candidate;
        }
    }
    return std::nullopt;
}

tl::unexpected<Error> no_backup(const std::vector<Rank>& servers, std::int32_t nic, bool idle) {
    return fail(Error(ErrorKind::kInput,
                      fmt::format("iccl finds no {} NIC that can take over from NIC {} between the servers {}",
                                  idle ? "unused" : "live", nic, fmt::join(servers, " and ")))
                    .advise(idle ? "use backup=shared" : "use r2ccl-balance"));
}

/// Moves every hop that meets a dead NIC.
Result<int> fail_over(const Topology& topology, bool idle, FailoverRing& ring) {
    int moved = 0;
    std::vector<Rank> all;
    for (Rank server = 0; server < topology.server_count(); ++server) {
        all.push_back(server);
    }
    const std::size_t width = ring.servers ? static_cast<std::size_t>(topology.ranks_per_server) : 1;
    std::vector<std::int32_t>& nics = ring.servers ? ring.servers->nics : ring.nics;
    for (std::size_t hop = 0; hop < nics.size(); ++hop) {
        std::vector<Rank> ends = all;
        if (ring.servers) {
            const auto into = static_cast<Rank>(hop / width);
            ends = {into == 0 ? topology.server_count() - 1 : into - 1, into};
        }
        if (alive_on(topology, ends, nics[hop])) {
            continue;
        }
        const std::optional<std::int32_t> backup = find_backup(topology, ends, nics[hop], idle);
        if (!backup) {
            return no_backup(ends, nics[hop], idle);
        }
        nics[hop] = *backup;
        ++moved;
    }
    return moved;
}

/// Takes out the channels whose NIC is dead somewhere; how many are left.
std::size_t close_channels(const Topology& topology, FailoverRing& ring) {
    const auto dead = [&](std::int32_t nic) {
        for (Rank server = 0; server < topology.server_count(); ++server) {
            if (!nic_alive(topology, server, nic)) {
                return true;
            }
        }
        return false;
    };
    if (!ring.servers) {
        std::erase_if(ring.nics, dead);
        return ring.nics.size();
    }
    std::erase_if(ring.servers->channels, [&](Rank channel) { return dead(channel % topology.nics_per_server); });
    return ring.servers->channels.size();
}

} // namespace

std::string_view IcclAlgorithm::summary() const {
    return "ring whose flows move to a backup NIC when a NIC is dead; shares and order stay as they were";
}

std::vector<OptionHelp> IcclAlgorithm::options() const {
    return {{"backup", "shared, idle", "whether the backup NIC carries a share of its own (default shared)"}};
}

Result<Plan> IcclAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const auto backup = word_option(request, "backup", {"shared", "idle"});
    if (!backup) {
        return tl::unexpected(backup.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    Result<FailoverRing> ring = healthy_ring(request, name());
    if (!ring) {
        return tl::unexpected(ring.error());
    }
    const Topology& topology = request.topology;
    const bool idle = backup->value_or(0) == 1;
    const Result<int> moved = fail_over(topology, idle, *ring);
    if (!moved) {
        return tl::unexpected(moved.error());
    }
    std::string reason = plain_reason(topology, *cost);
    if (any_dead(topology)) {
        reason = fmt::format("ring after failover: {} {} on {} backup NIC", *moved,
                             ring->servers ? "network hops" : "channels", idle ? "an unused" : "a shared");
    }
    return finish(request, *cost, std::move(*ring), std::move(reason));
}

std::string_view R2cclBalanceAlgorithm::summary() const {
    return "ring without the channels whose NIC is dead; the others carry the vector in equal shares";
}

Result<Plan> R2cclBalanceAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    Result<FailoverRing> ring = healthy_ring(request, name());
    if (!ring) {
        return tl::unexpected(ring.error());
    }
    const Topology& topology = request.topology;
    const std::size_t all = ring->servers ? ring->servers->channels.size() : ring->nics.size();
    const std::size_t left = close_channels(topology, *ring);
    if (left == 0) {
        return fail(Error(ErrorKind::kInput, "every channel meets a dead NIC somewhere, r2ccl-balance has none left")
                        .advise("use iccl, which moves single hops"));
    }
    std::string reason = plain_reason(topology, *cost);
    if (any_dead(topology)) {
        reason =
            fmt::format("{} of {} channels have live NICs everywhere and carry the vector in equal shares", left, all);
    }
    return finish(request, *cost, std::move(*ring), std::move(reason));
}

} // namespace railbreak::collective
