// What must hold for every algorithm of this build, on random clusters: no simulated time lies below the lower bound
// of the same port model, and the port models relate to each other as they should.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collective/algorithm.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective {
namespace {

constexpr int kClusters = 40;
constexpr Rank kMostRanks = 24;
constexpr Rank kMostPerServer = 4;
constexpr std::uint64_t kBitsPerSecond = 8'000'000'000; // an element of a byte takes a nanosecond

struct Draw {
    explicit Draw(unsigned seed) : random(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    }
    std::mt19937 random;
};

/// Up to 24 ranks on servers with up to 4 ranks and NICs, up to 4 servers up to 6 times slower, some in one direction.
Topology random_topology(Draw& draw) {
    Topology topology;
    const std::int64_t per_server = std::clamp<std::int64_t>(draw.between(1, kMostPerServer), 1, kMostPerServer);
    topology.ranks_per_server = static_cast<Rank>(per_server);
    topology.nics_per_server = static_cast<std::int32_t>(draw.between(1, topology.ranks_per_server));
    topology.local_ratio = draw.between(0, 12);
    const auto servers = draw.between(2, std::max<std::int64_t>(2, kMostRanks / per_server));
    topology.servers.resize(static_cast<std::size_t>(servers));
    for (std::int64_t slow = draw.between(0, std::min<std::int64_t>(4, servers)); slow > 0; --slow) {
        PortSlowdown& port = topology.servers[static_cast<std::size_t>(draw.between(0, servers - 1))];
        const std::int64_t denominator = draw.between(1, 8);
        const Rational slowdown(draw.between(denominator, 6 * denominator), denominator);
        const std::int64_t sides = draw.between(0, 5);
        if (sides != 0) {
            port.send = slowdown;
        }
        if (sides != 1) {
            port.receive = slowdown;
        }
    }
    return topology;
}

/// Lower bounds in nanoseconds.
struct Bounds {
    Bounds(const Topology& topology, std::int64_t elements)
        : exclusive(time(topology, PortModel::kExclusive) * static_cast<double>(elements)),
          fluid(time(topology, PortModel::kFluid) * static_cast<double>(elements)) {}
    static double time(const Topology& topology, PortModel model) {
        return binding(all_bounds(topology, model)).time_over_n;
    }
    double exclusive;
    double fluid;
};

/// Whether ranks of one server never meet on a NIC: what exclusive bounds take for granted.
bool keeps_local_traffic_local(const Schedule& schedule) {
    const Rank g = schedule.ranks_per_server();
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (std::int64_t i = 0;
                 schedule.port(rank, lane).kind == PortKind::kNic && g > 1 && i < schedule.send_count(rank, lane);
                 ++i) {
                const Step step = schedule.send_step(rank, lane, i);
                if (step.slice.count > 0 && step.peer / g == rank / g) {
                    return false;
                }
            }
        }
    }
    return true;
}

/// Whether every port side serves one queue only: then the port models do not differ.
bool ports_unshared(const Schedule& schedule, const Topology& topology) {
    return schedule.lanes() == 1 && topology.ranks_per_server == topology.nics_per_server;
}

/// Makes algorithms choose plans of some hundred flows a rank and not of thousands.
Nanoseconds overhead_of_plans(std::int64_t elements) {
    return Nanoseconds(1 + elements / 100);
}

double time_ns(const Schedule& schedule, const SimulationOptions& options) {
    const auto result = simulate(schedule, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().to_line());
    return result ? static_cast<double>(result->makespan.count()) : 0;
}

/// One plan on one cluster. Rounding to nanoseconds and picoseconds is all that is granted.
void check_plan(const Schedule& schedule, const Topology& topology, const Bounds& bounds) {
    const auto exact = simulate_exact(schedule, topology);
    ASSERT_TRUE(exact) << exact.error().to_line();
    const double exact_time = to_double(*exact);
    const double slack = 1e-9 * exact_time;
    EXPECT_GE(exact_time + slack, keeps_local_traffic_local(schedule) ? bounds.exclusive : bounds.fluid);

    SimulationOptions options{
        .topology = topology, .healthy_goodput = BitRate::bits_per_s(kBitsPerSecond), .element_bytes = 1};
    // Where queues share a port side, a picosecond of rounding may decide which of them goes first.
    EXPECT_NEAR(time_ns(schedule, options), exact_time, ports_unshared(schedule, topology) ? 2 : 0.2 * exact_time);
    options.model = PortModel::kFluid;
    const double fluid = time_ns(schedule, options);
    options.cut_through = true;
    const double cut_through = time_ns(schedule, options);
    EXPECT_GE(fluid + 2, bounds.fluid);
    EXPECT_GE(cut_through + 2, bounds.fluid);
    if (ports_unshared(schedule, topology)) {
        EXPECT_NEAR(fluid, exact_time, 2) << "a port with one flow at a time is the same in both models";
        EXPECT_LE(cut_through, fluid + 2) << "forwarding early never hurts where flows share nothing";
    }
}

