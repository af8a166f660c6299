#include "collective/algorithms/optcc_algorithm.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_choice.hpp"
#include "collective/algorithms/optcc_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/cost_model.hpp"

namespace railbreak::collective {

namespace {

constexpr Rank kLeastServers = 3;
constexpr Rank kMostStarServers = 16;
constexpr double kMostStarSlowdown = 1.5;

/// Dead NICs make the others of their server carry more, but they themselves are as fast as ever. In floating point:
/// comparing fractions takes long where there are many servers.
double live_slowdown(const PortSlowdown& server) {
    return server.failed_nics != 0 ? 1.0 : std::max(to_double(server.send), to_double(server.receive));
}

bool is_slow(const PortSlowdown& server) {
    return live_slowdown(server) >= kNoticeableSlowdown;
}

Result<void> check_cluster(const Topology& topology, std::string_view algorithm) {
    if (topology.server_count() < kLeastServers) {
        return fail(ErrorKind::kInput, fmt::format("{} needs at least {} servers, here are {}", algorithm,
                                                   kLeastServers, topology.server_count()));
    }
    const std::int32_t used = std::min(topology.ranks_per_server, topology.nics_per_server);
    for (Rank server = 0; server < topology.server_count(); ++server) {
        for (std::int32_t nic = 0; nic < used; ++nic) {
            if ((topology.server(server).failed_nics >> nic & 1U) != 0) {
                return fail(Error(ErrorKind::kInput,
                                  fmt::format("{} needs NIC {} of server {}, which is dead", algorithm, nic, server))
                                .advise("use an algorithm that spreads its flows over the NICs that are left"));
            }
        }
    }
    return {};
}

/// The servers with a noticeable slowdown, the slowest first, of equally slow ones the lower number first.
std::vector<SlowServer> slow_servers(const Topology& topology) {
    std::vector<SlowServer> slow;
    for (Rank server = 0; server < topology.server_count(); ++server) {
        const PortSlowdown& ports = topology.server(server);
        if (is_slow(ports)) {
            slow.push_back({server, ports.worst()});
        }
    }
    std::stable_sort(slow.begin(), slow.end(),
                     [](const SlowServer& a, const SlowServer& b) { return a.slowdown > b.slowdown; });
    return slow;
}

OptccCluster cluster_of(const PlanRequest& request, const CostInput& cost, bool shared) {
    OptccCluster cluster;
    cluster.servers = request.topology.server_count();
    cluster.ranks_per_server = request.topology.ranks_per_server;
    cluster.vector_ns = cost.vector_ns;
    cluster.overhead_ns = cost.overhead_ns;
    cluster.latency_ns = cost.latency_ns;
    cluster.local_ratio = to_double(request.topology.local_ratio);
    cluster.shared = shared;
    return cluster;
}

Result<Plan> plain_ring(const PlanRequest& request, std::string reason) {
    PlanRequest plain = request;
    plain.options.clear();
    Result<Plan> plan = RingAlgorithm().plan(plain);
    if (plan) {
        plan->reason = std::move(reason);
    }
    return plan;
}

/// "bs with k=4 for straggler 3" or "u with k=8 for stragglers 3, 7; 5 stays in the ring".
std::string describe(const OptccQuestion& question, const OptccParameters& chosen) {
    std::string text = fmt::format("{} with k={} for straggler{} {}", to_string(chosen.plan), chosen.segments,
                                   chosen.stragglers.size() == 1 ? "" : "s", fmt::join(chosen.stragglers, ", "));
    const std::size_t mild = question.slow.size() - chosen.stragglers.size();
    if (mild > 0) {
        text += fmt::format(", {} milder one{} left in the ring", mild, mild == 1 ? "" : "s");
    }
    return text;
}

bool asymmetric(const PlanRequest& request, const OptccParameters& chosen) {
    return std::any_of(chosen.stragglers.begin(), chosen.stragglers.end(), [&](Rank server) {
        const PortSlowdown& ports = request.topology.server(server);
        return ports.send != ports.receive;
    });
}

/// With local work that fits beside the NICs' work the intra-host ports cost little; otherwise they set the pace.
bool local_work_decides(const OptccQuestion& question, const OptccChoice& choice) {
    OptccQuestion fast = question;
    fast.cluster.local_ratio = 0;
    fast.plan = choice.parameters.plan;
    fast.segments = choice.parameters.segments;
    const std::optional<OptccChoice> without = choose_optcc(fast);
    return without && choice.predicted_ns > 1.1 * without->predicted_ns;
}

/// What the user and the algorithm have agreed on.
struct Wish {
    OptccOptions options;
    bool forced = false; ///< no ring instead
    bool shared = false;
};

Result<Plan> plan_optcc(const PlanRequest& request, std::string_view name, const Wish& wish) {
    const Result<CostInput> cost = check_request(request, name, 2);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    if (const Result<void> fits = check_cluster(request.topology, name); !fits) {
        return tl::unexpected(fits.error());
    }
    OptccQuestion question;
    question.cluster = cluster_of(request, *cost, wish.shared);
    question.elements = request.elements;
    question.nics_per_server = request.topology.nics_per_server;
    question.slow = slow_servers(request.topology);
    question.plan = wish.options.plan;
    question.segments = wish.options.segments;
    question.late_first_link = wish.options.late_first_link;
    if (question.slow.empty()) {
        return plain_ring(request,
                          fmt::format("plain ring: no straggler, every slowdown is below {}", kNoticeableSlowdown));
    }
    std::optional<OptccChoice> choice = choose_optcc(question);
    if (!choice) {
        return fail(ErrorKind::kInput, fmt::format("{} has no plan for these options", name));
    }
    Result<Plan> ring = plain_ring(request, {});
    if (!ring) {
        return ring;
    }
    const auto times = [&](double ns) { return ns / cost->vector_ns; };
    const auto ring_ns = static_cast<double>(ring->predicted.count());
    const double slowdown = to_double(question.slow.front().slowdown);
    if (!wish.forced && ring_ns <= choice->predicted_ns) {
        ring->reason =
            fmt::format("plain ring: {:.3f} vector times predicted for slowdown {:.3f}; {} would take {:.3f}",
                        times(ring_ns), slowdown, describe(question, choice->parameters), times(choice->predicted_ns));
        return ring;
    }
    std::string reason =
        fmt::format("{}{}: {:.3f} vector times predicted for slowdown {:.3f} (chosen with up to {:.3f} in mind)",
                    describe(question, choice->parameters), wish.forced ? " as asked" : "", times(choice->predicted_ns),
                    slowdown, slowdown * kSlowdownMargin);
    if (asymmetric(request, choice->parameters)) {
        reason += "; both directions planned as slow as the slower of the two";
    }
    if (local_work_decides(question, *choice)) {
        reason += "; the intra-host ports hold the NICs up";
    }
    reason += fmt::format("; the plain ring would take {:.3f}", times(ring_ns));
    return Plan{make_optcc(choice->parameters), Nanoseconds(static_cast<std::int64_t>(choice->predicted_ns)),
                std::move(reason)};
}

/// Star chunks are sized for the slowdown, and a wrong size costs more than the chunks save.
Result<void> check_star(const OptccOptions& options, const Topology& topology) {
    double slowest = 1;
    for (const PortSlowdown& server : topology.servers) {
        slowest = std::max(slowest, live_slowdown(server));
    }
    const bool star = options.plan == OptccPlan::kStar || options.plan == OptccPlan::kLagStar;
    if (star && (topology.server_count() > kMostStarServers || slowest > kMostStarSlowdown)) {
        return fail(Error(ErrorKind::kInput,
                          fmt::format("plan {} needs at most {} servers and a slowdown of at most {}; here are {} "
                                      "servers and slowdown {:.3f}",
                                      to_string(*options.plan), kMostStarServers, kMostStarSlowdown,
                                      topology.server_count(), slowest))
                        .advise("use plan bs"));
    }
    return {};
}

} // namespace

std::string_view OptccAlgorithm::summary() const {
    return shared_ ? "OptCC, ring and straggler flows side by side on a port (two lanes)"
                   : "OptCC, one flow at a time on each side of a port (one lane)";
}

std::vector<OptionHelp> OptccAlgorithm::options() const {
    return optcc_option_help();
}

Result<Plan> OptccAlgorithm::plan(const PlanRequest& request) const {
    const Result<OptccOptions> options = parse_optcc_options(request, name(), this->options());
    if (!options) {
        return tl::unexpected(options.error());
    }
    if (const Result<void> star = check_star(*options, request.topology); !star) {
        return tl::unexpected(star.error());
    }
    return plan_optcc(request, name(), {*options, options->any(), shared_});
}

std::string_view OptccPatternsAlgorithm::summary() const {
    return "the four interleaved patterns of the OptCC paper, for comparison (one straggler)";
}

std::vector<OptionHelp> OptccPatternsAlgorithm::options() const {
    return optcc_pattern_option_help();
}

Result<Plan> OptccPatternsAlgorithm::plan(const PlanRequest& request) const {
    Result<OptccOptions> options = parse_optcc_options(request, name(), this->options());
    if (!options) {
        return tl::unexpected(options.error());
    }
    if (options->segments.value_or(4) % 4 != 0) {
        return fail(Error(ErrorKind::kInput, fmt::format("k = {} is not a multiple of 4", *options->segments))
                        .advise("the four patterns take four segments at a time"));
    }
    options->plan = OptccPlan::kPatterns;
    return plan_optcc(request, name(), {*options, true, false});
}

} // namespace railbreak::collective
