// The best spanning-tree weights: against the known optima, and against every other bound on random clusters.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/bounds.hpp"
#include "collective/exact_bound.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {
namespace {

using bounds::BestWeights;
using bounds::Cluster;

constexpr double kRounding = 1e-9;

Rational parsed(const std::string& text) {
    return *parse_rational(text);
}

Topology slow_server(Rank servers, Rank per_server, const Rational& slowdown, const Rational& local_ratio) {
    Topology topology = one_straggler(servers, servers / 2, slowdown);
    topology.ranks_per_server = per_server;
    topology.nics_per_server = per_server;
    topology.local_ratio = local_ratio;
    return topology;
}

BestWeights best(PortModel model, const Cluster<Rational>& cluster) {
    Result<BestWeights> found = bounds::best_weights(model, cluster);
    EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().to_line());
    return found ? *found : BestWeights{};
}

struct GpuVector {
    Rank servers;
    Rank per_server;
    std::string slowdown;
    Rank local_ratio;
    std::string flat, theorem3, theorem13, exact;
};

const std::vector<GpuVector>& gpu_vectors() {
    static const std::vector<GpuVector> list = {
#include "tests/unit/collective/gpu_bound_vectors.inc"
    };
    return list;
}

class GpuBoundRow : public testing::TestWithParam<GpuVector> {};

TEST_P(GpuBoundRow, IsExact) {
    const GpuVector& row = GetParam();
    const Rational slowdown = parsed(row.slowdown);
    EXPECT_EQ(bounds::local_ports(row.servers, row.per_server, Rational(1)), parsed(row.flat));
    EXPECT_EQ(bounds::theorem3(row.servers, row.per_server, slowdown), parsed(row.theorem3));
    EXPECT_EQ(bounds::theorem13(row.servers, row.per_server, slowdown), parsed(row.theorem13));
    const Topology topology = slow_server(row.servers, row.per_server, slowdown, row.local_ratio);
    EXPECT_EQ(best(PortModel::kExclusive, bounds::cluster_of(topology)).time_over_n, parsed(row.exact));
    if (row.local_ratio == row.per_server - 1) {
        EXPECT_EQ(bounds::local_ports(row.servers, row.per_server, slowdown), parsed(row.exact));
    }
    const Bound bound = binding(all_bounds(topology, PortModel::kExclusive));
    EXPECT_NEAR(bound.time_over_n, to_double(parsed(row.exact)), kRounding) << bound.name;
}

INSTANTIATE_TEST_SUITE_P(Vectors, GpuBoundRow, testing::ValuesIn(gpu_vectors()),
                         [](const testing::TestParamInfo<GpuVector>& info) { return std::to_string(info.index); });

/// Servers of up to `kinds` kinds, slowdowns 1 to 4, mostly mild.
Topology random_topology(std::mt19937& random, int kinds, bool alike) {
    const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
    const auto slowdown = [&] { return Rational(below(4) == 0 ? 20 + below(60) : 20 + below(10), 20); };
    Topology topology = healthy_topology(static_cast<Rank>(2 + kinds + below(20)));
    topology.ranks_per_server = below(2) == 0 ? 1 : 1 + below(8);
    topology.nics_per_server = below(2) == 0 ? topology.ranks_per_server : 1 + below(8);
    topology.local_ratio = Rational(below(4) * 5, 2);
    for (int kind = 0; kind < kinds; ++kind) {
        PortSlowdown server;
        server.send = slowdown();
        server.receive = alike ? server.send : slowdown();
        if (topology.nics_per_server > 1 && below(4) == 0) {
            server = {.send = Rational(topology.nics_per_server, topology.nics_per_server - 1), .failed_nics = 1};
            server.receive = server.send;
        }
        topology.servers[static_cast<std::size_t>(kind)] = server;
    }
    return topology;
}

TEST(BestWeights, NoNamedBoundIsLargerAndFluidIsNeverAboveExclusive) {
    std::mt19937 random(11);
    for (int round = 0; round < 120; ++round) {
        const Topology topology = random_topology(random, static_cast<int>(random() % 7), random() % 2 == 0);
        double fluid = 0;
        for (const PortModel model : {PortModel::kFluid, PortModel::kExclusive}) {
            const std::vector<Bound> found = all_bounds(topology, model);
            const Bound& last = found.back();
            ASSERT_TRUE(last.name == "best weights" || last.name == "exact optimum") << last.name;
            for (const Bound& bound : found) {
                EXPECT_LE(bound.time_over_n, last.time_over_n * (1 + kRounding)) << round << ": " << bound.name;
                EXPECT_EQ(bound.model, to_string(model));
                EXPECT_FALSE(bound.proof.empty() || bound.branch.empty()) << bound.name;
            }
            if (model == PortModel::kFluid) {
                fluid = last.time_over_n;
            } else {
                EXPECT_LE(fluid, last.time_over_n * (1 + kRounding)) << round;
            }
        }
    }
}

