// Halving and doubling, the double binary tree, the hierarchical AllReduce, and the table they are written into.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "collective/algorithms/flow_list.hpp"
#include "collective/algorithms/halving_doubling.hpp"
#include "collective/algorithms/hierarchical.hpp"
#include "collective/algorithms/tree.hpp"
#include "tests/unit/collective/baseline_support.hpp"

namespace railbreak::collective {
namespace {

using namespace test;

std::vector<Rank> in_order(Rank ranks) {
    std::vector<Rank> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

TEST(FlowList, SendsWaitForWhatWroteTheirSlice) {
    FlowList list("list", 3, 10, {Port{}, Port{PortKind::kNic, 1}});
    list.add({0, 1, {0, 4}, Stage::kReduce, Combine::kReduce, 0}); // receive 1 of lane 0 at rank 1
    list.add({2, 1, {6, 4}, Stage::kReduce, Combine::kReduce, 0}); // receive 2
    list.add({2, 1, {2, 3}, Stage::kReduce, Combine::kReduce, 1}); // receive 1 of lane 1
    list.add({0, 2, {0, 0}, Stage::kReduce, Combine::kReduce, 0}); // empty, left out
    list.add({1, 0, {4, 2}, Stage::kReduce, Combine::kReduce, 0}); // overlaps the last only
    list.add({1, 0, {0, 2}, Stage::kReduce, Combine::kReduce, 0}); // the first
    list.add({1, 2, {3, 4}, Stage::kReduce, Combine::kReduce, 1}); // all three
    list.add({1, 2, {5, 1}, Stage::kReduce, Combine::kReduce, 1}); // none
    EXPECT_EQ(list.size(), 7U);
    const auto schedule = list.finish();
    EXPECT_EQ(list.size(), 0U);
    EXPECT_EQ(schedule->lanes(), 2);
    EXPECT_EQ(schedule->port(2, 1), (Port{PortKind::kNic, 1}));
    EXPECT_EQ(schedule->receive_count(1, 0), 2);
    EXPECT_EQ(schedule->receive_count(2, 0), 0);
    EXPECT_EQ(schedule->receive_step(1, 0, 1).slice, (Slice{6, 4}));
    EXPECT_EQ(schedule->receive_step(1, 0, 1).peer, 2);
    EXPECT_EQ(schedule->send_step(1, 0, 0).after, (PrefixCounts{0, 1, 0, 0}));
    EXPECT_EQ(schedule->send_step(1, 0, 1).after, (PrefixCounts{1, 0, 0, 0}));
    EXPECT_EQ(schedule->send_step(1, 1, 0).after, (PrefixCounts{2, 1, 0, 0}));
    EXPECT_EQ(schedule->send_step(1, 1, 1).after, (PrefixCounts{0, 0, 0, 0}));
    EXPECT_EQ(schedule->send_step(0, 0, 0).after, (PrefixCounts{0, 0, 0, 0}));
}

TEST(FlowList, RewrittenRangesCountTheirLastWriter) {
    FlowList list("list", 2, 12);
    list.add({0, 1, {0, 12}, Stage::kReduce, Combine::kReduce});
    list.add({0, 1, {4, 4}, Stage::kReduce, Combine::kReduce});
    list.add({0, 1, {6, 1}, Stage::kReduce, Combine::kReduce});
    for (std::int64_t at = 0; at < 12; ++at) {
        list.add({1, 0, {at, 1}, Stage::kReduce, Combine::kReduce});
    }
    const auto schedule = list.finish();
    for (std::int64_t at = 0; at < 12; ++at) {
        EXPECT_EQ(schedule->send_step(1, 0, at).after[0], at == 6 ? 3 : at >= 4 && at < 8 ? 2 : 1) << at;
    }
}

TEST(FlowList, ExchangeLeavesBothWithTheSumAndPortsBusyForOneSlice) {
    for (const std::int64_t elements : {1, 2, 9, 10}) {
        FlowList list("exchange", 2, elements);
        list.exchange(0, 1, {0, elements});
        const auto schedule = list.finish();
        expect_proven(*schedule);
        expect_sums(*schedule, 7);
        EXPECT_EQ(nic_traffic(*schedule, 0).sent, elements);
        EXPECT_EQ(nic_traffic(*schedule, 0).received, elements);
        EXPECT_EQ(exact_time(*schedule, healthy_topology(2)), elements + elements % 2);
    }
}

TEST(HalvingDoubling, IsProvenForEveryNumberOfRanks) {
    for (Rank ranks = 2; ranks <= 33; ++ranks) {
        for (const std::int64_t elements : {1, 5, 1000}) {
            expect_proven(*make_halving_doubling(in_order(ranks), elements));
        }
    }
    expect_sums(*make_halving_doubling({4, 2, 0, 1, 3}, 37), 10);
}

TEST(HalvingDoubling, PowersOfTwoTakeTheTimeOfTheRing) {
    for (const Rank ranks : {2, 4, 8, 16}) {
        const auto schedule = make_halving_doubling(in_order(ranks), ranks * 10);
        const std::int64_t volume = 2 * (ranks - 1) * 10;
        for (Rank rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(nic_traffic(*schedule, rank).sent, volume);
            EXPECT_EQ(nic_traffic(*schedule, rank).received, volume);
        }
        EXPECT_EQ(exact_time(*schedule, healthy_topology(ranks)), volume);
        EXPECT_EQ(exact_time(*schedule, one_straggler(ranks, ranks - 1, 3)), 3 * volume);
        const auto plan = plan_of("halving-doubling", request_for(one_straggler(ranks, 0, ratio("3")), ranks * 10));
        EXPECT_NEAR(predicted_elements(*plan), static_cast<double>(3 * volume), 0.01);
    }
}

TEST(HalvingDoubling, SlowRankIsNotFolded) {
    // Six ranks: two fold into two and the slow one takes part in the four.
    const auto plan = plan_of("halving-doubling", request_for(one_straggler(6, 1, ratio("3")), 40));
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(nic_traffic(*plan->schedule, 1).sent, 2 * 40 * 3 / 4);
    EXPECT_NEAR(predicted_elements(*plan), 2 * 40 + 3 * 60, 0.01);
    EXPECT_EQ(exact_time(*plan->schedule, one_straggler(6, 1, 3)), 2 * 40 + 3 * 60);
}

TEST(HalvingDoubling, PredictionIsTheSimulatedTime) {
    for (Rank ranks = 2; ranks <= 17; ++ranks) {
        for (const char* slowdown : {"1", "3/2", "2", "4"}) {
            Topology topology = one_straggler(ranks, 0, ratio(slowdown));
            topology.servers.back().receive = ratio("5/4");
            PlanRequest request = request_for(topology, 16 * 1000);
            request.flow_overhead = std::chrono::microseconds(30);
            request.flow_latency = std::chrono::microseconds(700);
            const auto plan = plan_of("halving-doubling", request);
            ASSERT_TRUE(plan.has_value());
            for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
                const auto run = simulate(*plan->schedule, {.model = model,
                                                            .topology = topology,
                                                            .healthy_goodput = request.healthy_goodput,
                                                            .flow_overhead = request.flow_overhead,
                                                            .flow_latency = request.flow_latency});
                ASSERT_TRUE(run.has_value());
                EXPECT_NEAR(static_cast<double>(run->makespan.count()), static_cast<double>(plan->predicted.count()), 2)
                    << ranks << " " << slowdown;
            }
        }
    }
    const auto five = plan_of("halving-doubling", request_for(one_straggler(5, 1, ratio("2")), 1000));
    EXPECT_NEAR(predicted_elements(*five), 4000, 0.01) << "the slow rank does not wait for the fold";
}

TEST(Tree, EveryRankHasAParentAndOneRoleInEachTree) {
    for (Rank members = 2; members <= 40; ++members) {
        const DoubleTree trees = double_tree(members);
        std::vector<int> inner(static_cast<std::size_t>(members));
        for (const std::vector<Rank>& parents : {trees.first, trees.second}) {
            std::vector<int> children(static_cast<std::size_t>(members));
            int roots = 0;
            for (const Rank parent : parents) {
                if (parent < 0) {
                    ++roots;
                } else {
                    ++children[static_cast<std::size_t>(parent)];
                }
            }
            EXPECT_EQ(roots, 1);
            for (std::size_t member = 0; member < children.size(); ++member) {
                EXPECT_LE(children[member], parents[member] < 0 ? 1 : 2);
                inner[member] += children[member];
            }
        }
        EXPECT_LE(*std::max_element(inner.begin(), inner.end()), 2) << "children in both trees together";
    }
}

TEST(Tree, IsProvenWithAndWithoutALeaf) {
    for (Rank ranks = 2; ranks <= 17; ++ranks) {
        for (const std::int64_t elements : {1, 3, 500}) {
            expect_proven(*make_tree({.ranks = ranks, .elements = elements, .chunks = 4}));
            for (Rank leaf = 0; leaf < ranks && ranks >= 3; leaf += 3) {
                expect_proven(*make_tree({.ranks = ranks, .elements = elements, .chunks = 3, .leaf = leaf}));
            }
        }
    }
    expect_sums(*make_tree({.ranks = 7, .elements = 30, .chunks = 2, .leaf = 3}), 10);
}

TEST(Tree, EverySideOfALaneHasOnePeer) {
    for (Rank ranks = 2; ranks <= 40; ++ranks) {
        for (Rank leaf = -1; leaf < (ranks >= 3 ? ranks : 0); leaf += 5) {
            const auto schedule = make_tree({.ranks = ranks,
                                             .elements = 40,
                                             .chunks = 2,
                                             .leaf = leaf < 0 ? std::nullopt : std::optional<Rank>(leaf)});
            for (Rank rank = 0; rank < ranks; ++rank) {
                for (Lane lane = 0; lane < 4; ++lane) {
                    std::set<Rank> to;
                    std::set<Rank> from;
                    for (std::int64_t i = 0; i < schedule->send_count(rank, lane); ++i) {
                        to.insert(schedule->send_step(rank, lane, i).peer);
                    }
                    for (std::int64_t i = 0; i < schedule->receive_count(rank, lane); ++i) {
                        from.insert(schedule->receive_step(rank, lane, i).peer);
                    }
                    EXPECT_LE(to.size(), 1U) << schedule->name() << " rank " << rank << " lane " << lane;
                    EXPECT_LE(from.size(), 1U) << schedule->name() << " rank " << rank << " lane " << lane;
                }
            }
        }
    }
}

TEST(Tree, TrafficByPort) {
    const auto schedule = make_tree({.ranks = 9, .elements = 80, .chunks = 4, .leaf = 4});
    for (Rank rank = 0; rank < 9; ++rank) {
        const Traffic port = nic_traffic(*schedule, rank);
        EXPECT_EQ(port.sent, port.received);
        EXPECT_LE(port.sent, 2 * 80);
        if (rank == 4) {
            EXPECT_EQ(port.sent, 80) << "a leaf of both trees";
        }
    }
}

TEST(Tree, SlowLeafCostsLittleAndChunksAreChosen) {
    const auto wide = [](const char* slowdown) {
        PlanRequest request = request_for(one_straggler(16, 3, ratio(slowdown)), 1 << 20);
        request.flow_overhead = std::chrono::microseconds(1);
        request.flow_latency = std::chrono::microseconds(3);
        return plan_of("tree", request);
    };
    EXPECT_LT(predicted_elements(*wide("2")) / (1 << 20), 2.2);
    EXPECT_LT(predicted_elements(*wide("4")) / (1 << 20), 4.2);
    const auto fixed = plan_of("tree", request_for(healthy_topology(4), 400, {{"chunks", "7"}}));
    EXPECT_EQ(fixed->schedule->name(), "tree(p=4,chunks=7)");
    const auto leaf = plan_of("tree", request_for(one_straggler(4, 2, ratio("2")), 400, {{"chunks", "7"}}));
    EXPECT_EQ(leaf->schedule->name(), "tree(p=4,chunks=7,leaf=2)");
}

TEST(Hierarchical, IsProvenForEveryShape) {
    for (const Rank servers : {1, 2, 3, 5}) {
        for (const Rank width : {2, 3, 4, 8}) {
            for (const std::int64_t elements : {1, 7, 997}) {
                const auto schedule = make_hierarchical({servers, width, (width + 1) / 2, elements});
                expect_proven(*schedule);
                expect_rails(*schedule);
            }
        }
    }
    expect_sums(*make_hierarchical({3, 4, 4, 50}), 100);
}

TEST(Hierarchical, TrafficByPort) {
    const std::int64_t elements = 4 * 3 * 10;
    const auto schedule = make_hierarchical({3, 4, 4, elements});
    for (const auto& [key, port] : traffic(*schedule)) {
        const bool nic = std::get<1>(key) == PortKind::kNic;
        const std::int64_t expected = nic ? 2 * elements / 4 * 2 / 3 : 2 * elements * 3 / 4;
        EXPECT_EQ(port, (Traffic{expected, expected, nic ? 4 : 6, nic ? 4 : 6}));
    }
}

TEST(Hierarchical, PredictionIsTheRingOnTheRailPlusTheLocalPhases) {
    Topology topology = one_straggler(3, 1, ratio("2"));
    topology.ranks_per_server = topology.nics_per_server = 4;
    topology.local_ratio = 4;
    const auto plan = plan_of("hierarchical", request_for(topology, 1200));
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(predicted_elements(*plan), 2 * 2.0 * 2 / 3 * 300 + 2 * 900 / 4.0, 0.01);
    EXPECT_EQ(exact_time(*plan->schedule, topology), 800 + 450);
}

TEST(Classics, ErrorsSayWhatToDo) {
    Topology wide = healthy_topology(4);
    wide.ranks_per_server = 2;
    for (const char* algorithm : {"halving-doubling", "tree"}) {
        expect_input_error(plan_of(algorithm, request_for(wide, 100)), "hierarchical");
        expect_input_error(plan_of(algorithm, request_for(healthy_topology(1), 100)), "at least 2 ranks");
        expect_input_error(plan_of(algorithm, request_for(healthy_topology(4), 100, {{"k", "1"}})), "no option");
    }
    expect_input_error(plan_of("hierarchical", request_for(healthy_topology(4), 100)), "use ring");
    expect_input_error(plan_of("tree", request_for(healthy_topology(4), 100, {{"chunks", "0"}})), "1 to 1024");
    wide.nics_per_server = 2;
    wide.servers[2].failed_nics = 2;
    expect_input_error(plan_of("hierarchical", request_for(wide, 100)), "NIC 1 of server 2, which is dead");
}

} // namespace
} // namespace railbreak::collective