TEST(Algorithms, NoSimulatedTimeIsBelowTheLowerBound) {
    std::vector<std::string> tried;
    for (unsigned seed = 1; seed <= kClusters; ++seed) {
        Draw draw(seed);
        const Topology topology = random_topology(draw);
        const std::int64_t elements = draw.between(1, 20'000);
        const Bounds bounds(topology, elements);
        for (const Algorithm* algorithm : algorithms()) {
            const auto plan = algorithm->plan({.topology = topology,
                                               .elements = elements,
                                               .element_bytes = 1,
                                               .healthy_goodput = BitRate::bits_per_s(kBitsPerSecond),
                                               .flow_overhead = overhead_of_plans(elements)});
            if (!plan) {
                EXPECT_EQ(plan.error().kind(), ErrorKind::kInput) << plan.error().to_line();
                continue;
            }
            if (plan->schedule->ranks_per_server() != topology.ranks_per_server) {
                continue; // knows nothing of servers
            }
            tried.emplace_back(algorithm->name());
            SCOPED_TRACE(fmt::format("seed {}, {}: {}, {} servers, g = {}, K = {}, {} elements", seed,
                                     algorithm->name(), plan->schedule->name(), topology.server_count(),
                                     topology.ranks_per_server, topology.nics_per_server, elements));
            check_plan(*plan->schedule, topology, bounds);
            if (testing::Test::HasFailure()) {
                return;
            }
        }
    }
    for (const Algorithm* algorithm : algorithms()) {
        if (kMostPerServer == 1 && algorithm->name() == "hierarchical") {
            continue;
        }
        EXPECT_GT(std::count(tried.begin(), tried.end(), algorithm->name()), 0)
            << algorithm->name() << " applied to no cluster";
    }
}

/// The same with overhead, latency, late ranks and outages: whatever happens, everything arrives.
TEST(Algorithms, DisturbancesOnlyDelay) {
    for (unsigned seed = 1; seed <= kClusters / 2; ++seed) {
        Draw draw(seed);
        const Topology topology = random_topology(draw);
        const std::int64_t elements = draw.between(1, 5'000);
        const Bounds bounds(topology, elements);
        SimulationOptions disturbed{.topology = topology,
                                    .healthy_goodput = BitRate::bits_per_s(kBitsPerSecond),
                                    .element_bytes = 1,
                                    .flow_overhead = Nanoseconds(draw.between(0, 50)),
                                    .flow_latency = Nanoseconds(draw.between(0, 200))};
        const auto down = static_cast<Rank>(draw.between(0, topology.server_count() - 1));
        const std::int64_t begin = draw.between(0, elements);
        const PortSlowdown& port = topology.server(down);
        disturbed.timeline = {{.at = Nanoseconds(begin), .server = down, .send = 0, .receive = 0},
                              {.at = Nanoseconds(begin + draw.between(1, elements)),
                               .server = down,
                               .send = 1 / to_double(port.send),
                               .receive = 1 / to_double(port.receive)}};
        for (Rank rank = 0; rank < topology.ranks(); ++rank) {
            disturbed.rank_start.emplace_back(draw.between(0, 100));
        }
        for (const Algorithm* algorithm : algorithms()) {
            const auto plan = algorithm->plan({.topology = topology,
                                               .elements = elements,
                                               .element_bytes = 1,
                                               .healthy_goodput = BitRate::bits_per_s(kBitsPerSecond),
                                               .flow_overhead = overhead_of_plans(elements)});
            if (!plan || plan->schedule->ranks_per_server() != topology.ranks_per_server) {
                continue;
            }
            SCOPED_TRACE(fmt::format("seed {}, {}: {}", seed, algorithm->name(), plan->schedule->name()));
            for (const auto& [model, cut_through] :
                 {std::pair(PortModel::kExclusive, false), {PortModel::kFluid, false}, {PortModel::kFluid, true}}) {
                disturbed.model = model;
                disturbed.cut_through = cut_through;
                const auto late = simulate(*plan->schedule, disturbed);
                ASSERT_TRUE(late) << late.error().to_line();
                EXPECT_GE(static_cast<double>(late->makespan.count() + 2), bounds.fluid);
                EXPECT_EQ(late->makespan, *std::max_element(late->rank_ends.begin(), late->rank_ends.end()));
            }
        }
    }
}

} // namespace
} // namespace railbreak::collective
