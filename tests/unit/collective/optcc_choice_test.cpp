// What OptCC plans cost according to the model, and which of them is chosen.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_choice.hpp"
#include "collective/algorithms/optcc_cost.hpp"
#include "collective/algorithms/optcc_weights.hpp"
#include "collective/cost_model.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {
namespace {

constexpr double kElementNs = 4; ///< time of an element of 4 bytes at 8 Gbit/s

std::vector<Rational> rationals(const std::vector<const char*>& texts) {
    std::vector<Rational> list;
    for (const char* text : texts) {
        list.push_back(*parse_rational(text));
    }
    return list;
}

OptccCluster cluster_for(const OptccParameters& parameters, const std::vector<Rational>& slowdowns,
                         std::int64_t overhead) {
    OptccCluster cluster;
    cluster.servers = parameters.servers;
    cluster.ranks_per_server = parameters.ranks_per_server;
    for (const Rational& slowdown : slowdowns) {
        cluster.stragglers.push_back(to_double(slowdown));
    }
    cluster.vector_ns = static_cast<double>(parameters.elements) * kElementNs;
    cluster.overhead_ns = static_cast<double>(overhead);
    return cluster;
}

/// The simulated time in nanoseconds.
double simulated(const OptccParameters& parameters, const std::vector<Rational>& slowdowns, std::int64_t overhead,
                 const Rational& local_ratio = 0, PortModel model = PortModel::kExclusive) {
    Topology topology = healthy_topology(parameters.servers);
    topology.ranks_per_server = parameters.ranks_per_server;
    topology.nics_per_server = parameters.nics_per_server;
    topology.local_ratio = local_ratio;
    for (std::size_t a = 0; a < slowdowns.size(); ++a) {
        topology.servers[static_cast<std::size_t>(parameters.stragglers[a])] = {slowdowns[a], slowdowns[a]};
    }
    const auto result = simulate(*make_optcc(parameters), {.model = model,
                                                           .topology = topology,
                                                           .healthy_goodput = BitRate::bits_per_s(8'000'000'000),
                                                           .cut_through = model == PortModel::kFluid,
                                                           .flow_overhead = Nanoseconds(overhead)});
    EXPECT_TRUE(result) << (result ? "" : result.error().to_line());
    return result ? static_cast<double>(result->makespan.count()) : -1;
}

double model(const OptccParameters& parameters, const std::vector<Rational>& slowdowns, std::int64_t overhead) {
    return optcc_cost_ns(cluster_for(parameters, slowdowns, overhead), parameters, make_program(parameters));
}

OptccParameters plan_of(Rank ranks, OptccPlan plan, std::int64_t k, std::size_t stragglers = 1) {
    OptccParameters wanted{.servers = ranks, .elements = 0, .plan = plan, .segments = k};
    for (std::size_t a = 0; a < stragglers; ++a) {
        wanted.stragglers.push_back(static_cast<Rank>(2 * a));
    }
    const Rank h = ranks - static_cast<Rank>(stragglers);
    if (plan == OptccPlan::kLag || plan == OptccPlan::kRamp) {
        wanted.weights = plan == OptccPlan::kLag ? lag_weights(2, k, h) : ramp_weights(2, k, h);
    }
    wanted.elements = std::int64_t{100'000} * h * k * (k + 1);
    return wanted;
}

TEST(OptccCost, IsExactForOneStragglerWithoutLatency) {
    for (const Rank ranks : {4, 5, 8, 16}) {
        for (const char* text : {"1", "8/7", "3/2", "2", "3"}) {
            for (const std::int64_t k : {1, 2, 4, 7}) {
                for (const std::int64_t overhead : {0, 3000, 300'000}) {
                    for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced}) {
                        const OptccParameters wanted = plan_of(ranks, plan, k);
                        const auto ells = rationals({text});
                        EXPECT_NEAR(model(wanted, ells, overhead) / simulated(wanted, ells, overhead), 1, 1e-6)
                            << to_string(plan) << " p=" << ranks << " l=" << text << " k=" << k << " o=" << overhead;
                    }
                }
            }
        }
    }
}

TEST(OptccCost, IsExactForSeveralStragglersOfAtMostHalfSpeed) {
    for (const Rank ranks : {6, 8, 16}) {
        for (const auto& texts : std::vector<std::vector<const char*>>{{"2", "8/7"}, {"3/2", "4/3", "8/7"}}) {
            for (const std::int64_t k : {1, 4}) {
                const auto ells = rationals(texts);
                const OptccParameters wanted = plan_of(ranks, OptccPlan::kUniform, k, ells.size());
                EXPECT_NEAR(model(wanted, ells, 0) / simulated(wanted, ells, 0), 1, 1e-6)
                    << "p=" << ranks << " k=" << k;
            }
        }
        const auto ells = rationals({"8/7", "8/7"});
        const OptccParameters wanted = plan_of(ranks, OptccPlan::kBalanced, 4, 2);
        EXPECT_NEAR(model(wanted, ells, 0) / simulated(wanted, ells, 0), 1, 1e-6) << "p=" << ranks;
    }
}

TEST(OptccCost, IsCloseForEveryPlan) {
    const auto check = [](const OptccParameters& wanted, const std::vector<Rational>& ells, std::int64_t overhead) {
        EXPECT_NEAR(model(wanted, ells, overhead) / simulated(wanted, ells, overhead), 1, 0.07)
            << to_string(wanted.plan) << " p=" << wanted.servers << " m=" << ells.size() << " l=" << to_double(ells[0])
            << " k=" << wanted.segments << " o=" << overhead;
    };
    for (const Rank ranks : {5, 8, 16}) {
        for (const std::int64_t overhead : {0, 100'000}) {
            for (const std::int64_t k : {3, 4, 8}) {
                for (const char* text : {"8/7", "3/2", "2", "3"}) {
                    check(plan_of(ranks, OptccPlan::kLag, k), rationals({text}), overhead);
                    check(plan_of(ranks, OptccPlan::kRamp, k), rationals({text}), overhead);
                    if (k % 4 == 0) {
                        check(plan_of(ranks, OptccPlan::kPatterns, k), rationals({text}), overhead);
                    }
                }
                OptccParameters late = plan_of(ranks, OptccPlan::kUniform, k, 2);
                late.late_first_link = true;
                check(late, rationals({"3", "8/7"}), overhead);
                check(late, rationals({"3", "3"}), overhead);
            }
        }
    }
}

TEST(OptccCost, IsNotTooLowForUnequalSegmentsAndSeveralStragglers) {
    // Too high by up to a quarter where phases overlap: few segments, and stragglers that the links do not hold up.
    for (const Rank ranks : {8, 16}) {
        for (const std::int64_t overhead : {0, 100'000}) {
            for (const std::int64_t k : {3, 4, 8, 16}) {
                for (const auto& texts : std::vector<std::vector<const char*>>{
                         {"2", "2"}, {"2", "8/7"}, {"3/2", "8/7"}, {"3", "3"}, {"2", "2", "8/7"}}) {
                    for (const OptccPlan plan : {OptccPlan::kLag, OptccPlan::kRamp}) {
                        const OptccParameters wanted = plan_of(ranks, plan, k, texts.size());
                        const auto ells = rationals(texts);
                        const double ratio = model(wanted, ells, overhead) / simulated(wanted, ells, overhead);
                        EXPECT_GE(ratio, 0.97) << to_string(plan) << " p=" << ranks << " k=" << k << " l=" << texts[1];
                        EXPECT_LE(ratio, k < 8 ? 1.25 : 1.1)
                            << to_string(plan) << " p=" << ranks << " k=" << k << " l=" << texts[1];
                    }
                }
            }
        }
    }
}

TEST(OptccCost, CountsLocalWork) {
    for (const Rational& ratio : {Rational(8), Rational(1), Rational(1, 3)}) {
        for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced}) {
            OptccParameters wanted = plan_of(6, plan, 4);
            wanted.ranks_per_server = wanted.nics_per_server = 4;
            const auto ells = rationals({"3/2"});
            OptccCluster cluster = cluster_for(wanted, ells, 0);
            cluster.local_ratio = to_double(ratio);
            const double predicted = optcc_cost_ns(cluster, wanted, make_program(wanted));
            const double time = simulated(wanted, ells, 0, ratio);
            EXPECT_GE(predicted, time * 0.999) << to_string(plan) << " " << ratio; // the work overlaps more than that
            EXPECT_LE(predicted, time * 1.35) << to_string(plan) << " " << ratio;
        }
    }
}

TEST(OptccCost, LeavesTheFlowsOfAStragglerHalfOfAPortThatTheyShare) {
    for (const Rank ranks : {8, 16}) {
        for (const char* text : {"8/7", "4/3", "2", "3"}) {
            for (const std::int64_t k : {2, 4, 8}) {
                for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced}) {
                    OptccParameters wanted = plan_of(ranks, plan, k);
                    wanted.shared = true;
                    const auto ells = rationals({text});
                    OptccCluster cluster = cluster_for(wanted, ells, 1000);
                    cluster.shared = true;
                    EXPECT_NEAR(optcc_cost_ns(cluster, wanted, make_program(wanted)) /
                                    simulated(wanted, ells, 1000, 0, PortModel::kFluid),
                                1, 0.07)
                        << to_string(plan) << " p=" << ranks << " l=" << text << " k=" << k;
                }
            }
        }
    }
}

