// The plans whose segments differ in size or go different ways: LAG, LAG with stars, ramp, the four patterns.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_program.hpp"
#include "collective/algorithms/optcc_weights.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/topology.hpp"
#include "collective/verify.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

using testing::ElementsAre;
using Weights = std::vector<std::int64_t>;

std::int64_t sum(const Weights& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// A plan with the given weights whose parts are whole numbers of elements.
OptccParameters weighted(Rank ranks, OptccPlan plan, const Weights& weights) {
    return {.servers = ranks,
            .stragglers = {ranks / 2},
            .elements = (ranks - 1) * sum(weights),
            .plan = plan,
            .segments = static_cast<std::int64_t>(weights.size()),
            .weights = weights};
}

OptccParameters patterns(Rank ranks, std::int64_t segments) {
    return {.servers = ranks,
            .stragglers = {ranks / 2},
            .elements = (ranks - 1) * segments,
            .plan = OptccPlan::kPatterns,
            .segments = segments};
}

OptccParameters with_star(OptccParameters lag, double slowdown) {
    lag.plan = OptccPlan::kLagStar;
    lag.star_weights = lag_star_weights(slowdown, lag.weights);
    lag.star_elements = {sum(lag.star_weights)};
    lag.elements += sum(lag.star_weights);
    return lag;
}

Rational time_over_n(const OptccParameters& wanted, const Rational& slowdown) {
    const Result<Rational> time =
        simulate_exact(*make_optcc(wanted), one_straggler(wanted.servers, wanted.stragglers[0], slowdown));
    EXPECT_TRUE(time) << (time ? "" : time.error().to_line());
    return time ? Rational(*time / wanted.elements) : Rational(-1);
}

TEST(Lag, TimesMatchTheVectors) {
    struct Row {
        Rank ranks;
        const char* slowdown;
        Weights weights;
        const char* time;
    };
    const std::vector<Row> rows = {
        {3, "2", {10, 20, 20, 10}, "5/2"},        {4, "8/7", {10, 16, 16, 10}, "500/273"},
        {5, "2", {10, 20, 20, 10}, "29/12"},      {5, "3/2", {10, 16, 16, 10}, "207/104"},
        {8, "8/7", {10, 16, 16, 10}, "1228/637"}, {8, "3", {10, 30, 30, 10}, "27/8"},
        {16, "4/3", {10, 16, 16, 10}, "232/117"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(time_over_n(weighted(row.ranks, OptccPlan::kLag, row.weights), *parse_rational(row.slowdown)),
                  *parse_rational(row.time))
            << "p=" << row.ranks << " l=" << row.slowdown;
    }
}

TEST(Lag, TimesMatchTheClosedFormWhereTheRingNeverWaits) {
    // While l n_b <= n_{b-1} + n_{b+1}: [2(h-1) + l (1 + max n_b / n)] / h.
    for (const Rank ranks : {3, 5, 8, 16}) {
        for (const char* text : {"1", "8/7", "4/3", "3/2", "8/5"}) {
            const Rational ell = *parse_rational(text);
            for (const std::int64_t k : {2, 3, 4, 5, 9}) {
                const Weights weights = lag_weights(to_double(ell), k, ranks - 1);
                const auto size = [&](std::int64_t b) {
                    return b < 0 || b >= k ? Rational(0) : Rational(weights[static_cast<std::size_t>(b)]);
                };
                bool never = true;
                for (std::int64_t b = 0; b < k; ++b) {
                    never = never && ell * size(b) <= size(b - 1) + size(b + 1);
                }
                if (!never) {
                    continue;
                }
                const std::int64_t most = *std::max_element(weights.begin(), weights.end());
                const Rational expected =
                    (2 * (Rational(ranks) - 2) + ell * (1 + Rational(most, sum(weights)))) / (ranks - 1);
                EXPECT_EQ(time_over_n(weighted(ranks, OptccPlan::kLag, weights), ell), expected)
                    << "p=" << ranks << " l=" << text << " k=" << k;
            }
        }
    }
}

TEST(Lag, StarTimesMatchTheVectors) {
    struct Row {
        Rank ranks;
        const char* slowdown;
        Weights weights;
        Weights stars;
        const char* time;
    };
    const std::vector<Row> rows = {
        {5, "8/7", {100, 141, 100}, {23, 23, 23, 23}, "193/104"},
        {5, "3/2", {100, 162, 162, 100}, {8, 8, 12, 8, 8}, "4239/2140"},
        {8, "4/3", {100, 173, 200, 173, 100}, {29, 29, 52, 52, 29, 29}, "15760/8163"},
        {16, "8/7", {100, 162, 162, 100}, {41, 41, 67, 41, 41}, "5240/2697"},
    };
    for (const Row& row : rows) {
        const Rational ell = *parse_rational(row.slowdown);
        const OptccParameters star = with_star(weighted(row.ranks, OptccPlan::kLag, row.weights), to_double(ell));
        EXPECT_EQ(star.star_weights, row.stars);
        EXPECT_EQ(time_over_n(star, ell), *parse_rational(row.time)) << "p=" << row.ranks << " l=" << row.slowdown;
    }
}

TEST(Weights, LagIsASineOrARampWithAPlateau) {
    const Weights sine = lag_weights(1.6, 4, 7);
    EXPECT_THAT(sine, ElementsAre(1000, 1618, 1618, 1000));
    EXPECT_THAT(lag_weights(2, 7, 1000), ElementsAre(1000, 2000, 3000, 4000, 3000, 2000, 1000));
    // Few healthy ranks: a large segment would cost more than the small ends save.
    const Weights flat = lag_weights(3, 9, 3);
    EXPECT_LT(*std::max_element(flat.begin(), flat.end()), 81000);
    EXPECT_GT(std::count(flat.begin(), flat.end(), *std::max_element(flat.begin(), flat.end())), 1);
    EXPECT_THAT(lag_weights(1.9, 1, 5), ElementsAre(1000));
}

TEST(Weights, RampsGrowByTheSlowdown) {
    EXPECT_THAT(ramp_weights(2, 7, 1000), ElementsAre(1000, 2000, 4000, 8000, 4000, 2000, 1000));
    EXPECT_THAT(ramp_weights(3, 4, 1000), ElementsAre(1000, 3000, 3000, 1000));
    for (const double slowdown : {1.0, 2.0, 3.5}) {
        for (const std::int64_t k : {1, 2, 5, 64}) {
            const Weights weights = ramp_weights(slowdown, k, 7);
            EXPECT_EQ(static_cast<std::int64_t>(weights.size()), k);
            EXPECT_TRUE(std::equal(weights.begin(), weights.end(), weights.rbegin()));
        }
    }
}

TEST(Ramp, KeepsTheStragglerBusyFromItsFirstSegmentToItsLast) {
    // For l >= 2: the ring reduces n_0, the straggler works all the time, the ring gathers n_{k-1}, and the last upload
    // of link 0 comes at the very end: between l and l + (2(h-1) n_0 + l max n_b) / (h n).
    for (const Rank ranks : {4, 8, 16, 64}) {
        for (const char* text : {"2", "5/2", "3", "4"}) {
            const Rational ell = *parse_rational(text);
            for (const std::int64_t k : {3, 4, 7, 10}) {
                const Weights weights = ramp_weights(to_double(ell), k, ranks - 1);
                const Rational n = sum(weights);
                const Rational h = ranks - 1;
                const std::int64_t most = *std::max_element(weights.begin(), weights.end());
                const Rational limit = ell + (2 * (h - 1) * weights[0] + ell * most) / (h * n);
                const Rational time = time_over_n(weighted(ranks, OptccPlan::kRamp, weights), ell);
                // Weights are rounded, so that growth may be a little faster than the slowdown.
                EXPECT_LE(time, limit + Rational(1, 10000)) << "p=" << ranks << " l=" << text << " k=" << k;
                EXPECT_GE(time, ell);
            }
        }
    }
}

TEST(Ramp, BeatsLagWithAsManySegmentsOnLargeClusters) {
    const auto lag = time_over_n(weighted(64, OptccPlan::kLag, lag_weights(2, 9, 63)), 2);
    const auto ramp = time_over_n(weighted(64, OptccPlan::kRamp, ramp_weights(2, 9, 63)), 2);
    EXPECT_LT(ramp, lag);
    EXPECT_LT(ramp, Rational(206, 100));
    EXPECT_GT(lag, Rational(208, 100));
}

TEST(Ramp, ReducesFirstAndGathersLater) {
    const OptccProgram program = make_program(weighted(5, OptccPlan::kRamp, {1, 2, 4, 4, 2, 1}));
    std::int64_t last_reduction = 0;
    std::int64_t first_gather = static_cast<std::int64_t>(program.phases.size());
    for (std::int64_t f = 0; f < static_cast<std::int64_t>(program.phases.size()); ++f) {
        if (program.phase(f).streams[0].unit != kOptccNone) {
            last_reduction = f;
        }
        if (program.phase(f).streams[1].unit != kOptccNone) {
            first_gather = std::min(first_gather, f);
        }
    }
    EXPECT_EQ(last_reduction, 3);
    EXPECT_EQ(first_gather, 4);
}

TEST(Patterns, TimesMatchTheVectors) {
    struct Row {
        Rank ranks;
        const char* slowdown;
        std::int64_t segments;
        const char* time;
    };
    const std::vector<Row> rows = {
        {3, "8/7", 4, "7/4"},    {3, "3/2", 8, "61/32"},  {3, "2", 4, "5/2"},      {3, "3", 4, "29/8"},
        {3, "3", 8, "53/16"},    {4, "8/7", 4, "13/7"},   {4, "3/2", 4, "17/8"},   {4, "3", 8, "79/24"},
        {5, "8/7", 4, "107/56"}, {5, "3/2", 8, "129/64"}, {5, "2", 8, "9/4"},      {5, "3", 4, "57/16"},
        {8, "8/7", 4, "97/49"},  {8, "3/2", 4, "123/56"}, {8, "2", 4, "5/2"},      {8, "3", 4, "99/28"},
        {8, "3", 8, "183/56"},   {16, "8/7", 4, "71/35"}, {16, "3/2", 4, "89/40"}, {16, "2", 8, "9/4"},
        {16, "3", 4, "211/60"},  {16, "3", 8, "391/120"},
    };
    for (const Row& row : rows) {
        EXPECT_EQ(time_over_n(patterns(row.ranks, row.segments), *parse_rational(row.slowdown)),
                  *parse_rational(row.time))
            << "p=" << row.ranks << " l=" << row.slowdown << " k=" << row.segments;
    }
}

TEST(Patterns, AreNoSlowerThanTheirWindows) {
    // k+1 bodies of h windows of max{2, l} sections; run as queues they lose what the first and last body leave idle.
    for (const Rank ranks : {3, 5, 8, 16}) {
        for (const char* text : {"8/7", "4/3", "3/2", "2", "3"}) {
            const Rational ell = *parse_rational(text);
            for (const std::int64_t k : {4, 8}) {
                EXPECT_LE(time_over_n(patterns(ranks, k), ell), std::max(Rational(2), ell) * Rational(k + 1, k))
                    << "p=" << ranks << " l=" << text << " k=" << k;
            }
        }
    }
}

TEST(Patterns, HaveOneFlowEachWayInEveryPauseAndTwoRingStreams) {
    const OptccProgram program = make_program(patterns(5, 8));
    ASSERT_EQ(program.phases.size(), 9U);
    for (std::size_t f = 1; f < 8; ++f) {
        EXPECT_NE(program.phases[f].down, kOptccNone);
        EXPECT_NE(program.phases[f].up, kOptccNone);
        EXPECT_NE(program.phases[f].streams[0].unit, kOptccNone);
        EXPECT_NE(program.phases[f].streams[1].unit, kOptccNone);
    }
    EXPECT_EQ(program.adds_at_straggler, (std::vector<bool>{true, false, true, false, true, false, true, false}));
}

std::vector<OptccParameters> all_plans(Rank ranks, std::int64_t segments, std::int64_t elements) {
    std::vector<OptccParameters> list;
    for (const double slowdown : {1.2, 2.0, 3.0}) {
        OptccParameters plan = weighted(ranks, OptccPlan::kLag, lag_weights(slowdown, segments, ranks - 1));
        plan.elements = elements;
        list.push_back(plan);
        plan.plan = OptccPlan::kRamp;
        plan.weights = ramp_weights(slowdown, segments, ranks - 1);
        list.push_back(plan);
    }
    OptccParameters star = weighted(ranks, OptccPlan::kLagStar, lag_weights(1.1, segments, ranks - 1));
    star.star_weights = lag_star_weights(1.05, star.weights);
    star.elements = elements;
    star.star_elements = {elements / 9};
    if (sum(star.star_weights) > 0) {
        list.push_back(star);
    }
    list.push_back(patterns(ranks, (segments + 3) / 4 * 4));
    list.back().elements = elements;
    const std::size_t one_lane = list.size();
    for (std::size_t i = 0; i < one_lane; ++i) {
        list.push_back(list[i]);
        list.back().shared = true;
    }
    return list;
}

void expect_proven(const OptccParameters& wanted) {
    const auto schedule = make_optcc(wanted);
    for (const Violation& violation : verify(*schedule, 2)) {
        ADD_FAILURE() << schedule->name() << " p=" << wanted.servers << " n=" << wanted.elements << ": "
                      << to_string(violation);
    }
}

TEST(UnequalSegments, EveryPlanIsProven) {
    for (const Rank ranks : {3, 4, 5, 8, 12}) {
        for (const std::int64_t segments : {1, 2, 3, 4, 5, 8}) {
            for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{ranks} + 3, std::int64_t{1511}}) {
                for (const OptccParameters& wanted : all_plans(ranks, segments, elements)) {
                    expect_proven(wanted);
                }
            }
        }
    }
}

TEST(UnequalSegments, EveryPlanIsProvenForServersOfSeveralRanks) {
    for (const Rank group : {2, 4}) {
        for (const std::int64_t segments : {1, 3, 6}) {
            for (const std::int64_t elements : {3, 1511}) {
                for (OptccParameters wanted : all_plans(5, segments, elements)) {
                    wanted.ranks_per_server = group;
                    expect_proven(wanted);
                }
            }
        }
    }
}

TEST(UnequalSegments, EveryPlanGivesTheSumInAnyOrderOfEvents) {
    for (const std::int64_t elements : {7, 149}) {
        for (OptccParameters wanted : all_plans(5, 5, elements)) {
            const auto schedule = make_optcc(wanted);
            EXPECT_EQ(test::wrong_runs(*schedule, 2), 0) << schedule->name() << " n=" << elements;
        }
    }
}

} // namespace
} // namespace railbreak::collective
