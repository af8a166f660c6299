#include "collective/algorithms/ring_algorithm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "collective/algorithms/plan_options.hpp"

namespace railbreak::collective {

namespace {

/// Slowdown of a server's NICs that are alive, the larger of both directions.
double live_slowdown(const PortSlowdown& server) {
    // In floating point: comparing fractions takes long where there are many servers.
    return server.failed_nics != 0 ? 1.0 : std::max(to_double(server.send), to_double(server.receive));
}

/// NICs of a server that carry channels: how many each.
class NicLoad {
public:
    void add(std::int32_t nic) {
        const auto at = static_cast<std::size_t>(nic);
        load_.resize(std::max(load_.size(), at + 1));
        most_ = std::max(most_, ++load_[at]);
    }
    [[nodiscard]] double most() const { return most_; }

private:
    std::vector<int> load_;
    int most_ = 0;
};

} // namespace

Result<CostInput> check_request(const PlanRequest& request, std::string_view algorithm, Rank least_ranks) {
    const Rank ranks = request.topology.ranks();
    if (ranks < least_ranks) {
        return fail(ErrorKind::kInput,
                    fmt::format("{} needs at least {} ranks, here are {}", algorithm, least_ranks, ranks));
    }
    if (request.elements < 1 || request.element_bytes < 1) {
        return fail(ErrorKind::kInput, fmt::format("{} needs a vector of at least one element", algorithm));
    }
    if (request.healthy_goodput.bits_per_s() == 0) {
        return fail(ErrorKind::kInput, fmt::format("{} needs the goodput of a healthy port", algorithm));
    }
    CostInput cost;
    cost.ranks = ranks;
    for (const PortSlowdown& server : request.topology.servers) {
        cost.slowdown = std::max({cost.slowdown, to_double(server.send), to_double(server.receive)});
    }
    const double bits = 8.0 * static_cast<double>(request.elements) * request.element_bytes;
    cost.vector_ns = bits * 1e9 / static_cast<double>(request.healthy_goodput.bits_per_s());
    cost.overhead_ns = static_cast<double>(request.flow_overhead.count());
    cost.latency_ns = static_cast<double>(request.flow_latency.count());
    return cost;
}

Plan ring_plan(const PlanRequest& request, const CostInput& cost, std::string reason) {
    return {make_ring(cost.ranks, request.elements), Nanoseconds(static_cast<std::int64_t>(ring_cost_ns(cost))),
            std::move(reason)};
}

double channel_ring_cost_ns(const PlanRequest& request, const CostInput& cost, const std::vector<std::int32_t>& nics) {
    NicLoad load;
    for (const std::int32_t nic : nics) {
        load.add(nic);
    }
    double slowest = 1;
    for (const PortSlowdown& server : request.topology.servers) {
        slowest = std::max(slowest, live_slowdown(server));
    }
    const double section = cost.vector_ns / static_cast<double>(nics.size()) / cost.ranks;
    const double hop =
        std::max(load.most() * (slowest * section + cost.overhead_ns), section + cost.overhead_ns + cost.latency_ns);
    return 2 * (cost.ranks - 1) * hop;
}

double server_ring_cost_ns(const PlanRequest& request, const CostInput& cost, const ServerRingParameters& ring) {
    const Rank width = ring.ranks_per_server;
    const double section = cost.vector_ns / static_cast<double>(ring.channels.size()) / cost.ranks;
    const double local_ratio = to_double(request.topology.local_ratio);
    const double local = (local_ratio > 0 ? section / local_ratio : 0) + cost.overhead_ns;
    const bool all_cross = ring.channels.size() == static_cast<std::size_t>(width);
    double hop = static_cast<double>(ring.channels.size() - (all_cross ? 1 : 0)) * local;
    for (Rank server = 0; server < ring.servers; ++server) {
        NicLoad enters;
        NicLoad leaves;
        const Rank next = (server + 1) % ring.servers;
        for (const Rank channel : ring.channels) {
            enters.add(ring.nics[static_cast<std::size_t>(server * width + channel)]);
            leaves.add(ring.nics[static_cast<std::size_t>(next * width + channel)]);
        }
        const double slowdown = live_slowdown(request.topology.server(server));
        hop = std::max(hop, std::max(enters.most(), leaves.most()) * (slowdown * section + cost.overhead_ns));
    }
    const double mean = (section + cost.overhead_ns + (width - 1) * local) / width + cost.latency_ns;
    return 2 * (cost.ranks - 1) * std::max(hop, mean);
}

Result<ServerRingParameters> server_ring(const PlanRequest& request, std::string_view algorithm) {
    const Topology& topology = request.topology;
    if (topology.server_count() < 2) {
        return fail(Error(ErrorKind::kInput, fmt::format("{} goes from server to server, here is only one", algorithm))
                        .advise("within one server use hierarchical"));
    }
    return rail_aligned_ring(topology.server_count(), topology.ranks_per_server, topology.nics_per_server,
                             request.elements);
}

std::string_view RingAlgorithm::summary() const {
    return "ring over all ranks (reduce-scatter, then allgather); the slowest port sets the pace";
}

std::vector<OptionHelp> RingAlgorithm::options() const {
    return {{"channels", "1..4", "rings side by side, each on its part of the vector; servers of one rank only"}};
}

Result<Plan> RingAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const auto channels = whole_option(request, "channels", 1, kMaxLanes);
    if (!channels) {
        return tl::unexpected(channels.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    const Topology& topology = request.topology;
    const auto wanted = static_cast<std::int32_t>(channels->value_or(1));
    const std::int32_t used =
        topology.ranks_per_server > 1 ? nics_in_use(topology) : std::min(wanted, topology.nics_per_server);
    if (const Result<void> alive = check_nics_alive(request, name(), used); !alive) {
        return tl::unexpected(alive.error());
    }
    if (topology.ranks_per_server == 1) {
        std::vector<std::int32_t> nics;
        for (std::int32_t channel = 0; channel < wanted; ++channel) {
            nics.push_back(channel % topology.nics_per_server);
        }
        const double predicted = channel_ring_cost_ns(request, *cost, nics);
        return Plan{make_channel_ring(cost->ranks, request.elements, std::move(nics)),
                    Nanoseconds(static_cast<std::int64_t>(predicted)),
                    fmt::format("plain ring; the slowest port has slowdown {:.3f}", cost->slowdown)};
    }
    if (channels->has_value()) {
        return fail(
            Error(ErrorKind::kInput, "a ring over servers of several ranks has one channel per rank of a server")
                .advise("leave out the option channels"));
    }
    const Result<ServerRingParameters> ring = server_ring(request, name());
    if (!ring) {
        return tl::unexpected(ring.error());
    }
    const double predicted = server_ring_cost_ns(request, *cost, *ring);
    return Plan{make_server_ring(*ring), Nanoseconds(static_cast<std::int64_t>(predicted)),
                fmt::format("ring over {} servers with {} channels; the slowest NIC has slowdown {:.3f}",
                            topology.server_count(), topology.ranks_per_server, cost->slowdown)};
}

} // namespace railbreak::collective