TEST(BestWeights, TheCertificateReachesTheProgrammesValueAndNeverExceedsIt) {
    std::mt19937 random(12);
    for (int round = 0; round < 60; ++round) {
        const Topology topology = random_topology(random, 1 + static_cast<int>(random() % 8), random() % 2 == 0);
        for (const PortModel model : {PortModel::kFluid, PortModel::kExclusive}) {
            const Cluster<Rational> cluster = bounds::cluster_of(topology);
            const BestWeights found = best(model, cluster);
            EXPECT_TRUE(found.optimal);
            EXPECT_EQ(found.time_over_n, bounds::weighted_bound(model, cluster, found.weights));
            EXPECT_LE(to_double(found.time_over_n), found.programme_value * (1 + kRounding));
            EXPECT_GE(to_double(found.time_over_n), found.programme_value * (1 - 2 * kRounding));
        }
    }
}

TEST(BestWeights, FluidOptimumHasAClosedForm) {
    std::mt19937 random(13);
    for (int round = 0; round < 40; ++round) {
        std::vector<Rational> ells(1 + random() % 8);
        for (Rational& ell : ells) {
            ell = Rational(10 + random() % 20, 10);
        }
        const auto ranks = static_cast<Rank>(ells.size() + 1 + random() % 10);
        EXPECT_EQ(best(PortModel::kFluid, bounds::cluster_of(stragglers_first(ranks, ells))).time_over_n,
                  bounds::theorem2(ranks, ells));
    }
}

TEST(BestWeights, ThirtyTwoKindsOfDamageAreAnswered) {
    std::mt19937 random(14);
    const Topology topology = [&] {
        Topology made = healthy_topology(64);
        for (std::size_t server = 0; server < 32; ++server) {
            made.servers[server].send = Rational(100 + 2 * static_cast<int>(server), 100);
            made.servers[server].receive = made.servers[server].send;
        }
        return made;
    }();
    for (const PortModel model : {PortModel::kFluid, PortModel::kExclusive}) {
        const Result<BestWeights> found = bounds::best_weights(model, bounds::cluster_of(topology));
        ASSERT_TRUE(found.has_value());
        EXPECT_TRUE(found->optimal);
        EXPECT_NEAR(to_double(found->time_over_n), found->programme_value, kRounding);
    }
}

TEST(BestWeights, MoreKindsAreRefusedAndTheNamedBoundsStand) {
    Topology topology = healthy_topology(64);
    for (std::size_t server = 0; server < 40; ++server) {
        topology.servers[server].send = Rational(100 + static_cast<int>(server), 100);
    }
    const Result<BestWeights> found = bounds::best_weights(PortModel::kExclusive, bounds::cluster_of(topology));
    ASSERT_FALSE(found.has_value());
    EXPECT_EQ(found.error().kind(), ErrorKind::kInput);
    EXPECT_EQ(all_bounds(topology, PortModel::kFluid).back().name, "theorem 2");
}

TEST(BestWeights, AFewRoundsProveABoundToo) {
    std::mt19937 random(15);
    const Cluster<Rational> cluster = bounds::cluster_of(random_topology(random, 12, false));
    const Result<BestWeights> early = bounds::best_weights(PortModel::kExclusive, cluster, 2);
    const Result<BestWeights> late = bounds::best_weights(PortModel::kExclusive, cluster);
    ASSERT_TRUE(early.has_value() && late.has_value());
    EXPECT_EQ(early->rounds, 2);
    EXPECT_LE(to_double(early->time_over_n), to_double(late->time_over_n) * (1 + kRounding));
}

TEST(WeightedBound, IsTheSpanningTreeBoundForOneRankAServer) {
    std::mt19937 random(16);
    for (int round = 0; round < 30; ++round) {
        const std::size_t ranks = 2 + random() % 8;
        Cluster<Rational> cluster;
        std::vector<Rational> slowdowns;
        std::vector<Rational> weights;
        std::vector<bounds::ClassWeights<Rational>> sides;
        for (std::size_t v = 0; v < ranks; ++v) {
            slowdowns.emplace_back(10 + random() % 20, 10);
            weights.emplace_back(1 + random() % 10, 10);
            cluster.classes.push_back({1, 1, slowdowns.back(), slowdowns.back()});
            sides.push_back({weights.back(), weights.back(), 0, 0, 0});
        }
        for (const PortModel model : {PortModel::kFluid, PortModel::kExclusive}) {
            EXPECT_EQ(bounds::weighted_bound(model, cluster, sides), bounds::spanning_tree(model, slowdowns, weights));
        }
    }
}

