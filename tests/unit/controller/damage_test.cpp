#include "harness/controller/damage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railbreak::controller {
namespace {

using ::testing::ElementsAre;

constexpr BitRate kHealthy = BitRate::bits_per_s(1'000'000'000);

scenarios::ClusterSpec cluster_of(std::int32_t hosts, std::int32_t ranks, std::int32_t nics) {
    scenarios::ClusterSpec cluster;
    cluster.hosts = hosts;
    cluster.ranks_per_host = ranks;
    cluster.nics_per_host = nics;
    cluster.rate = kHealthy;
    return cluster;
}

TEST(PlanTopology, HasTheRanksNicsAndPortsOfTheCluster) {
    scenarios::ClusterSpec cluster = cluster_of(3, 4, 2);
    const auto plain = plan_topology(cluster, no_damage(cluster), kHealthy);
    EXPECT_EQ(plain.ranks(), 12);
    EXPECT_EQ(plain.nics_per_server, 2);
    EXPECT_EQ(plain.local_ratio, 0);
    cluster.local_rate = BitRate::bits_per_s(2'500'000'000);
    EXPECT_EQ(plan_topology(cluster, no_damage(cluster), kHealthy).local_ratio, Rational(5, 2));
}

TEST(PlanTopology, PoolsNicsThatAreSlowedAlikeAndTakesTheSlowestOtherwise) {
    const scenarios::ClusterSpec cluster = cluster_of(3, 2, 2);
    NicSlowdowns damage = no_damage(cluster);
    damage[0][0] = {Rational(2), Rational(2)};
    damage[0][1] = {Rational(202, 100), Rational(2)}; // measured, so never quite equal
    damage[1][1] = {Rational(3), Rational(1)};
    const auto topology = plan_topology(cluster, damage, kHealthy);
    EXPECT_EQ(topology.servers[0].send, Rational(2 * 2 * 202, 402)); // both NICs together
    EXPECT_EQ(topology.servers[0].receive, 2);
    EXPECT_EQ(topology.servers[1].send, 3);
    EXPECT_EQ(topology.servers[1].receive, 1);
    EXPECT_EQ(topology.servers[2], collective::PortSlowdown{});
    EXPECT_DOUBLE_EQ(worst_of(damage), 3.0);
    EXPECT_DOUBLE_EQ(worst_of(no_damage(cluster)), 1.0);
}

TEST(PlanTopology, GoesRoundNicsThatAreCutOffWhileBoundsGoOnToCountThem) {
    const scenarios::ClusterSpec cluster = cluster_of(3, 2, 2);
    NicSlowdowns damage = no_damage(cluster);
    damage[1][0].cut_off = true;
    const auto topology = plan_topology(cluster, damage, kHealthy);
    EXPECT_EQ(topology.servers[1], (collective::PortSlowdown{Rational(2), Rational(2), 0b01}));
    const auto whole = bounds_of(cluster, no_damage(cluster), kHealthy);
    const auto bounds = bounds_of(cluster, damage, kHealthy);
    for (std::size_t model = 0; model < bounds.size(); ++model) {
        EXPECT_EQ(bounds[model].time_over_n, whole[model].time_over_n) << "what it still carries may be used";
    }
}

/// What the NICs of a host can send together, as a part of all of them healthy.
Rational share_sent(const std::vector<NicSlowdown>& nics) {
    Rational rate{0};
    for (const NicSlowdown& nic : nics) {
        rate += 1 / nic.send;
    }
    return rate / static_cast<std::int64_t>(nics.size());
}

TEST(AddReroutes, NicsThatShareAnExitShareItsRate) {
    NicSlowdowns damage = no_damage(cluster_of(2, 2, 3));
    damage[1][0].leaves_through = 2;
    add_reroutes(damage);
    EXPECT_EQ(damage[1][0].send, 2);
    EXPECT_EQ(damage[1][1].send, 1);
    EXPECT_EQ(damage[1][2].send, 2);
    EXPECT_EQ(damage[1][0].receive, 1) << "what arrives comes in where it always did";
    EXPECT_EQ(share_sent(damage[1]), Rational(2, 3)) << "two of three NICs still send";
    EXPECT_EQ(share_sent(damage[0]), 1);
}

TEST(AddReroutes, TheExitsOwnCapHoldsForAllOfThem) {
    NicSlowdowns damage = no_damage(cluster_of(1, 2, 3));
    damage[0][0] = {.send = Rational(5), .leaves_through = 2}; // its own cap no longer matters for what it sends
    damage[0][1].leaves_through = 2;
    damage[0][2].send = Rational(4);
    add_reroutes(damage);
    for (const NicSlowdown& nic : damage[0]) {
        EXPECT_EQ(nic.send, 12);
    }
    EXPECT_EQ(share_sent(damage[0]), Rational(1, 12)) << "one of three NICs, at a quarter of its rate";
}

TEST(AddReroutes, TwoNicsThatChangePlacesLoseNothing) {
    NicSlowdowns damage = no_damage(cluster_of(1, 2, 2));
    damage[0][0].leaves_through = 1;
    damage[0][1].leaves_through = 0;
    add_reroutes(damage);
    EXPECT_EQ(share_sent(damage[0]), 1);
}

TEST(PlanTopology, NamesDeadNicsAndPoolsTheOthers) {
    const scenarios::ClusterSpec cluster = cluster_of(3, 2, 4);
    NicSlowdowns damage = no_damage(cluster);
    damage[1][0].dead = damage[1][2].dead = true;
    const auto topology = plan_topology(cluster, damage, kHealthy);
    EXPECT_EQ(topology.servers[1], (collective::PortSlowdown{Rational(2), Rational(2), 0b101}));
    EXPECT_EQ(topology.servers[0], collective::PortSlowdown{});
    EXPECT_DOUBLE_EQ(worst_of(damage), 1.0);
    const auto bounds = bounds_of(cluster, damage, kHealthy);
    EXPECT_DOUBLE_EQ(bounds[1].time_over_n, 0.5); // the two NICs left carry a vector each way
    EXPECT_GE(bounds[0].time_over_n, bounds[1].time_over_n);
}

TEST(Bounds, OneNicAHostGivesThoseOfOptcc) {
    const scenarios::ClusterSpec cluster = cluster_of(4, 1, 1);
    NicSlowdowns damage = no_damage(cluster);
    EXPECT_DOUBLE_EQ(bounds_of(cluster, damage, kHealthy)[0].time_over_n, 1.5);
    damage[2][0] = {Rational(3, 2), Rational(3, 2)};
    const auto bounds = bounds_of(cluster, damage, kHealthy);
    ASSERT_EQ(bounds.size(), 2U);
    EXPECT_EQ(bounds[0].model, "exclusive");
    EXPECT_DOUBLE_EQ(bounds[0].time_over_n, 9.0 / 5.0); // 2l(p-1)/(l(p-2)+2)
    EXPECT_EQ(bounds[1].model, "fluid");
    EXPECT_DOUBLE_EQ(bounds[1].time_over_n, 9.0 / 5.5); // 2l(p-1)/(l(p-1)+1)
}

TEST(Bounds, SeveralNicsShareTheWorkAndUnequalOnesOnlyHaveTheFluidBound) {
    const scenarios::ClusterSpec cluster = cluster_of(4, 2, 2);
    NicSlowdowns damage = no_damage(cluster);
    EXPECT_DOUBLE_EQ(bounds_of(cluster, damage, kHealthy)[0].time_over_n, 0.75);
    damage[1][0] = damage[1][1] = {Rational(2), Rational(2)};
    EXPECT_DOUBLE_EQ(bounds_of(cluster, damage, kHealthy)[0].time_over_n, 1.0);
    damage[1][1] = {};
    const auto unequal = bounds_of(cluster, damage, kHealthy);
    EXPECT_EQ(unequal[0].model, "exclusive");
    EXPECT_EQ(unequal[0].time_over_n, unequal[1].time_over_n);
    EXPECT_DOUBLE_EQ(unequal[1].time_over_n, 6.0 / 7.5); // all sends over the total rate of 7.5 NICs
}

std::vector<std::int32_t> shifts(std::int32_t hosts, std::set<std::int32_t> slow) {
    return probe_shifts(hosts, [=](std::int32_t host) { return slow.contains(host); });
}

TEST(ProbeShifts, MeasureEverySlowHostAgainstAHealthyOneOnBothSides) {
    EXPECT_THAT(shifts(8, {}), ElementsAre(1));
    EXPECT_THAT(shifts(8, {3}), ElementsAre(1));
    EXPECT_THAT(shifts(8, {2, 3}), ElementsAre(2));
    EXPECT_THAT(shifts(3, {0, 1, 2}), ElementsAre(1)) << "nobody healthy: measured as it is";
    for (std::int32_t hosts = 2; hosts <= 7; ++hosts) {
        for (std::uint32_t mask = 0; mask + 1 < (1U << hosts); ++mask) {
            std::set<std::int32_t> slow;
            for (std::int32_t host = 0; host < hosts; ++host) {
                if ((mask >> host & 1U) != 0) {
                    slow.insert(host);
                }
            }
            for (const std::int32_t host : slow) {
                bool sends = false;
                bool receives = false;
                for (const std::int32_t shift : shifts(hosts, slow)) {
                    sends = sends || !slow.contains((host + shift) % hosts);
                    receives = receives || !slow.contains((host + hosts - shift) % hosts);
                }
                EXPECT_TRUE(sends && receives) << "host " << host << " of " << hosts << ", mask " << mask;
            }
        }
    }
}

} // namespace
} // namespace railbreak::controller
