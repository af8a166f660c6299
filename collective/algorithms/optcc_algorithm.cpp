#include "collective/algorithms/optcc_algorithm.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

namespace {

constexpr Rank kMostStarRanks = 16;
constexpr double kMostStarSlowdown = 1.5;
constexpr std::int64_t kMostForcedSegments = 1 << 20;

/// What the user has fixed.
struct Options {
    std::optional<OptccPlan> plan;
    std::optional<std::int64_t> segments;
};

Result<OptccPlan> parse_plan(std::string_view text) {
    for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar}) {
        if (text == to_string(plan)) {
            return plan;
        }
    }
    return fail(Error(ErrorKind::kInput, fmt::format("plan \"{}\" is unknown", text))
                    .advise("plan is one of auto, u, bs, star"));
}

Result<std::int64_t> parse_segments(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostForcedSegments) {
        return fail(Error(ErrorKind::kInput, fmt::format("k = \"{}\" is not a number of segments", text))
                        .advise(fmt::format("k is a whole number from 1 to {}", kMostForcedSegments)));
    }
    return value;
}

Result<Options> parse_options(const PlanRequest& request, std::string_view algorithm) {
    Options options;
    for (const auto& [name, value] : request.options) {
        if (name == "plan" && value == "auto") {
            options.plan.reset();
        } else if (name == "plan") {
            const Result<OptccPlan> plan = parse_plan(value);
            if (!plan) {
                return tl::unexpected(plan.error());
            }
            options.plan = *plan;
        } else if (name == "k") {
            const Result<std::int64_t> segments = parse_segments(value);
            if (!segments) {
                return tl::unexpected(segments.error());
            }
            options.segments = *segments;
        } else {
            return fail(Error(ErrorKind::kInput, fmt::format("{} has no option \"{}\"", algorithm, name))
                            .advise("its options are plan (auto, u, bs, star) and k"));
        }
    }
    return options;
}

/// The only server with a noticeable slowdown; nothing when all are healthy.
Result<std::optional<Rank>> find_straggler(const Topology& topology, std::string_view algorithm) {
    std::optional<Rank> straggler;
    for (Rank rank = 0; rank < topology.ranks(); ++rank) {
        if (to_double(topology.servers[static_cast<std::size_t>(rank)].worst()) < kNoticeableSlowdown) {
            continue;
        }
        if (straggler) {
            return fail(
                Error(ErrorKind::kInput, fmt::format("{} handles one straggler only; servers {} and {} are slow",
                                                     algorithm, *straggler, rank)));
        }
        straggler = rank;
    }
    return straggler;
}

Result<OptccPlan> check_star(OptccPlan plan, const CostInput& cost) {
    if (plan == OptccPlan::kStar && (cost.ranks > kMostStarRanks || cost.slowdown > kMostStarSlowdown)) {
        return fail(Error(ErrorKind::kInput, fmt::format("plan star needs at most {} ranks and a slowdown of at most "
                                                         "{}; here are {} ranks and slowdown {:.3f}",
                                                         kMostStarRanks, kMostStarSlowdown, cost.ranks, cost.slowdown))
                        .advise("use plan bs"));
    }
    return plan;
}

std::string explain(const CostInput& cost, const PlanChoice& choice, double predicted, double ring, bool forced) {
    return fmt::format("{} with k={}{}: {:.3f} vector times predicted for slowdown {:.3f} (chosen for {:.3f}); the "
                       "plain ring would take {:.3f}",
                       to_string(choice.plan), choice.segments, forced ? " as asked" : "", predicted / cost.vector_ns,
                       cost.slowdown, cost.slowdown * kSlowdownMargin, ring / cost.vector_ns);
}

} // namespace

std::string_view OptccAlgorithm::summary() const {
    return shared_ ? "OptCC for one straggler, ring and straggler flows side by side on a port (two lanes)"
                   : "OptCC for one straggler, one flow at a time on each side of a port (one lane)";
}

Result<Plan> OptccAlgorithm::plan(const PlanRequest& request) const {
    const Result<Options> options = parse_options(request, name());
    if (!options) {
        return tl::unexpected(options.error());
    }
    Result<CostInput> cost = check_request(request, name(), 3);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    cost->shared = shared_;
    const Result<std::optional<Rank>> straggler = find_straggler(request.topology, name());
    if (!straggler) {
        return tl::unexpected(straggler.error());
    }
    if (!straggler->has_value()) {
        return ring_plan(request, *cost,
                         fmt::format("plain ring: no straggler, every slowdown is below {}", kNoticeableSlowdown));
    }
    const PlanChoice choice = cheapest_plan(*cost, options->plan, options->segments);
    if (const Result<OptccPlan> star = check_star(choice.plan, *cost); !star) {
        return tl::unexpected(star.error());
    }
    const double predicted = optcc_cost_ns(*cost, choice.plan, choice.segments);
    const double ring = ring_cost_ns(*cost);
    const bool forced = options->plan.has_value() || options->segments.has_value();
    if (!forced && ring <= predicted) {
        return ring_plan(request, *cost,
                         fmt::format("plain ring: {:.3f} vector times predicted for slowdown {:.3f}; {} with k={} "
                                     "would take {:.3f}",
                                     ring / cost->vector_ns, cost->slowdown, to_string(choice.plan), choice.segments,
                                     predicted / cost->vector_ns));
    }
    const Rank slow = **straggler;
    const Rational& slowdown = request.topology.servers[static_cast<std::size_t>(slow)].worst();
    const bool star = choice.plan == OptccPlan::kStar;
    return Plan{make_optcc({.servers = cost->ranks,
                            .stragglers = {slow},
                            .elements = request.elements,
                            .plan = choice.plan,
                            .segments = choice.segments,
                            .star_elements = star ? star_shares(cost->ranks, request.elements, {slowdown})
                                                  : std::vector<std::int64_t>{},
                            .shared = shared_}),
                Nanoseconds(static_cast<std::int64_t>(predicted)), explain(*cost, choice, predicted, ring, forced)};
}

} // namespace railbreak::collective
