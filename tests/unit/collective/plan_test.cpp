// The registry and the choice of a plan.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithm.hpp"
#include "collective/cost_model.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

PlanRequest request(Rank ranks, const char* slowdown, std::int64_t elements = 8 << 20) {
    PlanRequest wanted;
    wanted.topology = one_straggler(ranks, 1, *parse_rational(slowdown));
    wanted.elements = elements;
    wanted.healthy_goodput = BitRate::bits_per_s(500'000'000);
    wanted.flow_overhead = std::chrono::microseconds(100);
    wanted.flow_latency = std::chrono::microseconds(200);
    return wanted;
}

Result<Plan> plan_with(std::string_view algorithm, PlanRequest wanted,
                       std::vector<std::pair<std::string, std::string>> options = {}) {
    wanted.options = std::move(options);
    return (*find_algorithm(algorithm))->plan(wanted);
}

std::string name_of(const Result<Plan>& plan) {
    return plan ? plan->schedule->name() : plan.error().to_line();
}

TEST(Registry, FindsEveryAlgorithmByItsName) {
    std::vector<std::string> names;
    for (const Algorithm* algorithm : algorithms()) {
        names.emplace_back(algorithm->name());
        EXPECT_EQ(*find_algorithm(algorithm->name()), algorithm);
        EXPECT_FALSE(algorithm->summary().empty());
    }
    EXPECT_THAT(names, testing::ElementsAre("ring", "optcc", "optcc-shared", "r2ccl", "r2ccl-balance", "iccl",
                                            "stragglar", "halving-doubling", "tree", "hierarchical", "auto"));
    const auto unknown = find_algorithm("bush");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("ring, optcc, optcc-shared"));
}

TEST(Plans, EveryAlgorithmGivesAProvenScheduleForEverySlowdown) {
    for (const Algorithm* algorithm : algorithms()) {
        if (algorithm->name() == "hierarchical") {
            continue; // for servers of several ranks only
        }
        for (const Rank ranks : {3, 4, 8, 16}) {
            for (const char* slowdown : {"1", "8/7", "4/3", "3/2", "2", "3", "4"}) {
                const Result<Plan> plan = algorithm->plan(request(ranks, slowdown, 100'003));
                ASSERT_TRUE(plan.has_value()) << plan.error().to_line();
                EXPECT_TRUE(verify(*plan->schedule).empty()) << plan->schedule->name();
                EXPECT_GT(plan->predicted.count(), 0);
                EXPECT_FALSE(plan->reason.empty());
                EXPECT_EQ(plan->schedule->elements(), 100'003);
            }
        }
    }
}

TEST(Plans, HealthyClusterGetsThePlainRing) {
    for (const char* slowdown : {"1", "102/100"}) {
        const Result<Plan> plan = plan_with("optcc", request(8, slowdown));
        EXPECT_EQ(name_of(plan), "ring(p=8)");
        EXPECT_THAT(plan->reason, HasSubstr("no straggler"));
    }
}

TEST(Plans, HalfSpeedStragglerGetsOptccWhichBeatsTheRing) {
    for (const char* algorithm : {"optcc", "optcc-shared"}) {
        const Result<Plan> plan = plan_with(algorithm, request(8, "2"));
        EXPECT_THAT(name_of(plan), StartsWith(algorithm));
        EXPECT_EQ(plan->schedule->lanes(), algorithm == std::string("optcc") ? 1 : 2);
        EXPECT_THAT(name_of(plan), HasSubstr("straggler=1)"));
        const Result<Plan> ring = plan_with("ring", request(8, "2"));
        EXPECT_LT(plan->predicted.count(), ring->predicted.count() * 7 / 10);
    }
}

TEST(Plans, AnEighthLostAtEightRanksStillGetsOptcc) {
    EXPECT_THAT(name_of(plan_with("optcc", request(8, "8/7"))), StartsWith("optcc-bs("));
}

TEST(Plans, SmallMessageGetsThePlainRing) {
    PlanRequest small = request(8, "8/7", 1000);
    small.flow_latency = {}; // with a large latency the shorter chain of hops wins
    const Result<Plan> plan = plan_with("optcc", small);
    EXPECT_EQ(name_of(plan), "ring(p=8)");
    EXPECT_THAT(plan->reason, HasSubstr("would take"));
}

TEST(Plans, OptionsForceThePlan) {
    EXPECT_EQ(name_of(plan_with("optcc", request(8, "3/2"), {{"plan", "u"}, {"k", "5"}})), "optcc-u(k=5,straggler=1)");
    EXPECT_EQ(name_of(plan_with("optcc", request(8, "3/2"), {{"plan", "bs"}, {"k", "1"}})),
              "optcc-bs(k=1,straggler=1)");
    EXPECT_THAT(name_of(plan_with("optcc", request(8, "3/2"), {{"plan", "star"}})), StartsWith("optcc-star("));
    EXPECT_THAT(name_of(plan_with("optcc", request(8, "3/2"), {{"plan", "auto"}})), StartsWith("optcc-bs("));
    EXPECT_THAT(name_of(plan_with("optcc", request(8, "3/2", 1000), {{"plan", "bs"}})), StartsWith("optcc-bs("));
    EXPECT_EQ(name_of(plan_with("optcc-shared", request(8, "3/2"), {{"plan", "bs"}, {"k", "3"}})),
              "optcc-shared-bs(k=3,straggler=1)");
}

TEST(Plans, WrongRequestsAreInputErrorsThatSayWhy) {
    PlanRequest two = request(8, "3/2");
    two.topology.servers[6].send = 2;
    PlanRequest empty = request(8, "2", 0);
    PlanRequest no_rate = request(8, "2");
    no_rate.healthy_goodput = {};
    const std::vector<std::pair<Result<Plan>, std::string>> cases = [&] {
        std::vector<std::pair<Result<Plan>, std::string>> list;
        list.emplace_back(plan_with("optcc", two), "one straggler only; servers 1 and 6");
        list.emplace_back(plan_with("optcc", request(2, "2")), "at least 3 ranks");
        list.emplace_back(plan_with("optcc", empty), "at least one element");
        list.emplace_back(plan_with("optcc", no_rate), "goodput");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "fast"}}), "auto, u, bs, star");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "0"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "-3"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "3x"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", ""}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"segments", "3"}}), "no option \"segments\"");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "star"}}), "slowdown of at most 1.5");
        list.emplace_back(plan_with("optcc", request(17, "4/3"), {{"plan", "star"}}), "at most 16 ranks");
        list.emplace_back(plan_with("ring", request(8, "2"), {{"k", "3"}}), "no option \"k\"");
        return list;
    }();
    for (const auto& [plan, why] : cases) {
        ASSERT_FALSE(plan.has_value()) << why;
        EXPECT_EQ(plan.error().kind(), ErrorKind::kInput);
        EXPECT_THAT(plan.error().to_line(), HasSubstr(why));
    }
}

