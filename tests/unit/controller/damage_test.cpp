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
