#include "collective/algorithms/hierarchical.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/algorithms/ring_part.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

constexpr Lane kNicLane = 0;
constexpr Lane kLocalLane = 1;
constexpr std::size_t kNic = kNicLane;
constexpr std::size_t kLocal = kLocalLane;

/// In step t = 1..g-1 of a local phase rank i sends to rank i+t and receives from rank i-t.
class HierarchicalSchedule final : public Schedule {
public:
    explicit HierarchicalSchedule(const HierarchicalParameters& parameters)
        : p_(parameters), slices_(parameters.elements, parameters.ranks_per_server) {
        for (Rank i = 0; i < p_.ranks_per_server; ++i) {
            rings_.emplace_back(p_.servers, slices_.part(i));
        }
    }

    [[nodiscard]] std::string name() const override {
        return fmt::format("hierarchical(servers={},g={})", p_.servers, p_.ranks_per_server);
    }
    [[nodiscard]] Rank ranks() const override { return p_.servers * p_.ranks_per_server; }
    [[nodiscard]] Rank ranks_per_server() const override { return p_.ranks_per_server; }
    [[nodiscard]] Lane lanes() const override { return 2; }
    [[nodiscard]] Port port(Rank rank, Lane lane) const override {
        return lane == kLocalLane ? Port{PortKind::kLocal, 0} : Port{PortKind::kNic, local(rank) % p_.nics_per_server};
    }
    [[nodiscard]] std::int64_t elements() const override { return p_.elements; }
    [[nodiscard]] std::int64_t send_count(Rank, Lane lane) const override { return count(lane); }
    [[nodiscard]] std::int64_t receive_count(Rank, Lane lane) const override { return count(lane); }

    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        const RingPart& ring = ring_of(rank);
        if (lane == kNicLane) {
            const Rank next = ring.next(server(rank));
            Step step = ring.into(next, index);
            step.peer = next * p_.ranks_per_server + local(rank);
            step.after[kNic] = index;
            step.after[kLocal] = exchanges(); // the server's sum of the slice
            return step;
        }
        const bool reducing = index < exchanges();
        Step step = local_step(rank, turned(local(rank), index % exchanges() + 1), reducing);
        step.slice = slices_.part(reducing ? local(step.peer) : local(rank));
        if (!reducing) { // the finished slice; without other servers it is finished once the server's sum is
            step.after[kNic] = ring.hops();
            step.after[kLocal] = exchanges();
        }
        return step;
    }

    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        if (lane == kNicLane) {
            const RingPart& ring = ring_of(rank);
            Step step = ring.into(server(rank), index);
            step.peer = ring.previous(server(rank)) * p_.ranks_per_server + local(rank);
            return step;
        }
        const bool reducing = index < exchanges();
        Step step = local_step(rank, turned(local(rank), p_.ranks_per_server - 1 - index % exchanges()), reducing);
        step.slice = slices_.part(reducing ? local(rank) : local(step.peer));
        return step;
    }

private:
    [[nodiscard]] Rank local(Rank rank) const { return rank % p_.ranks_per_server; }
    [[nodiscard]] Rank server(Rank rank) const { return rank / p_.ranks_per_server; }
    [[nodiscard]] const RingPart& ring_of(Rank rank) const { return rings_[static_cast<std::size_t>(local(rank))]; }
    /// Messages of a rank in one local phase, each way.
    [[nodiscard]] std::int64_t exchanges() const { return p_.ranks_per_server - 1; }
    [[nodiscard]] std::int64_t count(Lane lane) const { return lane == kNicLane ? rings_[0].hops() : 2 * exchanges(); }
    [[nodiscard]] Rank turned(Rank in_server, std::int64_t by) const {
        return static_cast<Rank>((in_server + by) % p_.ranks_per_server);
    }
    [[nodiscard]] Step local_step(Rank rank, Rank peer_in_server, bool reducing) const {
        Step step;
        step.peer = rank - local(rank) + peer_in_server;
        step.stage = reducing ? Stage::kLocalReduce : Stage::kLocalGather;
        step.combine = reducing ? Combine::kReduce : Combine::kCopy;
        return step;
    }

    HierarchicalParameters p_;
    EvenSplit slices_;
    std::vector<RingPart> rings_; ///< by rank in the server
};

/// How many ranks of a server share its busiest NIC.
double ranks_per_nic(const Topology& topology) {
    return static_cast<double>((topology.ranks_per_server + topology.nics_per_server - 1) / topology.nics_per_server);
}

} // namespace

std::unique_ptr<const Schedule> make_hierarchical(const HierarchicalParameters& parameters) {
    RB_CHECK(parameters.servers >= 1 && parameters.ranks_per_server >= 2, "servers of at least two ranks");
    RB_CHECK(parameters.elements >= 1 && parameters.nics_per_server >= 1, "an element and a NIC");
    return std::make_unique<HierarchicalSchedule>(parameters);
}

std::string_view HierarchicalAlgorithm::summary() const {
    return "reduce-scatter in each server, a ring between servers on every rail, allgather in each server";
}

Result<Plan> HierarchicalAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const Topology& topology = request.topology;
    if (topology.ranks_per_server < 2) {
        return fail(Error(ErrorKind::kInput, "hierarchical needs servers of several ranks, here is one a server")
                        .advise("use ring"));
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    if (const Result<void> alive = check_nics_alive(request, name(), nics_in_use(topology)); !alive) {
        return tl::unexpected(alive.error());
    }
    const double slice = cost->vector_ns / topology.ranks_per_server;
    const double local_ratio = to_double(topology.local_ratio);
    const double local =
        2 * (topology.ranks_per_server - 1) * ((local_ratio > 0 ? slice / local_ratio : 0) + cost->overhead_ns);
    const double section = slice / topology.server_count();
    const double hop = std::max(ranks_per_nic(topology) * (cost->slowdown * section + cost->overhead_ns),
                                section + cost->overhead_ns + cost->latency_ns);
    const double predicted = local + 2 * (topology.server_count() - 1) * hop + 2 * cost->latency_ns;
    return Plan{make_hierarchical({.servers = topology.server_count(),
                                   .ranks_per_server = topology.ranks_per_server,
                                   .nics_per_server = topology.nics_per_server,
                                   .elements = request.elements}),
                Nanoseconds(static_cast<std::int64_t>(predicted)),
                fmt::format("{} rails of {} servers; local phases take {:.1f} % of the predicted time",
                            topology.ranks_per_server, topology.server_count(), 100 * local / predicted)};
}

} // namespace railbreak::collective
