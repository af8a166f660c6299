#include "collective/algorithms/halving_doubling.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/algorithms/flow_list.hpp"
#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/split.hpp"

namespace railbreak::collective {

namespace {

/// The largest power of two that is not above `ranks`.
Rank core_of(Rank ranks) {
    return static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(ranks)));
}

/// A flow of the plan; the vector is cut into as many parts as the power of two has ranks.
struct PartsFlow {
    Rank from = 0;
    Rank to = 0;
    Rank first = 0; ///< part
    Rank count = 0; ///< parts, side by side
    Stage stage = Stage::kReduce;
    Combine combine = Combine::kReduce;
};

/// Flows of a round, in which a rank sends once at most and receives once at most.
using Round = std::vector<PartsFlow>;

/// All rounds, see make_halving_doubling(). Every flow carries what its sender received in the last round.
std::vector<Round> rounds_of(const std::vector<Rank>& order) {
    const auto ranks = static_cast<Rank>(order.size());
    const Rank core = core_of(ranks);
    const Rank folded = ranks - core;
    // Place v of the power of two is held by:
    const auto holder = [&](Rank place) {
        return order[static_cast<std::size_t>(place < folded ? 2 * place : place + folded)];
    };
    std::vector<Round> rounds;
    Round fold;
    for (Rank i = 0; i < folded; ++i) {
        fold.push_back({order[static_cast<std::size_t>(2 * i + 1)], holder(i), 0, core});
    }
    rounds.push_back(fold);
    for (Rank distance = core / 2; distance >= 1; distance /= 2) {
        Round& round = rounds.emplace_back();
        for (Rank place = 0; place < core; ++place) {
            const Rank partner = place ^ distance;
            round.push_back({holder(place), holder(partner), partner / distance * distance, distance});
        }
    }
    for (Rank distance = 1; distance < core; distance *= 2) {
        Round& round = rounds.emplace_back();
        for (Rank place = 0; place < core; ++place) {
            round.push_back({holder(place), holder(place ^ distance), place / distance * distance, distance,
                             Stage::kBroadcast, Combine::kCopy});
        }
    }
    for (PartsFlow& flow : fold) {
        std::swap(flow.from, flow.to);
        flow.stage = Stage::kBroadcast;
        flow.combine = Combine::kCopy;
    }
    rounds.push_back(std::move(fold));
    return rounds;
}

/// Walks through the rounds once: a flow begins when its sender has sent and received everything before, and its
/// receiver has received everything before.
double time_of(const std::vector<Rank>& order, const Topology& topology, const CostInput& cost) {
    struct Ends {
        double sent = 0;
        double received = 0;
        double usable = 0;
    };
    std::vector<Ends> at(order.size());
    const double part_ns = cost.vector_ns / core_of(cost.ranks);
    double last = 0;
    for (const Round& round : rounds_of(order)) {
        const std::vector<Ends> before = at;
        for (const PartsFlow& flow : round) {
            const auto from = static_cast<std::size_t>(flow.from);
            const auto to = static_cast<std::size_t>(flow.to);
            const double slowdown =
                to_double(std::max(topology.server(flow.from).send, topology.server(flow.to).receive));
            const double end = std::max({before[from].sent, before[from].usable, before[to].received}) +
                               cost.overhead_ns + flow.count * part_ns * slowdown;
            at[from].sent = end;
            at[to].received = end;
            at[to].usable = end + cost.latency_ns;
            last = std::max(last, at[to].usable);
        }
    }
    return last;
}

} // namespace

std::unique_ptr<const Schedule> make_halving_doubling(const std::vector<Rank>& order, std::int64_t elements) {
    const auto ranks = static_cast<Rank>(order.size());
    RB_CHECK(ranks >= 2, "at least two ranks");
    const EvenSplit parts(elements, core_of(ranks));
    FlowList list(fmt::format("halving-doubling(p={})", ranks), ranks, elements);
    for (const Round& round : rounds_of(order)) {
        for (const PartsFlow& flow : round) {
            const std::int64_t start = parts.part(flow.first).offset;
            const Slice slice{start, parts.part(flow.first + flow.count - 1).end() - start};
            list.add({flow.from, flow.to, slice, flow.stage, flow.combine});
        }
    }
    return list.finish();
}

std::string_view HalvingDoublingAlgorithm::summary() const {
    return "recursive halving, then doubling: few rounds, for short messages; a slow port sets the pace";
}

Result<Plan> HalvingDoublingAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    if (const Result<void> single = check_one_rank_servers(request, name(), "hierarchical or ring"); !single) {
        return tl::unexpected(single.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    const Topology& topology = request.topology;
    if (const Result<void> alive = check_nics_alive(request, name(), nics_in_use(topology)); !alive) {
        return tl::unexpected(alive.error());
    }
    const Rank core = core_of(cost->ranks);
    const Rank folded = cost->ranks - core;
    std::vector<Rank> order(static_cast<std::size_t>(cost->ranks));
    std::iota(order.begin(), order.end(), 0);
    if (folded > 0) {
        std::stable_sort(order.begin(), order.end(),
                         [&](Rank a, Rank b) { return topology.server(a).worst() < topology.server(b).worst(); });
    }
    const int rounds = 2 * (std::bit_width(static_cast<std::uint32_t>(core)) - 1);
    const double predicted = time_of(order, topology, *cost);
    return Plan{
        make_halving_doubling(order, request.elements), Nanoseconds(static_cast<std::int64_t>(predicted)),
        fmt::format("{} rounds in a power of two of {}, {} ranks folded in; the slowest port has slowdown {:.3f}",
                    rounds, core, folded, cost->slowdown)};
}

} // namespace railbreak::collective