TEST(WeightedBound, CutsThatAreTooLargeAreScaledDown) {
    // A server that sends at half rate: nothing is known of the others' time, so all weight on its sending side.
    Cluster<Rational> cluster;
    cluster.classes = {{3, 1, 1, 1}, {1, 1, 2, 1}};
    std::vector<bounds::ClassWeights<Rational>> weights(2);
    weights[1] = {1, 0, 0, 2, 0};
    EXPECT_EQ(bounds::weighted_bound(PortModel::kFluid, cluster, weights), 2);
    weights[1].leave = 50;
    EXPECT_EQ(bounds::weighted_bound(PortModel::kFluid, cluster, weights), 2);
    weights[1].leave = 0; // without the cut the tree takes the cheaper direction
    EXPECT_EQ(bounds::weighted_bound(PortModel::kFluid, cluster, weights), 0);
}

TEST(AllBounds, NameTheTheoremOfTheTopology) {
    const auto names = [](const Topology& topology, PortModel model) {
        std::vector<std::string> list;
        for (const Bound& bound : all_bounds(topology, model)) {
            list.push_back(bound.name);
        }
        return list;
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(names(healthy_topology(4), PortModel::kExclusive), (Names{"fault-free", "exact optimum"}));
    EXPECT_EQ(names(one_straggler(8, 3, {3, 2}), PortModel::kExclusive),
              (Names{"fault-free", "theorem 6", "theorem 1", "port sum", "peers", "exact optimum"}));
    EXPECT_EQ(names(one_straggler(8, 3, {3, 2}), PortModel::kFluid),
              (Names{"fault-free", "theorem 1", "best weights"}));
    EXPECT_EQ(
        names(stragglers_first(8, {{3, 2}, {3, 2}}), PortModel::kExclusive),
        (Names{"fault-free", "theorem 2", "theorem 6", "equal stragglers", "port sum", "peers", "exact optimum"}));
    EXPECT_EQ(
        names(slow_server(4, 8, {3, 2}, 7), PortModel::kExclusive),
        (Names{"fault-free", "theorem 13", "theorem 3", "port sum", "peers", "intra-host ports", "exact optimum"}));
    Topology dead = slow_server(4, 8, 2, 0);
    dead.servers[2].failed_nics = 0xF;
    EXPECT_EQ(names(dead, PortModel::kExclusive),
              (Names{"fault-free", "theorem 3", "port sum", "peers", "exact optimum"}));
}

TEST(AllBounds, ADeadNicCostsLessThanASlowOne) {
    // Half of the NICs dead: the others work at full rate, so the far ends of their flows lose nothing.
    Topology slow = slow_server(4, 8, 2, 0);
    Topology dead = slow;
    dead.servers[2].failed_nics = 0xF;
    EXPECT_DOUBLE_EQ(binding(all_bounds(slow, PortModel::kExclusive)).time_over_n, 2.0 / 8);
    EXPECT_DOUBLE_EQ(binding(all_bounds(dead, PortModel::kExclusive)).time_over_n, 2.0 / 8);
    slow.servers[2] = {.send = {8, 7}, .receive = {8, 7}};
    dead.servers[2] = {.send = {8, 7}, .receive = {8, 7}, .failed_nics = 1};
    EXPECT_DOUBLE_EQ(binding(all_bounds(slow, PortModel::kExclusive)).time_over_n, bounds::theorem13(4, 8, 8.0 / 7));
    EXPECT_DOUBLE_EQ(binding(all_bounds(dead, PortModel::kExclusive)).time_over_n, bounds::theorem3(4, 8, 8.0 / 7));
}

TEST(AllBounds, AllServersSlowCountRelativeToTheFastest) {
    Topology topology = stragglers_first(5, {2, 2, 2, 2, 3});
    for (const PortModel model : {PortModel::kFluid, PortModel::kExclusive}) {
        const std::vector<Bound> found = all_bounds(topology, model);
        EXPECT_DOUBLE_EQ(found.front().time_over_n, 2 * 1.6) << "fault-free at half rate";
        EXPECT_GE(binding(found).time_over_n, 3.2);
    }
    EXPECT_EQ(binding(all_bounds(stragglers_first(2, {2, 2}), PortModel::kFluid)).time_over_n, 2);
}

} // namespace
} // namespace railbreak::collective
