#include "collective/algorithms/r2ccl_algorithm.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/r2ccl.hpp"
#include "collective/algorithms/ring_algorithm.hpp"

namespace railbreak::collective {

namespace {

constexpr std::int64_t kDefaultChunks = 4;
constexpr std::int64_t kMostChunks = 16;
/// The chain then costs at most this fraction of a tail: 1/32.
constexpr double kPiecesPerHop = 32;

/// Pieces of a chunk for which the chain's delay, a piece a member, and the overhead of all pieces are least.
std::int64_t pieces_for(const CostInput& cost, double share, std::int64_t chunks) {
    const double hops = cost.ranks - 2;
    double pieces = kPiecesPerHop * hops;
    if (cost.overhead_ns > 0) {
        pieces = std::min(pieces, std::sqrt(hops * share * cost.vector_ns / cost.overhead_ns));
    }
    return std::max<std::int64_t>(1, std::llround(pieces / static_cast<double>(chunks)));
}

/// The only rank with a noticeable slowdown; nothing when there is none.
Result<std::optional<Rank>> only_straggler(const Topology& topology) {
    const std::optional<Rank> slowest = slowest_rank(topology);
    for (Rank rank = 0; slowest && rank < topology.ranks(); ++rank) {
        if (rank != *slowest && to_double(topology.server(rank).worst()) >= kNoticeableSlowdown) {
            return fail(Error(ErrorKind::kInput, fmt::format("r2ccl handles one slow rank only; servers {} and {} are "
                                                             "slow",
                                                             std::min(rank, *slowest), std::max(rank, *slowest)))
                            .advise("use optcc, or r2ccl-balance where the slow servers have lost single NICs"));
        }
    }
    return slowest;
}

Result<Plan> split_plan(const PlanRequest& request, const CostInput& cost, Rank slow, bool best, std::int64_t chunks) {
    const Rational slowdown = request.topology.server(slow).worst();
    const Rational share = best ? r2ccl_best_share(cost.ranks, slowdown) : r2ccl_share(slowdown);
    const Rational exact = share * request.elements;
    const auto tail = (numerator(exact) / denominator(exact)).convert_to<std::int64_t>();
    const double real_share = static_cast<double>(tail) / static_cast<double>(request.elements);
    const std::int64_t pieces = pieces_for(cost, real_share, chunks);
    const R2cclLanes lanes = r2ccl_lanes(slowdown);
    const double predicted = r2ccl_cost_ns(cost, real_share, chunks, pieces, lanes);
    return Plan{make_r2ccl({.ranks = cost.ranks,
                            .straggler = slow,
                            .elements = request.elements,
                            .tail_elements = tail,
                            .chunks = chunks,
                            .pieces = pieces,
                            .main_lanes = lanes.main,
                            .tail_lanes = lanes.tail}),
                Nanoseconds(static_cast<std::int64_t>(predicted)),
                fmt::format("tail of {:.4f} of the vector, {} chunks of {} pieces: {:.3f} vector times predicted for "
                            "slowdown {:.3f}; the plain ring would take {:.3f}",
                            real_share, chunks, pieces, predicted / cost.vector_ns, cost.slowdown,
                            ring_cost_ns(cost) / cost.vector_ns)};
}

} // namespace

double r2ccl_cost_ns(const CostInput& cost, double share, std::int64_t chunks, std::int64_t pieces,
                     const std::optional<R2cclLanes>& lanes) {
    CostInput part = cost;
    part.vector_ns = (1 - share) * cost.vector_ns;
    double main = ring_cost_ns(part);
    const double tail_ns = share * cost.vector_ns;
    const auto k = static_cast<double>(chunks);
    const double flows = k * static_cast<double>(pieces);
    const double chain = (cost.ranks - 2) * (tail_ns / flows + cost.overhead_ns + cost.latency_ns);
    double left = 1 - 1 / cost.slowdown; // X, which main leaves of a healthy port
    double lost = 0;                     // of main's time, while the tail lasts
    if (lanes) {
        const double main_share = to_double(lanes->main_share());
        left = std::max(left, 1 - main_share);
        lost = std::max(0.0, 1 - cost.slowdown * main_share);
    }
    const double tail = ring_cost_ns({.ranks = cost.ranks - 1,
                                      .slowdown = 1 / left,
                                      .vector_ns = tail_ns,
                                      .overhead_ns = cost.overhead_ns,
                                      .latency_ns = cost.latency_ns});
    main += lost * tail;
    const double slow_port = cost.slowdown * tail_ns + flows * cost.overhead_ns;
    return std::max(main, tail) + (1 + 1 / k) * slow_port + chain + 2 * cost.latency_ns;
}

std::string_view R2cclAlgorithm::summary() const {
    return "R2CCL-AllReduce: a ring over all for one part, a ring of the healthy for the rest, then reduce and "
           "broadcast";
}

std::vector<OptionHelp> R2cclAlgorithm::options() const {
    return {{"y", "x, star", "tail as large as the lost share, or so that both rings take equally long (default x)"},
            {"k", "1..16", "chunks of the second stage (default 4)"}};
}

Result<Plan> R2cclAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    const auto share = word_option(request, "y", {"x", "star"});
    if (!share) {
        return tl::unexpected(share.error());
    }
    const auto chunks = whole_option(request, "k", 1, kMostChunks);
    if (!chunks) {
        return tl::unexpected(chunks.error());
    }
    if (const Result<void> single = check_one_rank_servers(request, name(), "r2ccl-balance or hierarchical"); !single) {
        return tl::unexpected(single.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 3);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    if (const Result<void> alive = check_nics_alive(request, name(), nics_in_use(request.topology)); !alive) {
        return tl::unexpected(alive.error());
    }
    const Result<std::optional<Rank>> slow = only_straggler(request.topology);
    if (!slow) {
        return tl::unexpected(slow.error());
    }
    if (!slow->has_value()) {
        return ring_plan(request, *cost,
                         fmt::format("plain ring: no straggler, every slowdown is below {}", kNoticeableSlowdown));
    }
    return split_plan(request, *cost, **slow, share->value_or(0) == 1, chunks->value_or(kDefaultChunks));
}

} // namespace railbreak::collective
