#include "collective/algorithms/halving_doubling.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

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

double slowdown_of(const Topology& topology, Rank rank) {
    return to_double(topology.server(rank).worst());
}

} // namespace

std::unique_ptr<const Schedule> make_halving_doubling(const std::vector<Rank>& order, std::int64_t elements) {
    const auto ranks = static_cast<Rank>(order.size());
    RB_CHECK(ranks >= 2, "at least two ranks");
    const Rank core = core_of(ranks);
    const Rank folded = ranks - core;
    // Place v of the power of two is held by:
    const auto holder = [&](Rank place) {
        return order[static_cast<std::size_t>(place < folded ? 2 * place : place + folded)];
    };
    const EvenSplit parts(elements, core);
    // Parts first .. first+count-1, which lie side by side.
    const auto range = [&](Rank first, Rank count) {
        const std::int64_t start = parts.part(first).offset;
        return Slice{start, parts.part(first + count - 1).end() - start};
    };
    FlowList list(fmt::format("halving-doubling(p={})", ranks), ranks, elements);
    const auto fold = [&](Stage stage, Combine combine) {
        for (Rank i = 0; i < folded; ++i) {
            const Rank inside = order[static_cast<std::size_t>(2 * i)];
            const Rank outside = order[static_cast<std::size_t>(2 * i + 1)];
            const bool in = combine == Combine::kReduce;
            list.add({in ? outside : inside, in ? inside : outside, {0, elements}, stage, combine});
        }
    };
    fold(Stage::kReduce, Combine::kReduce);
    for (Rank distance = core / 2; distance >= 1; distance /= 2) {
        for (Rank place = 0; place < core; ++place) {
            const Rank partner = place ^ distance;
            list.add({holder(place), holder(partner), range(partner / distance * distance, distance), Stage::kReduce,
                      Combine::kReduce});
        }
    }
    for (Rank distance = 1; distance < core; distance *= 2) {
        for (Rank place = 0; place < core; ++place) {
            list.add({holder(place), holder(place ^ distance), range(place / distance * distance, distance),
                      Stage::kBroadcast, Combine::kCopy});
        }
    }
    fold(Stage::kBroadcast, Combine::kCopy);
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
    double fold = 0;
    if (folded > 0) {
        std::stable_sort(order.begin(), order.end(),
                         [&](Rank a, Rank b) { return topology.server(a).worst() < topology.server(b).worst(); });
        // Sorted by slowdown, so the last rank of the pairs is their slowest.
        const double slowest = slowdown_of(topology, order[static_cast<std::size_t>(2 * folded - 1)]);
        fold = 2 * (slowest * cost->vector_ns + cost->overhead_ns + cost->latency_ns);
    }
    const double rounds = 2 * (std::bit_width(static_cast<std::uint32_t>(core)) - 1);
    const double predicted = fold + rounds * (cost->overhead_ns + cost->latency_ns) +
                             2 * cost->slowdown * cost->vector_ns * (core - 1) / core;
    return Plan{
        make_halving_doubling(order, request.elements), Nanoseconds(static_cast<std::int64_t>(predicted)),
        fmt::format("{} rounds in a power of two of {}, {} ranks folded in; the slowest port has slowdown {:.3f}",
                    rounds, core, folded, cost->slowdown)};
}

} // namespace railbreak::collective