OptccQuestion question(Rank servers, std::vector<const char*> slowdowns, double vector_ns, double overhead) {
    OptccQuestion asked;
    asked.cluster.servers = servers;
    asked.cluster.vector_ns = vector_ns;
    asked.cluster.overhead_ns = overhead;
    asked.elements = 100'000'003;
    for (std::size_t a = 0; a < slowdowns.size(); ++a) {
        asked.slow.push_back({static_cast<Rank>(2 * a + 1), *parse_rational(slowdowns[a])});
    }
    return asked;
}

TEST(Choice, BalancedSegmentsCoverTheSlowdownWithItsMargin) {
    // With an overhead that matters, k = ceil(l'/(2-l')) or a little more, where l' is 1.2 times the slowdown.
    for (const char* slowdown : {"8/7", "4/3", "3/2"}) {
        const double careful = to_double(*parse_rational(slowdown)) * kSlowdownMargin;
        for (const Rank ranks : {16, 33, 64}) {
            OptccQuestion asked = question(ranks, {slowdown}, 1e9, 2e4);
            asked.plan = OptccPlan::kBalanced;
            const auto choice = choose_optcc(asked);
            ASSERT_TRUE(choice.has_value());
            const auto k = static_cast<double>(choice->parameters.segments);
            EXPECT_LE(careful, 2 * k / (k + 1) + 1e-9) << ranks << " " << slowdown;
        }
    }
}

