// Rings of several channels, over servers of one rank and of several, and rings after failover.
#include <algorithm>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/ring.hpp"
#include "tests/unit/collective/baseline_support.hpp"

namespace railbreak::collective {
namespace {

using namespace test;

Topology servers_of(Rank servers, Rank ranks, std::int32_t nics) {
    Topology topology = healthy_topology(servers);
    topology.ranks_per_server = ranks;
    topology.nics_per_server = nics;
    return topology;
}

Topology dead_nic(Rank servers, Rank ranks, std::int32_t nics, Rank server, std::int32_t nic) {
    Topology topology = servers_of(servers, ranks, nics);
    PortSlowdown& slow = topology.servers[static_cast<std::size_t>(server)];
    slow.failed_nics = std::uint64_t{1} << nic;
    slow.send = slow.receive = Rational(nics, std::max(nics - 1, 1));
    return topology;
}

/// T0 of a cluster in elements over one NIC: 2(p-1)/p of the vector over g NICs.
double healthy_elements(const Topology& topology, std::int64_t elements) {
    const double p = topology.ranks();
    return 2 * (p - 1) / p * static_cast<double>(elements) / topology.ranks_per_server;
}

TEST(ChannelRing, ChannelsCarryEqualPartsOnTheirNics) {
    for (const std::int32_t channels : {1, 2, 3, 4}) {
        Topology topology = one_straggler(6, 2, ratio("3/2"));
        topology.nics_per_server = 2;
        const auto plan = plan_of("ring", request_for(topology, 720, {{"channels", std::to_string(channels)}}));
        ASSERT_TRUE(plan.has_value()) << plan.error().to_line();
        EXPECT_EQ(plan->schedule->lanes(), channels);
        EXPECT_EQ(plan->schedule->port(3, channels - 1), (Port{PortKind::kNic, (channels - 1) % 2}));
        expect_proven(*plan->schedule);
        expect_rails(*plan->schedule);
        expect_sums(*plan->schedule, 10);
        std::int64_t sent = 0;
        for (const auto& [key, port] : traffic(*plan->schedule)) {
            sent += std::get<0>(key) == 1 ? port.sent : 0;
        }
        EXPECT_EQ(sent, 2 * 720 * 5 / 6);
        // NIC 0 has its channels one after the other: 2(p-1)/p l n times its share.
        const double share = static_cast<double>((channels + 1) / 2) / channels;
        EXPECT_NEAR(predicted_elements(*plan), 1.5 * 2 * 720 * 5 / 6 * share, 0.01);
    }
}

TEST(ChannelRing, OneChannelIsThePlainRing) {
    const auto plan = plan_of("ring", request_for(one_straggler(5, 1, ratio("2")), 100, {{"channels", "1"}}));
    EXPECT_EQ(plan->schedule->name(), "ring(p=5)");
    EXPECT_NEAR(predicted_elements(*plan), 320, 0.01);
}

TEST(ServerRing, IsProvenForEveryShape) {
    for (const Rank servers : {2, 3, 5}) {
        for (const Rank width : {2, 3, 4, 5, 8}) {
            for (const std::int64_t elements : {1, 7, 997}) {
                const auto schedule = make_server_ring(rail_aligned_ring(servers, width, width, elements));
                expect_proven(*schedule);
            }
            const auto ring = make_server_ring(rail_aligned_ring(servers, width, (width + 1) / 2, 331));
            EXPECT_EQ(ring->ranks_per_server(), width);
            EXPECT_EQ(ring->lanes(), width % 2 == 0 ? 3 : 4);
            expect_rails(*ring);
            expect_sums(*ring, 100);
        }
    }
}

TEST(ServerRing, EveryChannelCrossesOnceAndWalksTheServer) {
    const Rank servers = 3;
    const Rank width = 4;
    const std::int64_t elements = 12 * 4 * 10;
    const auto ring = make_server_ring(rail_aligned_ring(servers, width, width, elements));
    const std::int64_t channel = 2 * elements / width * 11 / 12; // 2(p-1)/p of a quarter
    for (const auto& [key, port] : traffic(*ring)) {
        const std::int64_t channels = std::get<1>(key) == PortKind::kNic ? 1 : width - 1;
        EXPECT_EQ(port, (Traffic{channels * channel, channels * channel, channels * 22, channels * 22}));
    }
    EXPECT_EQ(traffic(*ring).size(), static_cast<std::size_t>(2 * servers * width));
    // Channel 1: enters server 2 at its rank 1 and leaves it at its rank 0.
    EXPECT_EQ(ring->receive_step(9, 1, 0).peer, 4);
    EXPECT_EQ(ring->send_step(8, 1, 0).peer, 1);
    EXPECT_EQ(ring->port(9, 1), (Port{PortKind::kNic, 1}));
    EXPECT_EQ(ring->port(8, 1), (Port{PortKind::kNic, 1}));
}

TEST(ServerRing, SlowServerSlowsItByItsSlowdown) {
    for (const char* slowdown : {"1", "4/3", "2", "3"}) {
        Topology topology = servers_of(4, 8, 8);
        topology.servers[1].send = topology.servers[1].receive = ratio(slowdown);
        const auto plan = plan_of("ring", request_for(topology, 32 * 8 * 100));
        ASSERT_TRUE(plan.has_value());
        EXPECT_NEAR(predicted_elements(*plan), to_double(ratio(slowdown)) * healthy_elements(topology, 32 * 8 * 100),
                    0.1);
    }
    Topology slow_inside = servers_of(4, 8, 8); // seven local hops for one on the NIC
    slow_inside.local_ratio = 2;
    EXPECT_NEAR(predicted_elements(*plan_of("ring", request_for(slow_inside, 25600))),
                7.0 / 2 * healthy_elements(slow_inside, 25600), 0.1);
}

TEST(ServerRing, KeepsThePaceOfItsSlowestPort) {
    // Sections of 10 elements. In the last hops a channel may already be alone on its port, so the pace does not hold
    // to the very end.
    for (const Rank width : {2, 3, 4}) {
        const Rank ranks = 3 * width;
        Topology topology = servers_of(3, width, width);
        const auto ring = make_server_ring(rail_aligned_ring(3, width, width, 10 * width * ranks));
        const std::int64_t hops = 2 * (ranks - 1);
        const auto expect_pace = [&](std::int64_t pace) {
            const Rational time = exact_time(*ring, topology);
            EXPECT_LE(time, hops * pace);
            EXPECT_GT(time, (hops - width) * pace);
        };
        expect_pace(10);
        topology.servers[0].send = topology.servers[0].receive = 3;
        expect_pace(30);
        topology.local_ratio = Rational(1, 10); // local ports far slower still: g-1 hops for one
        expect_pace((width - 1) * 100);
    }
}

TEST(ServerRing, WrongRequestsSayWhatToDo) {
    expect_input_error(plan_of("ring", request_for(servers_of(1, 4, 4), 100)), "hierarchical");
    expect_input_error(plan_of("ring", request_for(servers_of(2, 4, 4), 100, {{"channels", "2"}})),
                       "leave out the option channels");
    expect_input_error(plan_of("ring", request_for(dead_nic(2, 4, 4, 1, 3), 100)), "NIC 3 of server 1, which is dead");
    expect_input_error(plan_of("ring", request_for(healthy_topology(4), 100, {{"channels", "5"}})), "1 to 4");
    EXPECT_TRUE(plan_of("ring", request_for(dead_nic(2, 2, 4, 1, 3), 100)).has_value()) << "NIC 3 is not used";
}

TEST(Failover, OneNicAServerLeavesThePlainRing) {
    for (const char* algorithm : {"iccl", "r2ccl-balance"}) {
        for (const auto& [ranks, slowdown, elements, time] :
             {std::tuple{8, "2", 800, 2800.0}, std::tuple{16, "4/3", 1600, 4000.0}}) {
            const auto plan = plan_of(algorithm, request_for(one_straggler(ranks, 1, ratio(slowdown)), elements));
            ASSERT_TRUE(plan.has_value());
            EXPECT_EQ(plan->schedule->name(), "ring(p=" + std::to_string(ranks) + ")");
            EXPECT_NEAR(predicted_elements(*plan), time, 0.1);
            EXPECT_THAT(plan->reason, testing::HasSubstr("one NIC a server"));
        }
    }
}

TEST(Failover, EightNicsOneDead) {
    const std::int64_t elements = 32 * 56 * 10;
    const Topology topology = dead_nic(4, 8, 8, 2, 5);
    const double healthy = healthy_elements(topology, elements);
    const auto shared = plan_of("iccl", request_for(topology, elements));
    ASSERT_TRUE(shared.has_value()) << shared.error().to_line();
    EXPECT_NEAR(predicted_elements(*shared), 2 * healthy, 0.1);
    const auto balance = plan_of("r2ccl-balance", request_for(topology, elements));
    ASSERT_TRUE(balance.has_value());
    EXPECT_NEAR(predicted_elements(*balance), healthy * 8 / 7, 0.1);
    expect_input_error(plan_of("iccl", request_for(topology, elements, {{"backup", "idle"}})), "backup=shared");
    const auto idle = plan_of("iccl", request_for(dead_nic(4, 8, 9, 2, 5), elements, {{"backup", "idle"}}));
    ASSERT_TRUE(idle.has_value()) << idle.error().to_line();
    EXPECT_NEAR(predicted_elements(*idle), healthy, 0.1);
    for (const Schedule* schedule : {shared->schedule.get(), balance->schedule.get(), idle->schedule.get()}) {
        expect_proven(*schedule);
        expect_rails(*schedule);
        EXPECT_FALSE(traffic(*schedule).contains({2, PortKind::kNic, 5})) << "the dead NIC";
    }
    EXPECT_EQ(idle->schedule->port(2 * 8 + 5, 1), (Port{PortKind::kNic, 8}));
}

/// Simulated over predicted time.
double exact_over_predicted(const char* algorithm, const Topology& topology, std::int64_t elements) {
    const auto plan = plan_of(algorithm, request_for(topology, elements));
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().to_line());
    return plan ? to_double(exact_time(*plan->schedule, topology)) / predicted_elements(*plan) : 0;
}

TEST(Failover, TakesThePredictedTime) {
    for (const Rank width : {2, 3, 4, 8}) {
        const std::int64_t elements = 4 * width * width * (width - 1) * 10;
        const Topology topology = dead_nic(4, width, width, 1, width - 1);
        EXPECT_NEAR(exact_over_predicted("r2ccl-balance", topology, elements), 1, 1e-3) << width;
        EXPECT_NEAR(exact_over_predicted("iccl", topology, elements), 1, 1e-3) << width;
    }
}

TEST(Failover, BackupNicCarriesBothSharesOnlyWhereTheDeadNicWas) {
    const std::int64_t elements = 20 * 4 * 10;
    const auto plan = plan_of("iccl", request_for(dead_nic(5, 4, 4, 2, 1), elements));
    ASSERT_TRUE(plan.has_value());
    const std::int64_t share = 2 * elements / 4 * 19 / 20;
    const auto ports = traffic(*plan->schedule);
    const auto nic = [&](Rank server, std::int32_t number) {
        const auto found = ports.find({server, PortKind::kNic, number});
        return found == ports.end() ? std::pair<std::int64_t, std::int64_t>{0, 0}
                                    : std::pair{found->second.sent, found->second.received};
    };
    using testing::Pair;
    EXPECT_THAT(nic(2, 0), Pair(2 * share, 2 * share));
    EXPECT_THAT(nic(2, 1), Pair(0, 0));
    EXPECT_THAT(nic(1, 0), Pair(2 * share, share)) << "sends both to server 2";
    EXPECT_THAT(nic(1, 1), Pair(0, share));
    EXPECT_THAT(nic(3, 0), Pair(share, 2 * share));
    EXPECT_THAT(nic(3, 1), Pair(share, 0));
    EXPECT_THAT(nic(0, 1), Pair(share, share));
}

TEST(Failover, BalanceKeepsEveryShapeProven) {
    for (const Rank width : {2, 3, 5, 8}) {
        for (std::int32_t first = 0; first < width; ++first) {
            for (std::int32_t second = 0; second < width; ++second) {
                Topology topology = dead_nic(3, width, width, 0, first);
                topology.servers[2].failed_nics = std::uint64_t{1} << second;
                const std::int64_t left = width - (first == second ? 1 : 2);
                const auto plan =
                    plan_of("r2ccl-balance", request_for(topology, 3 * width * std::max<std::int64_t>(left, 1) * 7));
                if (left == 0) {
                    expect_input_error(plan, "use iccl");
                    continue;
                }
                ASSERT_TRUE(plan.has_value()) << plan.error().to_line();
                expect_proven(*plan->schedule);
                expect_rails(*plan->schedule);
                for (const auto& [key, port] : traffic(*plan->schedule)) {
                    if (std::get<1>(key) == PortKind::kNic) {
                        EXPECT_EQ(port.sent, 2 * (3 * width - 1) * 7);
                        EXPECT_NE(std::get<2>(key), first);
                        EXPECT_NE(std::get<2>(key), second);
                    }
                }
            }
        }
    }
}

TEST(Failover, SeveralNicsForOneRankAreChannelsThatMoveAsAWhole) {
    const auto shared = plan_of("iccl", request_for(dead_nic(4, 1, 3, 1, 2), 1200));
    ASSERT_TRUE(shared.has_value()) << shared.error().to_line();
    EXPECT_EQ(shared->schedule->lanes(), 3);
    EXPECT_EQ(shared->schedule->port(0, 2), (Port{PortKind::kNic, 0})) << "there is no NIC 3, so the next";
    EXPECT_NEAR(predicted_elements(*shared), 2 * 1.5 * 400, 0.1);
    const auto balance = plan_of("r2ccl-balance", request_for(dead_nic(4, 1, 3, 1, 2), 1200));
    EXPECT_EQ(balance->schedule->lanes(), 2);
    EXPECT_NEAR(predicted_elements(*balance), 1.5 * 1.5 * 400, 0.1) << "three NICs, one dead: 1.5 times";
    expect_proven(*shared->schedule);
    expect_proven(*balance->schedule);
    expect_input_error(plan_of("iccl", request_for(servers_of(4, 1, 5), 1200)), "as many ranks a server");
    expect_input_error(plan_of("iccl", request_for(dead_nic(4, 1, 1, 1, 0), 1200)), "no live NIC");
    expect_input_error(plan_of("r2ccl-balance", request_for(dead_nic(4, 1, 1, 1, 0), 1200)), "use iccl");
}

} // namespace
} // namespace railbreak::collective
