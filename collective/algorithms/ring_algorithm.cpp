#include "collective/algorithms/ring_algorithm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "collective/algorithms/ring.hpp"

namespace railbreak::collective {

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
        cost.slowdown = std::max(cost.slowdown, to_double(server.worst()));
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

std::string_view RingAlgorithm::summary() const {
    return "ring over all ranks (reduce-scatter, then allgather); the slowest port sets the pace";
}

Result<Plan> RingAlgorithm::plan(const PlanRequest& request) const {
    if (!request.options.empty()) {
        return fail(Error(ErrorKind::kInput, fmt::format("ring has no option \"{}\"", request.options.front().first))
                        .advise("ring takes no options"));
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    return ring_plan(request, *cost, fmt::format("plain ring; the slowest port has slowdown {:.3f}", cost->slowdown));
}

} // namespace railbreak::collective