TEST(Choice, NoOtherPlanIsBetterAtBothSlowdownsAndTheLossAtEitherIsSmall) {
    for (const char* slowdown : {"21/20", "8/7", "3/2", "2", "4"}) {
        for (const Rank ranks : {3, 8, 64}) {
            for (const double overhead : {0.0, 1e3, 1e5}) {
                OptccQuestion asked = question(ranks, {slowdown}, 1e8, overhead);
                asked.cluster.latency_ns = 3 * overhead;
                const auto costs = [&](const OptccParameters& parameters) {
                    std::array<double, 2> both{};
                    for (std::size_t i = 0; i < both.size(); ++i) {
                        OptccCluster cluster = asked.cluster;
                        cluster.stragglers = {to_double(asked.slow[0].slowdown) * (i == 0 ? 1 : kSlowdownMargin)};
                        both.at(i) = optcc_cost_ns(cluster, parameters, make_program(parameters));
                    }
                    return both;
                };
                const auto chosen = choose_optcc(asked);
                ASSERT_TRUE(chosen.has_value());
                const auto [measured, careful] = costs(chosen->parameters);
                for (const OptccPlan plan :
                     {OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kLag, OptccPlan::kRamp}) {
                    for (const std::int64_t k : {1, 2, 3, 5, 8, 13, 21, 34, 55, 64}) {
                        asked.plan = plan;
                        asked.segments = k;
                        const auto other = choose_optcc(asked);
                        ASSERT_TRUE(other.has_value());
                        EXPECT_EQ(other->parameters.plan, plan);
                        EXPECT_EQ(other->parameters.segments, k);
                        const auto [other_measured, other_careful] = costs(other->parameters);
                        EXPECT_FALSE(other_measured < measured && other_careful < careful) << slowdown << " " << ranks;
                        EXPECT_LE(measured, 1.08 * other_measured) << slowdown << " " << ranks;
                        EXPECT_LE(careful, 1.08 * other_careful) << slowdown << " " << ranks;
                    }
                }
            }
        }
    }
}

