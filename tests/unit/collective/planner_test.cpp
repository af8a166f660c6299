#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/auto_algorithm.hpp"
#include "collective/planner.hpp"

namespace railbreak::collective {
namespace {

using testing::HasSubstr;

/// 1 GiB over NICs of 200 Gbit/s with costs as on a good network; ring, optcc and optcc-shared.
PlannerInput input_for(Topology topology) {
    PlannerInput input;
    input.request = {.topology = std::move(topology),
                     .elements = std::int64_t{1} << 28,
                     .healthy_goodput = BitRate::bits_per_s(200'000'000'000),
                     .flow_overhead = std::chrono::nanoseconds(500),
                     .flow_latency = std::chrono::microseconds(3)};
    for (const char* name : {"ring", "optcc", "optcc-shared"}) {
        input.algorithms.push_back(*find_algorithm(name));
    }
    return input;
}

Evaluation evaluated(const PlannerInput& input) {
    Result<Evaluation> evaluation = evaluate(input);
    EXPECT_TRUE(evaluation.has_value()) << (evaluation ? "" : evaluation.error().to_line());
    return evaluation ? std::move(*evaluation) : Evaluation{};
}

std::string recommended(const Choice& choice) {
    return choice.recommended ? choice.rows[*choice.recommended].algorithm : "";
}

std::string error_of(const PlannerInput& input) {
    const Result<Evaluation> evaluation = evaluate(input);
    return evaluation ? "" : evaluation.error().message();
}

TEST(Planner, RecommendsTheRingForAHealthyCluster) {
    for (const Rational& slowdown : {Rational(1), Rational(102, 100)}) {
        const Evaluation evaluation = evaluated(input_for(one_straggler(16, 5, slowdown)));
        EXPECT_EQ(recommended(evaluation.choice), "ring");
        EXPECT_THAT(evaluation.choice.why, HasSubstr("faster than the ring"));
    }
}

TEST(Planner, SaysWhoIsFasterIfTheSlowdownIsJustAsStated) {
    PlannerInput input = input_for(one_straggler(3, 0, Rational(8, 7)));
    input.algorithms = {*find_algorithm("ring"), *find_algorithm("optcc-abcd")};
    const Evaluation evaluation = evaluated(input);
    EXPECT_EQ(recommended(evaluation.choice), "optcc-abcd");
    EXPECT_LT(evaluation.choice.rows[0].time(), evaluation.choice.rows[1].time());
    EXPECT_THAT(evaluation.choice.why, HasSubstr("; with slow ports just as stated ring takes "));
}

TEST(Planner, WhereFlowsShareThePortsOfAllThatAppliesThatIsSaid) {
    Topology topology = healthy_topology(4);
    topology.ranks_per_server = topology.nics_per_server = 2;
    topology.servers[1] = {.send = 2, .receive = 2, .failed_nics = 1};
    topology.servers[3] = {.send = 2, .receive = 2, .failed_nics = 2};
    PlannerInput input = input_for(topology);
    input.algorithms = plannable_algorithms();
    const Evaluation evaluation = evaluated(input);
    EXPECT_EQ(recommended(evaluation.choice), "iccl");
    EXPECT_THAT(evaluation.choice.why, HasSubstr("flows share ports in all that apply"));
}

TEST(Planner, TellsOfLongSimulationsAndRefusesEndlessOnes) {
    PlannerInput input = input_for(healthy_topology(256));
    input.algorithms = {*find_algorithm("ring")};
    input.simulate = true;
    std::int64_t told = 0;
    input.on_long_simulation = [&](const Schedule&, std::int64_t flows) { told = flows; };
    EXPECT_EQ(recommended(evaluated(input).choice), "ring");
    EXPECT_EQ(told, 2 * 255 * 256);
    input.request.topology = healthy_topology(8192);
    EXPECT_EQ(error_of(input), "ring(p=8192) has 134201344 flows, more than the 20000000 that are simulated");
}

TEST(Planner, RecommendsOptccForALargeMessageAndSaysWhy) {
    const PlannerInput input = input_for(one_straggler(16, 5, 2));
    const Evaluation evaluation = evaluated(input);
    EXPECT_EQ(recommended(evaluation.choice), "optcc");
    EXPECT_THAT(evaluation.choice.why, HasSubstr("1.2 times slower than stated"));
    EXPECT_EQ(binding(evaluation.exclusive).name, "theorem 6");
    EXPECT_EQ(evaluation.bound_time.count(), 85899345);
    ASSERT_TRUE(evaluation.healthy_ring);
    const Plan& ring = *evaluation.choice.rows[0].plan;
    EXPECT_NEAR(static_cast<double>(ring.predicted.count()),
                2.0 * static_cast<double>(evaluation.healthy_ring->count()),
                0.02 * static_cast<double>(ring.predicted.count()));
    for (const PlanRow& row : evaluation.choice.rows) {
        EXPECT_GE(row.time(), evaluation.bound_time) << row.algorithm;
        EXPECT_GT(*row.careful, row.time()) << row.algorithm;
    }
}

TEST(Planner, SimulatedTimesAgreeWithPredictedOnesAndRespectTheBound) {
    for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
        PlannerInput input = input_for(one_straggler(16, 5, {4, 3}));
        input.model = model;
        input.simulate = true;
        const Evaluation evaluation = evaluated(input);
        ASSERT_TRUE(evaluation.healthy_ring);
        for (const PlanRow& row : evaluation.choice.rows) {
            ASSERT_TRUE(row.simulated && *row.simulated) << row.algorithm;
            EXPECT_EQ(row.time(), **row.simulated);
            EXPECT_GE(row.time(), evaluation.bound_time) << row.algorithm;
            if (row.shares_ports) {
                continue; // what is predicted for flows side by side is rough
            }
            const auto predicted = static_cast<double>(row.plan->predicted.count());
            EXPECT_NEAR(static_cast<double>(row.time().count()), predicted, 0.02 * predicted) << row.algorithm;
        }
        EXPECT_THAT(evaluation.choice.why, HasSubstr("the least time simulated"));
        input.simulate = false;
        EXPECT_NEAR(static_cast<double>(evaluation.healthy_ring->count()),
                    static_cast<double>(evaluated(input).healthy_ring->count()),
                    0.01 * static_cast<double>(evaluation.healthy_ring->count()));
    }
}

TEST(Planner, TheMarginIsSimulatedWithTheVerySameSchedule) {
    PlannerInput input = input_for(one_straggler(16, 5, {4, 3}));
    input.simulate = true;
    const Evaluation evaluation = evaluated(input);
    SimulationOptions slower = simulation_of(input);
    slower.topology = one_straggler(16, 5, {8, 5});
    for (const PlanRow& row : evaluation.choice.rows) {
        const Result<SimulationResult> result = simulate(*row.plan->schedule, slower);
        ASSERT_TRUE(result && row.careful);
        EXPECT_EQ(*row.careful, result->makespan);
    }
}

TEST(Planner, TuningFindsFasterPlansWhereDataIsPassedOnWhileItArrives) {
    PlannerInput input = input_for(one_straggler(24, 5, 2));
    input.algorithms = {*find_algorithm("ring"), *find_algorithm("optcc-shared")};
    input.model = PortModel::kFluid;
    input.simulate = true;
    const Evaluation plain = evaluated(input);
    input.tune = true;
    const Evaluation tuned = evaluated(input);
    EXPECT_EQ(tuned.choice.rows[0].time(), plain.choice.rows[0].time()) << "a ring has no segments to tune";
    const PlanRow& before = plain.choice.rows[1];
    const PlanRow& after = tuned.choice.rows[1];
    EXPECT_LT(static_cast<double>(after.time().count()) * static_cast<double>(after.careful->count()),
              static_cast<double>(before.time().count()) * static_cast<double>(before.careful->count()));
    EXPECT_GE(after.time(), tuned.bound_time);
}

TEST(Planner, PlansWhoseFlowsShareAPortAreForTheFluidModel) {
    PlannerInput input = input_for(one_straggler(16, 5, {4, 3}));
    input.algorithms.erase(input.algorithms.begin() + 1);
    Evaluation evaluation = evaluated(input);
    EXPECT_TRUE(evaluation.choice.rows[1].shares_ports);
    EXPECT_EQ(recommended(evaluation.choice), "ring");
    input.model = PortModel::kFluid;
    evaluation = evaluated(input);
    EXPECT_EQ(recommended(evaluation.choice), "optcc-shared");
    EXPECT_EQ(binding(evaluation.fluid).name, "theorem 1");
}

TEST(Planner, BreakEvenIsWhereTheGainReachesTwoPerCent) {
    PlannerInput input = input_for(one_straggler(16, 5, 2));
    input.request.flow_latency = Nanoseconds(0); // with it, OptCC's shorter ring wins again for the smallest messages
    const auto gains = [&](std::uint64_t bytes) {
        PlannerInput other = input;
        other.request.elements = static_cast<std::int64_t>(bytes / 4);
        const Evaluation evaluation = evaluated(other);
        const auto time = [&](std::size_t row) {
            return static_cast<double>(evaluation.choice.rows[row].plan->predicted.count());
        };
        return time(1) < kWorthWhile * time(0);
    };
    const std::optional<BreakEven> from_above = break_even(input, evaluated(input).choice);
    ASSERT_TRUE(from_above);
    EXPECT_EQ(from_above->algorithm, "optcc");
    const std::uint64_t size = from_above->smallest.bytes();
    EXPECT_GT(size, kSmallestTried);
    EXPECT_TRUE(gains(size));
    EXPECT_FALSE(gains(size * 15 / 16));

    input.request.elements = 4096;
    const Evaluation small = evaluated(input);
    EXPECT_EQ(recommended(small.choice), "ring");
    const std::optional<BreakEven> from_below = break_even(input, small.choice);
    ASSERT_TRUE(from_below);
    EXPECT_NEAR(static_cast<double>(from_below->smallest.bytes()), static_cast<double>(size),
                static_cast<double>(size) / 8);

    const PlannerInput healthy = input_for(healthy_topology(16));
    EXPECT_FALSE(break_even(healthy, evaluated(healthy).choice));
}

TEST(Planner, TwoServersHaveARingAndAReasonForEachThatDoesNotApply) {
    const Evaluation evaluation = evaluated(input_for(one_straggler(2, 1, 2)));
    EXPECT_EQ(recommended(evaluation.choice), "ring");
    EXPECT_TRUE(evaluation.choice.rows[0].plan.has_value());
    ASSERT_FALSE(evaluation.choice.rows[1].plan.has_value());
    EXPECT_THAT(evaluation.choice.rows[1].plan.error().message(), HasSubstr("at least 3 servers"));
    EXPECT_GE(evaluation.choice.rows[0].time(), evaluation.bound_time);
}

TEST(Planner, AllServersSlowIsAnsweredRelativeToTheFastest) {
    const Evaluation slow = evaluated(input_for(stragglers_first(5, {2, 2, 2, 2, 4})));
    PlannerInput half = input_for(one_straggler(5, 4, 2));
    half.request.healthy_goodput = BitRate::bits_per_s(100'000'000'000);
    const Evaluation same = evaluated(half);
    EXPECT_EQ(recommended(slow.choice), recommended(same.choice));
    EXPECT_EQ(slow.bound_time, same.bound_time);
    for (std::size_t row = 0; row < slow.choice.rows.size(); ++row) {
        EXPECT_EQ(slow.choice.rows[row].time(), same.choice.rows[row].time());
    }
}

TEST(Planner, TheMarginIsForMeasurementsNotForNoiseOrDeadNics) {
    Topology topology = stragglers_first(4, {2, {101, 100}});
    topology.nics_per_server = 8;
    topology.servers[2] = {.send = {8, 7}, .receive = {8, 7}, .failed_nics = 1};
    topology.servers[3].send = {3, 2};
    const Topology careful = with_margin(input_for(topology).request).topology;
    EXPECT_EQ(careful.servers[0].send, Rational(12, 5));
    EXPECT_EQ(careful.servers[0].receive, Rational(12, 5));
    EXPECT_EQ(careful.servers[1], topology.servers[1]);
    EXPECT_EQ(careful.servers[2], topology.servers[2]);
    EXPECT_EQ(careful.servers[3].send, Rational(9, 5));
    EXPECT_EQ(careful.servers[3].receive, Rational(1));
}

TEST(Planner, SaysWhatIsWrongWithARequest) {
    EXPECT_THAT(error_of(input_for(healthy_topology(1))), HasSubstr("at least two servers"));
    PlannerInput input = input_for(healthy_topology(4));
    input.request.elements = 0;
    EXPECT_THAT(error_of(input), HasSubstr("at least one element"));
    input = input_for(healthy_topology(4));
    input.request.healthy_goodput = BitRate();
    EXPECT_THAT(error_of(input), HasSubstr("rate of a healthy NIC"));
    input = input_for(healthy_topology(4));
    input.request.topology.servers[2].receive = Rational(1, 2);
    EXPECT_THAT(error_of(input), HasSubstr("server 2 is faster than healthy"));
    input = input_for(healthy_topology(4));
    input.request.topology.servers[1].failed_nics = 1;
    EXPECT_THAT(error_of(input), HasSubstr("server 1 has no NIC left"));
}

TEST(AutoAlgorithm, RunsWhatThePlannerRecommends) {
    for (const Rational& slowdown : {Rational(1), Rational(2)}) {
        PlannerInput input = input_for(one_straggler(8, 3, slowdown));
        input.algorithms = plannable_algorithms();
        const Result<Choice> choice = choose(input);
        ASSERT_TRUE(choice && choice->recommended);
        const PlanRow& row = choice->rows[*choice->recommended];
        const Result<Plan> plan = (*find_algorithm("auto"))->plan(input.request);
        ASSERT_TRUE(plan.has_value()) << plan.error().to_line();
        EXPECT_EQ(plan->schedule->name(), row.plan->schedule->name());
        EXPECT_EQ(plan->predicted, row.plan->predicted);
        EXPECT_THAT(plan->reason, HasSubstr(row.algorithm + " chosen: "));
    }
}

TEST(AutoAlgorithm, AWrongMeasurementCostsLittle) {
    for (const Rank servers : {8, 16, 64}) {
        for (const Rational& measured : {Rational(8, 7), Rational(4, 3), Rational(8, 5), Rational(2)}) {
            const PlannerInput input = input_for(one_straggler(servers, 3, measured));
            const Result<Plan> plan = AutoAlgorithm().plan(input.request);
            ASSERT_TRUE(plan.has_value());
            for (const auto& [error, allowed] : {std::pair(Rational(4, 5), 1.10), std::pair(Rational(6, 5), 1.10)}) {
                const Rational actual = std::max(Rational(1), Rational(measured * error));
                PlannerInput wrong = input;
                wrong.request.topology = one_straggler(servers, 3, actual);
                const Result<SimulationResult> result = simulate(*plan->schedule, simulation_of(wrong));
                ASSERT_TRUE(result.has_value());
                const Nanoseconds bound = evaluated(wrong).bound_time;
                EXPECT_LE(static_cast<double>(result->makespan.count()), allowed * static_cast<double>(bound.count()))
                    << servers << " servers, measured " << measured << ", actually " << actual << ": "
                    << plan->schedule->name();
            }
        }
    }
}

TEST(AutoAlgorithm, TakesOnlyThePortModelAsAnOption) {
    const AutoAlgorithm algorithm;
    PlanRequest request = input_for(one_straggler(8, 3, 2)).request;
    request.options = {{"model", "exclusive"}};
    const Result<Plan> exclusive = algorithm.plan(request);
    ASSERT_TRUE(exclusive.has_value());
    request.options = {{"model", "wormhole"}};
    EXPECT_EQ(algorithm.plan(request).error().advice(), "model is exclusive or fluid");
    request.options = {{"k", "4"}};
    EXPECT_EQ(algorithm.plan(request).error().kind(), ErrorKind::kInput);
}

} // namespace
} // namespace railbreak::collective
