// No schedule of any algorithm, on any damaged cluster, is faster in the simulator than the bounds of the same port
// model allow. Random clusters: up to 24 ranks, 4 slow servers, 4 ranks a server, slowdowns up to 6.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collective/planner.hpp"

namespace railbreak::collective {
namespace {

Topology random_cluster(std::mt19937& random) {
    const auto below = [&](std::uint32_t limit) { return static_cast<int>(random() % limit); };
    const int per_server = below(3) != 0 ? 1 : 2 + below(3);
    Topology topology = healthy_topology(static_cast<Rank>(2 + below(static_cast<std::uint32_t>(24 / per_server - 1))));
    topology.ranks_per_server = per_server;
    topology.nics_per_server = below(3) != 0 ? per_server : 1 + below(4);
    topology.local_ratio = below(2) == 0 ? Rational(0) : Rational(1 + below(8), 2);
    const int slow = std::min(below(5), static_cast<int>(topology.server_count()) - 1);
    for (int index = 0; index < slow; ++index) {
        PortSlowdown& server =
            topology.servers[static_cast<std::size_t>(below(static_cast<std::uint32_t>(topology.server_count())))];
        const auto slowdown = [&] { return Rational(10 + below(below(2) == 0 ? 11 : 51), 10); };
        server.send = slowdown();
        server.receive = below(3) == 0 ? slowdown() : server.send;
        server.failed_nics = 0;
        if (topology.nics_per_server > 1 && below(3) == 0) {
            const Rational pooled(topology.nics_per_server, topology.nics_per_server - 1);
            server = {.send = pooled, .receive = pooled, .failed_nics = 1};
        }
    }
    return topology;
}

std::string text_of(const Topology& topology) {
    std::string text =
        fmt::format("g={} K={} V={}", topology.ranks_per_server, topology.nics_per_server, topology.local_ratio.str());
    for (const PortSlowdown& server : topology.servers) {
        text += fmt::format(" {}/{}{}", server.send.str(), server.receive.str(), server.failed_nics != 0 ? "!" : "");
    }
    return text;
}

class BoundsHold : public testing::TestWithParam<PortModel> {};

TEST_P(BoundsHold, ForEveryAlgorithmOnEveryCluster) {
    std::mt19937 random(2026);
    std::set<std::string> planned;
    for (int round = 0; round < 20; ++round) {
        PlannerInput input;
        input.model = GetParam();
        input.request.topology = random_cluster(random);
        input.request.elements = 24 * 1000 + static_cast<std::int64_t>(random() % 100'000);
        input.request.healthy_goodput = BitRate::bits_per_s(1'000'000'000);
        const double vector_ns = 32.0 * static_cast<double>(input.request.elements);
        const Bound bound = binding(all_bounds(input.request.topology, input.model));
        for (const Algorithm* algorithm : plannable_algorithms()) {
            const Result<Plan> plan = algorithm->plan(input.request);
            if (!plan) {
                continue;
            }
            planned.emplace(algorithm->name());
            SimulationOptions options = simulation_of(input);
            if (options.model == PortModel::kFluid && round % 2 != 0) { // none, some, without limit
                options.sharing = round % 4 == 1 ? PortSharing::kWindows : PortSharing::kMaxMin;
                options.send_buffer = ByteCount::bytes(static_cast<std::uint64_t>(round) * 1000);
                options.receive_buffer = ByteCount::bytes(random() % 3 * random());
            }
            const Result<SimulationResult> result = simulate(*plan->schedule, options);
            ASSERT_TRUE(result) << algorithm->name() << ": " << result.error().to_line();
            EXPECT_GE(static_cast<double>(result->makespan.count() + 1), bound.time_over_n * vector_ns)
                << plan->schedule->name() << " on " << text_of(input.request.topology) << ", " << bound.name;
        }
    }
    for (const Algorithm* algorithm : plannable_algorithms()) {
        EXPECT_TRUE(planned.contains(std::string(algorithm->name()))) << algorithm->name() << " was never planned";
    }
}

// A flow that follows another at its rate must not be taken for slower because of rounding: the simulation stood still.
TEST(FluidSimulation, EndsWhereRatesDifferByRoundingOnly) {
    PlannerInput input;
    input.model = PortModel::kFluid;
    input.request.topology = healthy_topology(10);
    for (const auto& [server, slowdown] : {std::pair(1, Rational(13, 10)), {2, {8, 5}}, {3, {8, 5}}, {6, {12, 5}}}) {
        input.request.topology.servers[static_cast<std::size_t>(server)] = {.send = slowdown, .receive = slowdown};
    }
    input.request.elements = 110'068;
    input.request.healthy_goodput = BitRate::bits_per_s(1'000'000'000);
    const Result<Plan> plan = (*find_algorithm("tree"))->plan(input.request);
    ASSERT_TRUE(plan);
    input.request = with_margin(input.request);
    EXPECT_TRUE(simulate(*plan->schedule, simulation_of(input)));
}

INSTANTIATE_TEST_SUITE_P(Models, BoundsHold, testing::Values(PortModel::kExclusive, PortModel::kFluid),
                         [](const testing::TestParamInfo<PortModel>& info) {
                             return std::string(to_string(info.param));
                         });

} // namespace
} // namespace railbreak::collective