TEST(Choice, MoreOverheadNeverMeansMoreSegments) {
    std::int64_t before = kMostSegments + 1;
    for (const double overhead : {0.0, 1e3, 1e4, 1e5, 1e6}) {
        OptccQuestion asked = question(8, {"2"}, 1e8, overhead);
        asked.plan = OptccPlan::kUniform;
        const std::int64_t segments = choose_optcc(asked)->parameters.segments;
        EXPECT_LE(segments, before);
        before = segments;
    }
    EXPECT_LT(before, 8);
}

TEST(Choice, HalfSpeedAndLargeVectorsGetGrowingSegments) {
    const auto choice = choose_optcc(question(64, {"2"}, 1e9, 1e3));
    EXPECT_TRUE(choice->parameters.plan == OptccPlan::kLag || choice->parameters.plan == OptccPlan::kRamp)
        << to_string(choice->parameters.plan);
}

TEST(Choice, MildStragglersStayInTheRing) {
    // One at a third of its speed and three that lost 5 %: the ring at 1.05 costs less than three more stragglers.
    const auto choice = choose_optcc(question(16, {"3", "21/20", "21/20", "21/20"}, 1e9, 1e3));
    EXPECT_EQ(choice->parameters.stragglers, std::vector<Rank>{1});
    // Two at two thirds of their speed would slow the ring down too much.
    const auto two = choose_optcc(question(16, {"3/2", "3/2"}, 1e9, 1e3));
    EXPECT_EQ(two->parameters.stragglers, (std::vector<Rank>{1, 3}));
}

TEST(Choice, SeveralStragglersGetBalancedPlansUpToWhatTheyCover) {
    const auto mild = choose_optcc(question(16, {"4/3", "4/3"}, 1e9, 1e4));
    EXPECT_EQ(mild->parameters.plan, OptccPlan::kBalanced);
    EXPECT_FALSE(mild->parameters.late_first_link);
    const auto slow = choose_optcc(question(16, {"3", "3"}, 1e9, 1e4));
    EXPECT_EQ(slow->parameters.plan, OptccPlan::kUniform);
    EXPECT_TRUE(slow->parameters.late_first_link);
    OptccQuestion forced = question(16, {"3", "3"}, 1e9, 1e4);
    forced.late_first_link = false;
    EXPECT_FALSE(choose_optcc(forced)->parameters.late_first_link);
}

TEST(Choice, SeveralStragglersOfWhichOneHasHalfItsSpeedGetUnequalSegments) {
    for (const Rank ranks : {16, 32, 64}) {
        OptccQuestion asked = question(ranks, {"2", "8/7"}, 4.3e7, 500);
        asked.cluster.latency_ns = 3000;
        const auto chosen = choose_optcc(asked);
        ASSERT_TRUE(chosen.has_value());
        EXPECT_EQ(chosen->parameters.stragglers.size(), 2U);
        EXPECT_TRUE(chosen->parameters.plan == OptccPlan::kLag || chosen->parameters.plan == OptccPlan::kRamp)
            << to_string(chosen->parameters.plan);
        asked.plan = OptccPlan::kUniform;
        EXPECT_LE(chosen->predicted_ns, 0.99 * choose_optcc(asked)->predicted_ns) << ranks;
    }
}

TEST(Choice, TwoHealthyServersAreLeft) {
    OptccQuestion asked = question(4, {"3", "3", "3"}, 1e9, 1e3);
    EXPECT_LE(choose_optcc(asked)->parameters.stragglers.size(), 2U);
    asked.plan = OptccPlan::kStar;
    EXPECT_LE(choose_optcc(asked)->parameters.stragglers.size(), 2U);
    asked.plan = OptccPlan::kPatterns;
    EXPECT_EQ(choose_optcc(asked)->parameters.stragglers.size(), 1U);
    asked.segments = 6;
    EXPECT_FALSE(choose_optcc(asked).has_value());
}

} // namespace
} // namespace railbreak::collective
