// R2CCL's AllReduce: its parts, its traffic by port and its time against the closed forms.
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/r2ccl.hpp"
#include "collective/algorithms/r2ccl_algorithm.hpp"
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
                    expect_proven(*make_r2ccl({ranks, straggler, elements, tail, 2, 2, 3}));
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
        expect_sums(*make_r2ccl({6, straggler, 61, 20, 2, 2}), 1000);
    }
}

TEST(R2ccl, TrafficByPort) {
    // Degraded 2(p-1)/p (1-Y) + Y both ways, others Y more (first and last of the chain: in one direction). p=4, Y=1/4.
    const auto four = make_r2ccl({4, 3, 80, 20, 2, 5});
    const std::int64_t main = 2 * 60 * 3 / 4;
    const auto sent_received = [&](Rank rank) {
        const Traffic port = nic_traffic(*four, rank);
        return std::pair{port.sent, port.received};
    };
    using testing::Pair;
    EXPECT_THAT(sent_received(3), Pair(main + 20, main + 20)) << "110 = 80 * 11/8";
    EXPECT_THAT(sent_received(0), Pair(main + 20, main + 40)) << "the helper";
    EXPECT_THAT(sent_received(1), Pair(main + 40, main + 40));
    EXPECT_THAT(sent_received(2), Pair(main + 40, main + 20));
    // Degraded volume in units of "2 an element", many ranks: 2(1-Y)+Y = 7/4.
    const auto many = make_r2ccl({512, 7, 512 * 1024, 512 * 256, 1, 1});
    EXPECT_NEAR(static_cast<double>(nic_traffic(*many, 7).sent) / (512 * 1024), 1.75, 0.005);
    // p=6, l=3/2, 4096 MiB: the degraded server takes in 5916.4 MiB, 13/15 of the 6826.7 of a healthy ring.
    const auto six = make_r2ccl({6, 0, 4096 * 90, 4096 * 30, 4, 5});
    EXPECT_NEAR(static_cast<double>(nic_traffic(*six, 0).received) / 90, 5916.4, 0.05);
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

TEST(R2ccl, SharedPortsTakeTheTimeOfTheClosedForm) {
    // One, two and three lanes of main beside the tail leave 1a its share of every port. The chain costs up to 1 %.
    for (const auto& [ranks, slowdown, chunks] :
         {std::tuple{6, "3/2", 4}, std::tuple{6, "3/2", 1}, std::tuple{6, "3/2", 16}, std::tuple{8, "2", 4},
          std::tuple{8, "4/3", 4}, std::tuple{16, "8/5", 16}, std::tuple{8, "4", 4}}) {
        const Topology topology = one_straggler(ranks, 1, ratio(slowdown));
        const auto plan = plan_of("r2ccl", request_for(topology, 1'680'000, {{"k", std::to_string(chunks)}}));
        ASSERT_TRUE(plan.has_value());
        const double expected = over_healthy(ranks, slowdown, chunks);
        const double time = fluid_over_healthy(*plan, topology);
        EXPECT_GT(time, expected * 0.9999) << plan->schedule->name();
        EXPECT_LT(time, expected * 1.015) << plan->schedule->name();
    }
}

TEST(R2ccl, OneLaneOfMainIsHeldUpByTheTail) {
    // l = 4/3: 1a needs three quarters of a port and gets half while 1b lasts.
    const Topology topology = one_straggler(8, 1, ratio("4/3"));
    EXPECT_EQ(r2ccl_main_lanes(ratio("4/3")), 3);
    EXPECT_EQ(r2ccl_main_lanes(ratio("3/2")), 2);
    EXPECT_EQ(r2ccl_main_lanes(ratio("2")), 1);
    EXPECT_EQ(r2ccl_main_lanes(ratio("8/7")), 3);
    Plan one{make_r2ccl({8, 1, 1'680'000, 420'000, 4, 48, 1}), {}, {}};
    Plan three{make_r2ccl({8, 1, 1'680'000, 420'000, 4, 48, 3}), {}, {}};
    EXPECT_GT(fluid_over_healthy(one, topology), 1.05 * fluid_over_healthy(three, topology));
}

TEST(R2ccl, PredictionIsWhatSharedPortsTake) {
    for (const Rank ranks : {3, 6, 16}) {
        for (const char* slowdown : {"20/19", "8/7", "5/4", "4/3", "3/2", "2", "3"}) {
            const Topology topology = one_straggler(ranks, 1, ratio(slowdown));
            const auto plan = plan_of("r2ccl", request_for(topology, 1'680'000));
            ASSERT_TRUE(plan.has_value());
            EXPECT_NEAR(fluid_over_healthy(*plan, topology),
                        predicted_elements(*plan) / (1'680'000 * fault_free(ranks)), 0.015)
                << ranks << " " << slowdown;
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