TEST(Plans, RingNeedsOnlyTwoRanks) {
    EXPECT_EQ(name_of(plan_with("ring", request(2, "2"))), "ring(p=2)");
}

TEST(Choice, BalancedSegmentsCoverTheSlowdownWithItsMargin) {
    // With an overhead that matters, k = ceil(l'/(2-l')) or a little more, where l' is 1.2 times the slowdown.
    for (const double slowdown : {8.0 / 7, 4.0 / 3, 3.0 / 2}) {
        const double careful = slowdown * kSlowdownMargin;
        for (const Rank ranks : {8, 16, 33, 64}) {
            const CostInput input{.ranks = ranks, .slowdown = slowdown, .vector_ns = 1e9, .overhead_ns = 2e4};
            const PlanChoice choice = cheapest_plan(input, {}, {});
            EXPECT_EQ(choice.plan, OptccPlan::kBalanced);
            EXPECT_LE(careful, 2.0 * static_cast<double>(choice.segments) / static_cast<double>(choice.segments + 1));
        }
    }
}

TEST(Choice, IsTheCheapestOfAll) {
    for (const double slowdown : {1.05, 8.0 / 7, 4.0 / 3, 1.5, 2.0, 3.0, 4.0}) {
        for (const Rank ranks : {3, 8, 64}) {
            for (const double overhead : {0.0, 1e3, 1e5}) {
                for (const bool shared : {false, true}) {
                    CostInput input{.ranks = ranks,
                                    .slowdown = slowdown,
                                    .vector_ns = 1e8,
                                    .overhead_ns = overhead,
                                    .latency_ns = 3 * overhead,
                                    .shared = shared};
                    const PlanChoice choice = cheapest_plan(input, {}, {});
                    input.slowdown *= kSlowdownMargin;
                    const double cost = optcc_cost_ns(input, choice.plan, choice.segments);
                    for (std::int64_t k = 1; k <= kMostSegments; ++k) {
                        EXPECT_LE(cost, optcc_cost_ns(input, OptccPlan::kUniform, k));
                        EXPECT_LE(cost, optcc_cost_ns(input, OptccPlan::kBalanced, k));
                    }
                }
            }
        }
    }
}

TEST(Choice, MoreOverheadNeverMeansMoreSegments) {
    std::int64_t before = kMostSegments + 1;
    for (const double overhead : {0.0, 1e3, 1e4, 1e5, 1e6}) {
        const CostInput input{.ranks = 8, .slowdown = 2, .vector_ns = 1e8, .overhead_ns = overhead};
        const std::int64_t segments = cheapest_plan(input, {}, {}).segments;
        EXPECT_LE(segments, before);
        before = segments;
    }
    EXPECT_LT(before, 8);
}

TEST(Choice, SharedPortsAreNeverDearer) {
    for (const double slowdown : {8.0 / 7, 1.5, 2.0, 3.0}) {
        for (const std::int64_t k : {1, 4, 16}) {
            CostInput input{.ranks = 8, .slowdown = slowdown, .vector_ns = 1e8, .overhead_ns = 1e3};
            const double exclusive = optcc_cost_ns(input, OptccPlan::kBalanced, k);
            input.shared = true;
            EXPECT_LE(optcc_cost_ns(input, OptccPlan::kBalanced, k), exclusive);
        }
    }
}

} // namespace
} // namespace railbreak::collective
