// The registry and the choice of a plan.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithm.hpp"
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
    EXPECT_THAT(names, testing::ElementsAre("ring", "optcc", "optcc-shared", "optcc-abcd", "r2ccl", "r2ccl-balance",
                                            "iccl", "stragglar", "halving-doubling", "tree", "hierarchical", "auto"));
    const auto unknown = find_algorithm("bush");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("ring, optcc, optcc-shared, optcc-abcd"));
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
    for (const char* plan : {"lag", "lag-star", "ramp"}) {
        EXPECT_THAT(name_of(plan_with("optcc", request(8, "3/2"), {{"plan", plan}, {"k", "5"}})),
                    std::string("optcc-") + plan + "(k=5,straggler=1)");
    }
    EXPECT_EQ(name_of(plan_with("optcc-shared", request(8, "3/2"), {{"plan", "bs"}, {"k", "3"}})),
              "optcc-shared-bs(k=3,straggler=1)");
}

TEST(Plans, SeveralStragglersGetOptcc) {
    PlanRequest two = request(8, "3/2");
    two.topology.servers[6].send = 2;
    const Result<Plan> plan = plan_with("optcc", two, {{"plan", "bs"}, {"k", "9"}});
    EXPECT_EQ(name_of(plan), "optcc-bs(k=9,stragglers=6,1)");
    EXPECT_THAT(plan->reason, HasSubstr("stragglers 6, 1"));
    EXPECT_THAT(plan->reason, HasSubstr("as slow as the slower of the two"));
    EXPECT_TRUE(verify(*plan->schedule).empty());
    EXPECT_THAT(plan_with("optcc", request(8, "3/2"))->reason, testing::Not(HasSubstr("slower of the two")));
}

TEST(Plans, MildStragglersStayInTheRing) {
    PlanRequest mild = request(8, "3", 64 << 20);
    mild.topology.servers[6].send = mild.topology.servers[6].receive = Rational(21, 20);
    const Result<Plan> plan = plan_with("optcc", mild);
    EXPECT_THAT(name_of(plan), HasSubstr("straggler=1)"));
    EXPECT_THAT(plan->reason, HasSubstr("1 milder one left in the ring"));
    mild.topology.servers[1] = mild.topology.servers[6];
    EXPECT_EQ(name_of(plan_with("optcc", mild)), "ring(p=8)") << "all of them mild";
}

TEST(Plans, ServersOfSeveralRanksGetRails) {
    PlanRequest wanted = request(4, "2");
    wanted.topology.ranks_per_server = 4;
    wanted.topology.nics_per_server = 4;
    wanted.topology.local_ratio = 8;
    for (const char* algorithm : {"optcc", "optcc-shared", "optcc-abcd"}) {
        const Result<Plan> plan = plan_with(algorithm, wanted);
        EXPECT_THAT(name_of(plan), HasSubstr("straggler=1,g=4)"));
        EXPECT_EQ(plan->schedule->ranks(), 16);
        EXPECT_TRUE(verify(*plan->schedule).empty());
    }
    // A slow intra-host port costs time, and is reckoned with.
    const auto fast = plan_with("optcc", wanted, {{"plan", "bs"}, {"k", "4"}})->predicted;
    wanted.topology.local_ratio = Rational(1, 2);
    const Result<Plan> slow = plan_with("optcc", wanted, {{"plan", "bs"}, {"k", "4"}});
    EXPECT_GT(slow->predicted, 2 * fast);
    EXPECT_THAT(slow->reason, HasSubstr("intra-host ports hold the NICs up"));
}

TEST(Plans, PatternsTakeMultiplesOfFour) {
    EXPECT_EQ(name_of(plan_with("optcc-abcd", request(8, "2"), {{"k", "8"}})), "optcc-abcd(k=8,straggler=1)");
    const Result<Plan> plan = plan_with("optcc-abcd", request(8, "8/7"));
    EXPECT_THAT(name_of(plan), StartsWith("optcc-abcd(k="));
}

TEST(Plans, EveryAlgorithmSaysWhichOptionsItTakes) {
    for (const Algorithm* algorithm : algorithms()) {
        for (const OptionHelp& help : algorithm->options()) {
            EXPECT_FALSE(help.values.empty() || help.what.empty()) << algorithm->name();
        }
    }
    EXPECT_EQ((*find_algorithm("optcc"))->options().size(), 3U);
}

TEST(Plans, WrongRequestsAreInputErrorsThatSayWhy) {
    PlanRequest dead = request(8, "2");
    dead.topology.nics_per_server = 2;
    dead.topology.servers[3] = {2, 2, 1};
    PlanRequest empty = request(8, "2", 0);
    PlanRequest no_rate = request(8, "2");
    no_rate.healthy_goodput = {};
    const std::vector<std::pair<Result<Plan>, std::string>> cases = [&] {
        std::vector<std::pair<Result<Plan>, std::string>> list;
        list.emplace_back(plan_with("optcc", request(2, "2")), "at least 3 servers");
        list.emplace_back(plan_with("optcc", empty), "at least one element");
        list.emplace_back(plan_with("optcc", no_rate), "goodput");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "fast"}}),
                          "auto, u, bs, star, lag, lag-star, ramp");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "0"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "-3"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", "3x"}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"k", ""}}), "whole number");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"segments", "3"}}), "no option \"segments\"");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "star"}}), "slowdown of at most 1.5");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "lag-star"}}), "slowdown of at most 1.5");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"late", "perhaps"}}), "auto, yes, no");
        list.emplace_back(plan_with("optcc", request(8, "2"), {{"plan", "abcd"}}), "unknown");
        list.emplace_back(plan_with("optcc-abcd", request(8, "2"), {{"k", "6"}}), "multiple of 4");
        list.emplace_back(plan_with("optcc-abcd", request(8, "2"), {{"plan", "u"}}), "no option \"plan\"");
        list.emplace_back(plan_with("optcc", dead), "NIC 0 of server 3, which is dead");
        list.emplace_back(plan_with("optcc", request(17, "4/3"), {{"plan", "star"}}), "at most 16 servers");
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

} // namespace
} // namespace railbreak::collective
