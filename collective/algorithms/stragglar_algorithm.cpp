#include "collective/algorithms/stragglar_algorithm.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "collective/algorithms/plan_options.hpp"
#include "collective/algorithms/ring_algorithm.hpp"
#include "collective/algorithms/stragglar.hpp"

namespace railbreak::collective {

namespace {

constexpr std::uint64_t kDefaultSeed = 1;
/// The table grows with the square of the ranks, the time for matching with the fourth power.
constexpr Rank kMostRanks = 512;
constexpr Rank kMostMatchedRanks = 128;

} // namespace

double stragglar_cost_ns(Rank ranks, std::size_t rounds, double straggler, double others, double vector_ns,
                         double overhead_ns, double latency_ns) {
    const double members = ranks - 1;
    const double chunk = vector_ns / members;
    const double worst = std::max(straggler, others);
    const double scatter = (members - 1) * (others * chunk + overhead_ns + latency_ns);
    const double exchanges = members * (worst * chunk + 2 * overhead_ns + latency_ns);
    const double rest = (static_cast<double>(rounds) - members) * (worst * chunk + overhead_ns + latency_ns);
    return scatter + exchanges + rest + latency_ns;
}

std::string_view StragglarAlgorithm::summary() const {
    return "StragglAR: the others reduce-scatter, exchange with the late or slow rank, and spread what is finished";
}

std::vector<OptionHelp> StragglarAlgorithm::options() const {
    return {{"straggler", "a rank", "the late rank (default: the slowest, or the last when nobody is slow)"},
            {"seed", "0..2147483647", "of the matching, when the ranks are no power of two (default 1)"}};
}

Result<Plan> StragglarAlgorithm::plan(const PlanRequest& request) const {
    if (const Result<void> known = check_option_names(request, *this); !known) {
        return tl::unexpected(known.error());
    }
    if (const Result<void> single = check_one_rank_servers(request, name(), "hierarchical or ring"); !single) {
        return tl::unexpected(single.error());
    }
    const Result<CostInput> cost = check_request(request, name(), 3);
    if (!cost) {
        return tl::unexpected(cost.error());
    }
    const bool power_of_two = std::has_single_bit(static_cast<std::uint32_t>(cost->ranks));
    if (cost->ranks > (power_of_two ? kMostRanks : kMostMatchedRanks)) {
        return fail(Error(ErrorKind::kInput, fmt::format("stragglar takes up to {} ranks, powers of two up to {}; here "
                                                         "are {}",
                                                         kMostMatchedRanks, kMostRanks, cost->ranks))
                        .advise("use ring or optcc"));
    }
    if (const Result<void> alive = check_nics_alive(request, name(), nics_in_use(request.topology)); !alive) {
        return tl::unexpected(alive.error());
    }
    const auto asked = whole_option(request, "straggler", 0, cost->ranks - 1);
    const auto seed = whole_option(request, "seed", 0, 2147483647);
    for (const auto* option : {&asked, &seed}) {
        if (!*option) {
            return tl::unexpected(option->error());
        }
    }
    const Rank slowest = slowest_rank(request.topology).value_or(cost->ranks - 1);
    const auto straggler = static_cast<Rank>(asked->value_or(slowest));
    double others = 1;
    for (Rank rank = 0; rank < cost->ranks; ++rank) {
        if (rank != straggler) {
            others = std::max(others, to_double(request.topology.server(rank).worst()));
        }
    }
    const double slowdown = to_double(request.topology.server(straggler).worst());
    const auto seed_value = static_cast<std::uint64_t>(seed->value_or(kDefaultSeed));
    const SpreadRounds rounds = stragglar_rounds(cost->ranks, seed_value);
    const double predicted = stragglar_cost_ns(cost->ranks, rounds.size(), slowdown, others, cost->vector_ns,
                                               cost->overhead_ns, cost->latency_ns);
    return Plan{make_stragglar({.ranks = cost->ranks, .straggler = straggler, .elements = request.elements}, rounds),
                Nanoseconds(static_cast<std::int64_t>(predicted)),
                fmt::format("rank {} with slowdown {:.3f} is taken for the late one; {} rounds after the others' "
                            "reduce-scatter",
                            straggler, slowdown, rounds.size())};
}

} // namespace railbreak::collective
