// R2CCL's AllReduce: its parts, its traffic by port and its time against the closed forms.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/r2ccl.hpp"
#include "collective/algorithms/r2ccl_algorithm.hpp"
#include "collective/algorithms/ring.hpp"
#include "tests/unit/collective/baseline_support.hpp"

namespace railbreak::collective {
namespace {

using namespace test;

double fault_free(Rank p) {
    return 2.0 * (p - 1) / p;
}

/// Time over the fault-free ring for a vector of one unit, without overhead and with pieces as fine as can be.
double over_healthy(Rank p, const char* slowdown, std::int64_t chunks, bool best = false) {
    const CostInput cost{.ranks = p, .slowdown = to_double(ratio(slowdown)), .vector_ns = 1};
    const Rational share = best ? r2ccl_best_share(p, ratio(slowdown)) : r2ccl_share(ratio(slowdown));
    return r2ccl_cost_ns(cost, to_double(share), chunks, std::int64_t{1} << 40) / fault_free(p);
}

/// The schedule with every lane on a NIC of its own.
class OnOwnNics final : public Schedule {
public:
    explicit OnOwnNics(const Schedule& schedule) : s_(schedule) {}
    [[nodiscard]] std::string name() const override { return s_.name(); }
    [[nodiscard]] Rank ranks() const override { return s_.ranks(); }
    [[nodiscard]] Lane lanes() const override { return s_.lanes(); }
    [[nodiscard]] Port port(Rank, Lane lane) const override { return {PortKind::kNic, lane}; }
    [[nodiscard]] std::int64_t elements() const override { return s_.elements(); }
    [[nodiscard]] std::int64_t send_count(Rank rank, Lane lane) const override { return s_.send_count(rank, lane); }
    [[nodiscard]] std::int64_t receive_count(Rank rank, Lane lane) const override {
        return s_.receive_count(rank, lane);
    }
    [[nodiscard]] Step send_step(Rank rank, Lane lane, std::int64_t index) const override {
        return s_.send_step(rank, lane, index);
    }
    [[nodiscard]] Step receive_step(Rank rank, Lane lane, std::int64_t index) const override {
        return s_.receive_step(rank, lane, index);
    }

private:
    const Schedule& s_;
};

constexpr std::int64_t kManyChunks = std::int64_t{1} << 20;

TEST(R2cclCost, SixRanksAtTwoThirds) {
    const std::vector<std::pair<std::int64_t, double>> table = {{1, 1.6},    {2, 1.45},     {4, 1.375},
                                                                {8, 1.3375}, {16, 1.31875}, {kManyChunks, 1.3}};
    for (const auto& [chunks, expected] : table) {
        EXPECT_NEAR(over_healthy(6, "3/2", chunks), expected, 1e-6) << chunks;
    }
}

TEST(R2cclCost, SixteenRanksWithManyChunks) {
    const std::vector<std::pair<const char*, double>> table = {
        {"8/7", 1.0762}, {"4/3", 1.1778}, {"3/2", 1.2667}, {"8/5", 1.32}, {"2", 1.5333}, {"8/3", 1.8889}, {"4", 2.6}};
    for (const auto& [slowdown, expected] : table) {
        EXPECT_NEAR(over_healthy(16, slowdown, kManyChunks), expected, 1e-4) << slowdown;
    }
}

TEST(R2cclCost, HalfSpeed) {
    EXPECT_NEAR(over_healthy(8, "2", kManyChunks), 11.0 / 7, 1e-5);
    EXPECT_NEAR(over_healthy(16, "2", 16), 1.0 + 17.0 / 16 * 16 / 30, 1e-9);
    EXPECT_NEAR(over_healthy(5, "2", kManyChunks), 1.625, 1e-5);
    EXPECT_NEAR(over_healthy(256, "2", 4), 1.627, 1e-3);
}

TEST(R2cclCost, EquallyLongRingsAreBest) {
    EXPECT_NEAR(to_double(r2ccl_best_share(8, ratio("2"))), 0.50515, 1e-5);
    EXPECT_NEAR(to_double(r2ccl_best_share(16, ratio("2"))), 0.50111, 1e-5);
    EXPECT_NEAR(to_double(r2ccl_best_share(4, ratio("2"))), 0.52941, 1e-5);
    EXPECT_NEAR(over_healthy(8, "2", kManyChunks, true), 1.56701, 1e-5);
    EXPECT_NEAR(over_healthy(16, "2", kManyChunks, true), 1.53229, 1e-5);
    EXPECT_NEAR(over_healthy(4, "2", kManyChunks, true), 1.64706, 1e-5);
}

TEST(R2ccl, IsProvenForEveryShape) {
    for (const Rank ranks : {3, 4, 5, 8}) {
        for (Rank straggler = 0; straggler < ranks; straggler += 1 + ranks / 3) {
            for (const std::int64_t elements : {1, 10, 509}) {
                for (const std::int64_t tail : {elements / 4, elements / 2, elements}) {
                    for (const std::int64_t chunks : {1, 4}) {
                        expect_proven(*make_r2ccl({ranks, straggler, elements, tail, chunks, 3}));
                    }
                    expect_proven(*make_r2ccl({ranks, straggler, elements, tail, 2, 2, 3, 1}));
                    expect_proven(*make_r2ccl({ranks, straggler, elements, tail, 2, 2, 1, 3}));
                }
            }
        }
    }
}

TEST(R2ccl, GivesTheSums) {
    // p=4, l=4/3: main is elements 0..5, tail 6 and 7; every element ends as 60 + 4i.
    const auto plan = plan_of("r2ccl", request_for(one_straggler(4, 3, ratio("4/3")), 8));
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->schedule->name(), "r2ccl(k=4,tail=2,straggler=3)");
    expect_proven(*plan->schedule);
    expect_sums(*plan->schedule, 10);
    for (const Rank straggler : {0, 2, 5}) {
        expect_sums(*make_r2ccl({6, straggler, 61, 20, 2, 2, 2, 2}), 1000);
    }
}

TEST(R2ccl, TrafficByPort) {
    // Degraded 2(p-1)/p (1-Y) + Y both ways, everybody else 2(p-2)/(p-1) Y more.
    for (const Rank ranks : {3, 4, 6, 9}) {
        for (const R2cclLanes lanes : {R2cclLanes{1, 1}, R2cclLanes{3, 1}, R2cclLanes{1, 3}}) {
            const std::int64_t main = std::int64_t{ranks} * lanes.main * 7;
            const std::int64_t tail = (std::int64_t{ranks} - 1) * lanes.tail * 5;
            const auto schedule = make_r2ccl({ranks, 1, main + tail, tail, 2, 3, lanes.main, lanes.tail});
            const std::int64_t slow = 2 * main * (ranks - 1) / ranks + tail;
            const std::int64_t healthy = slow + 2 * tail * (ranks - 2) / (ranks - 1);
            for (Rank rank = 0; rank < ranks; ++rank) {
                const Traffic port = nic_traffic(*schedule, rank);
                EXPECT_EQ(port.sent, rank == 1 ? slow : healthy) << "rank " << rank << " of " << ranks;
                EXPECT_EQ(port.received, rank == 1 ? slow : healthy) << "rank " << rank << " of " << ranks;
            }
        }
    }
}

TEST(R2ccl, TrafficOfTheToyExample) {
    // p=4, n=8 with a quarter in the tail: the degraded rank 11 elements, the others 13 2/3 each way; here n=96.
    const auto schedule = make_r2ccl({4, 3, 96, 24, 4, 1});
    for (Rank rank = 0; rank < 4; ++rank) {
        const Traffic port = nic_traffic(*schedule, rank);
        EXPECT_EQ(Rational(port.sent, 12), rank == 3 ? ratio("11") : ratio("41/3"));
        EXPECT_EQ(Rational(port.received, 12), rank == 3 ? ratio("11") : ratio("41/3"));
    }
}

TEST(R2ccl, DegradedVolumeWithManyRanks) {
    // In units of "2 an element": 2(1-Y)+Y = 7/4.
    const auto many = make_r2ccl({512, 7, 512 * 1024, 512 * 256, 1, 1});
    EXPECT_NEAR(static_cast<double>(nic_traffic(*many, 7).sent) / (512 * 1024), 1.75, 0.005);
}

/// Elements that a rank receives on its lanes from `first` on.
std::int64_t received_on(const Schedule& schedule, Rank rank, Lane first) {
    std::int64_t elements = 0;
    for (Lane lane = first; lane < schedule.lanes(); ++lane) {
        for (std::int64_t i = 0; i < schedule.receive_count(rank, lane); ++i) {
            elements += schedule.receive_step(rank, lane, i).slice.count;
        }
    }
    return elements;
}

TEST(R2ccl, MeasuredVolumeOfThreeServersOfTwo) {
    // 4096 MiB over six ranks, l=3/2. With two ranks a server a ring enters each server once: the main ring has six
    // members, that of the tail the four of the healthy servers, which are those of one out of five.
    const std::int64_t unit = 90; // elements a MiB
    const std::int64_t tail = 4096 * unit / 3;
    const auto six = make_r2ccl({6, 0, 4096 * unit, tail, 4, 5});
    const auto five = make_r2ccl({5, 0, 4096 * unit, tail, 4, 5});
    const std::int64_t main = received_on(*six, 1, 0) - received_on(*six, 1, 1);
    EXPECT_NEAR(static_cast<double>(main + received_on(*five, 1, 1)) / static_cast<double>(unit), 7964.4, 0.05);
    EXPECT_NEAR(static_cast<double>(received_on(*six, 0, 0)) / static_cast<double>(unit), 5916.4, 0.05);
    EXPECT_NEAR(static_cast<double>(nic_traffic(*make_ring(6, 4096 * unit), 0).received) / static_cast<double>(unit),
                6826.7, 0.05);
}

TEST(R2ccl, StagesTakeTheTimeOfTheClosedForm) {
    // With a NIC for each lane 1a hides 1b, as with an ideal split of one.
    const std::int64_t elements = 6 * 5 * 16 * 4 * 3;
    const std::int64_t tail = elements / 3;
    Topology topology = one_straggler(6, 2, ratio("3/2"));
    topology.nics_per_server = 2;
    for (const std::int64_t chunks : {1, 2, 4, 8, 16}) {
        const auto schedule = make_r2ccl({6, 2, elements, tail, chunks, 64 / chunks});
        const Rational ring = Rational(10 * (elements - tail), 6) * ratio("3/2");
        const Rational second = (tail + tail / chunks) * ratio("3/2");
        const Rational chain = 4 * tail / 64;
        EXPECT_EQ(exact_time(OnOwnNics(*schedule), topology), ring + second + chain) << chunks;
    }
}

double fluid_over_healthy(const Plan& plan, const Topology& topology) {
    const auto result = simulate(
        *plan.schedule,
        {.model = PortModel::kFluid, .topology = topology, .healthy_goodput = BitRate::bits_per_s(32'000'000)});
    EXPECT_TRUE(result.has_value());
    return result ? static_cast<double>(result->makespan.count()) /
                        (static_cast<double>(kElementNs * plan.schedule->elements()) * fault_free(topology.ranks()))
                  : 0;
}

TEST(R2ccl, LanesGiveMainItsShareOfAPort) {
    for (const auto& [slowdown, lanes] :
         {std::pair{"8/7", R2cclLanes{3, 1}}, std::pair{"4/3", R2cclLanes{3, 1}}, std::pair{"3/2", R2cclLanes{2, 1}},
          std::pair{"8/5", R2cclLanes{2, 1}}, std::pair{"2", R2cclLanes{1, 1}}, std::pair{"3", R2cclLanes{1, 2}},
          std::pair{"4", R2cclLanes{1, 3}}, std::pair{"100", R2cclLanes{1, 3}}}) {
        EXPECT_EQ(r2ccl_lanes(ratio(slowdown)), lanes) << slowdown;
    }
}

TEST(R2ccl, SharedPortsTakeTheTimeOfTheClosedForm) {
    // Where the lanes can share a port in the ratio 1/l : 1-1/l the time is the closed form and the chain's first
    // piece.
    for (const Rank ranks : {4, 6, 8, 16}) {
        for (const char* slowdown : {"4/3", "3/2", "2", "3", "4"}) {
            for (const char* y : {"x", "star"}) {
                for (const int chunks : {1, 4, 16}) {
                    const Topology topology = one_straggler(ranks, 1, ratio(slowdown));
                    const auto plan =
                        plan_of("r2ccl", request_for(topology, 1'680'000, {{"k", std::to_string(chunks)}, {"y", y}}));
                    ASSERT_TRUE(plan.has_value());
                    const bool best = y == std::string("star");
                    const Rational share =
                        best ? r2ccl_best_share(ranks, ratio(slowdown)) : r2ccl_share(ratio(slowdown));
                    const double pieces = chunks * std::round(32.0 * (ranks - 2) / chunks);
                    const double chain = (ranks - 2) * to_double(share) / pieces;
                    EXPECT_NEAR(fluid_over_healthy(*plan, topology),
                                over_healthy(ranks, slowdown, chunks, best) + chain / fault_free(ranks), 1e-3)
                        << plan->schedule->name() << " p=" << ranks << " l=" << slowdown;
                }
            }
        }
    }
}

TEST(R2ccl, TooFewLanesOfMainAreHeldUpByTheTail) {
    // l = 4/3: 1a needs three quarters of a port and gets half while 1b lasts.
    const Topology topology = one_straggler(8, 1, ratio("4/3"));
    const CostInput cost{.ranks = 8, .slowdown = 4.0 / 3, .vector_ns = 1};
    for (const R2cclLanes lanes : {R2cclLanes{1, 1}, R2cclLanes{2, 1}, R2cclLanes{3, 1}}) {
        const Plan plan{make_r2ccl({8, 1, 1'680'000, 420'000, 4, 48, lanes.main, lanes.tail}), {}, {}};
        EXPECT_NEAR(fluid_over_healthy(plan, topology), r2ccl_cost_ns(cost, 0.25, 4, 48, lanes) / fault_free(8), 1e-3)
            << lanes.main;
    }
    EXPECT_GT(r2ccl_cost_ns(cost, 0.25, 4, 48, R2cclLanes{1, 1}), 1.05 * r2ccl_cost_ns(cost, 0.25, 4, 48));
    EXPECT_EQ(r2ccl_cost_ns(cost, 0.25, 4, 48, R2cclLanes{3, 1}), r2ccl_cost_ns(cost, 0.25, 4, 48));
}

TEST(R2ccl, PredictionIsWhatSharedPortsTake) {
    // Between the shares that lanes can make, the tail runs in bursts.
    for (const Rank ranks : {3, 4, 6, 8, 16}) {
        for (const auto& [slowdown, error] :
             {std::pair{"20/19", 1e-3}, std::pair{"8/7", 1e-3}, std::pair{"5/4", 1e-3}, std::pair{"4/3", 1e-3},
              std::pair{"3/2", 1e-3}, std::pair{"8/5", 0.03}, std::pair{"2", 1e-3}, std::pair{"8/3", 0.03},
              std::pair{"3", 1e-3}, std::pair{"4", 1e-3}, std::pair{"8", 0.03}}) {
            const Topology topology = one_straggler(ranks, 1, ratio(slowdown));
            const auto plan = plan_of("r2ccl", request_for(topology, 1'680'000));
            ASSERT_TRUE(plan.has_value());
            const double predicted = predicted_elements(*plan) / (1'680'000 * fault_free(ranks));
            EXPECT_NEAR(fluid_over_healthy(*plan, topology) / predicted, 1, error) << ranks << " " << slowdown;
        }
    }
}

TEST(R2ccl, HealthyClusterGetsThePlainRing) {
    const auto plan = plan_of("r2ccl", request_for(one_straggler(8, 1, ratio("102/100")), 800));
    EXPECT_EQ(plan->schedule->name(), "ring(p=8)");
}

TEST(R2ccl, OptionsAndErrors) {
    const auto best =
        plan_of("r2ccl", request_for(one_straggler(4, 1, ratio("2")), 1700, {{"y", "star"}, {"k", "16"}}));
    EXPECT_EQ(best->schedule->name(), "r2ccl(k=16,tail=900,straggler=1)");
    const auto fixed = plan_of("r2ccl", request_for(one_straggler(4, 1, ratio("2")), 1700, {{"y", "x"}, {"k", "1"}}));
    EXPECT_EQ(fixed->schedule->name(), "r2ccl(k=1,tail=850,straggler=1)");
    expect_input_error(plan_of("r2ccl", request_for(one_straggler(4, 1, ratio("2")), 100, {{"y", "z"}})), "x, star");
    expect_input_error(plan_of("r2ccl", request_for(one_straggler(4, 1, ratio("2")), 100, {{"k", "17"}})), "1 to 16");
    expect_input_error(plan_of("r2ccl", request_for(one_straggler(2, 1, ratio("2")), 100)), "at least 3 ranks");
    Topology two = one_straggler(6, 1, ratio("2"));
    two.servers[4].send = 3;
    expect_input_error(plan_of("r2ccl", request_for(two, 100)), "servers 1 and 4 are slow");
    Topology wide = one_straggler(4, 1, ratio("2"));
    wide.ranks_per_server = 2;
    expect_input_error(plan_of("r2ccl", request_for(wide, 100)), "one rank a server");
}

} // namespace
} // namespace railbreak::collective
