// OptCC with several stragglers, at any place and of any mix of slowdowns: exact times, proofs, executions.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/verify.hpp"
#include "tests/unit/collective/list_schedule.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

using Slowdowns = std::vector<Rational>;

std::int64_t whole(const boost::multiprecision::cpp_int& value) {
    return static_cast<std::int64_t>(value);
}

/// Stragglers spread over the ranks, the slowest not the first of them.
std::vector<Rank> spread(Rank ranks, std::size_t count) {
    std::vector<Rank> places;
    for (std::size_t a = 0; a < count; ++a) {
        places.push_back((ranks / 2 + static_cast<Rank>(a) * (ranks / 2 + 1)) % ranks);
        while (std::count(places.begin(), places.end(), places.back()) > 1) {
            places.back() = (places.back() + 1) % ranks;
        }
    }
    return places;
}

/// T/n with all parts a whole number of elements and `slowdowns` for the stragglers in the order of the parameters.
Rational time_over_n(const Schedule& schedule, const std::vector<Rank>& stragglers, const Slowdowns& slowdowns) {
    Topology topology = healthy_topology(schedule.ranks());
    for (std::size_t a = 0; a < stragglers.size(); ++a) {
        topology.servers[static_cast<std::size_t>(stragglers[a])] = {.send = slowdowns[a], .receive = slowdowns[a]};
    }
    const Result<Rational> time = simulate_exact(schedule, topology);
    EXPECT_TRUE(time) << (time ? "" : time.error().to_line());
    return time ? Rational(*time / schedule.elements()) : Rational(-1);
}

OptccParameters parameters(Rank ranks, std::size_t stragglers, OptccPlan plan, std::int64_t segments) {
    return {.servers = ranks,
            .stragglers = spread(ranks, stragglers),
            .elements = (ranks - static_cast<Rank>(stragglers)) * segments * (segments + 1),
            .plan = plan,
            .segments = segments};
}

Rational plan_time(const OptccParameters& wanted, const Slowdowns& slowdowns) {
    return time_over_n(*make_optcc(wanted), wanted.stragglers, slowdowns);
}

Rational sum(const Slowdowns& values) {
    return std::accumulate(values.begin(), values.end(), Rational(0));
}

Slowdowns slowdowns(const std::vector<const char*>& texts) {
    Slowdowns list;
    for (const char* text : texts) {
        list.push_back(*parse_rational(text));
    }
    return list;
}

TEST(Stragglers, TimesMatchTheVectors) {
    struct Row {
        Rank ranks;
        std::vector<const char*> slowdowns;
        OptccPlan plan;
        const char* time;
    };
    const std::vector<Row> rows = {
        {7, {"2", "2"}, OptccPlan::kUniform, "3"},
        {7, {"2", "2"}, OptccPlan::kBalanced, "71/25"},
        {7, {"3/2", "8/7"}, OptccPlan::kUniform, "689/280"},
        {7, {"3/2", "8/7"}, OptccPlan::kBalanced, "633/280"},
        {8, {"2", "4/3", "8/7"}, OptccPlan::kUniform, "131/42"},
        {8, {"2", "4/3", "8/7"}, OptccPlan::kBalanced, "3107/1050"},
    };
    for (const Row& row : rows) {
        const OptccParameters wanted = parameters(row.ranks, row.slowdowns.size(), row.plan, 4);
        EXPECT_EQ(plan_time(wanted, slowdowns(row.slowdowns)), *parse_rational(row.time)) << to_string(row.plan);
    }
}

TEST(Stragglers, UniformTimesMatchTheClosedForm) {
    // All slowdowns at most 2: [(k-1)(2(h-1) + sum l) + 2(h l_1 + l_2 + .. + l_m)] / (k h).
    for (const Rank ranks : {5, 8, 13}) {
        for (const auto& texts : std::vector<std::vector<const char*>>{
                 {"2", "8/7"}, {"4/3", "4/3"}, {"8/5", "3/2", "1"}, {"2", "2", "2"}}) {
            const Slowdowns ells = slowdowns(texts);
            const Rational h = ranks - static_cast<Rank>(ells.size());
            if (h < 2) {
                continue;
            }
            for (const std::int64_t k : {1, 2, 5}) {
                const Rational ends = h * ells[0] + sum(ells) - ells[0];
                const Rational expected = ((k - 1) * (2 * (h - 1) + sum(ells)) + 2 * ends) / (k * h);
                EXPECT_EQ(plan_time(parameters(ranks, ells.size(), OptccPlan::kUniform, k), ells), expected)
                    << "p=" << ranks << " m=" << ells.size() << " k=" << k;
            }
        }
    }
}

TEST(Stragglers, BalancedTimesMatchTheClosedForm) {
    // While l_1 <= 2k/(k+1): [2(h-1) + (1+1/k) sum l] / h.
    for (const Rank ranks : {5, 8, 13}) {
        for (const auto& texts :
             std::vector<std::vector<const char*>>{{"8/7", "8/7"}, {"4/3", "8/7"}, {"4/3", "8/7", "1"}}) {
            const Slowdowns ells = slowdowns(texts);
            const Rational h = ranks - static_cast<Rank>(ells.size());
            for (const std::int64_t k : {2, 3, 6}) {
                const Rational expected = (2 * (h - 1) + (1 + Rational(1, k)) * sum(ells)) / h;
                EXPECT_EQ(plan_time(parameters(ranks, ells.size(), OptccPlan::kBalanced, k), ells), expected)
                    << "p=" << ranks << " m=" << ells.size() << " k=" << k;
            }
        }
    }
}

TEST(Stragglers, EverySegmentMoreCostsThePeriodWithALateFirstLink) {
    // h >= 3 and any mix of slowdowns: max{h l_1, 2(h-1) + sum l} sections.
    for (const Rank ranks : {6, 8, 11}) {
        for (const auto& texts : std::vector<std::vector<const char*>>{
                 {"3", "8/7"}, {"4", "2"}, {"3", "3"}, {"4", "8/7", "8/7"}, {"5/2", "2", "8/7"}, {"3", "3", "3"}}) {
            const Slowdowns ells = slowdowns(texts);
            const Rank h = ranks - static_cast<Rank>(ells.size());
            const auto sections = [&](std::int64_t k) -> Rational {
                OptccParameters wanted = parameters(ranks, ells.size(), OptccPlan::kUniform, k);
                wanted.late_first_link = true;
                return plan_time(wanted, ells) * h * k;
            };
            EXPECT_EQ((sections(20) - sections(14)) / 6,
                      std::max(Rational(h * ells[0]), Rational(2 * (h - 1) + sum(ells))))
                << "p=" << ranks << " m=" << ells.size() << " l1=" << texts[0];
        }
    }
}

TEST(Stragglers, ALateFirstLinkSavesTimeWhenPhasesOverlap) {
    OptccParameters wanted = parameters(6, 2, OptccPlan::kUniform, 16);
    const Slowdowns ells = slowdowns({"3", "3"});
    EXPECT_EQ(plan_time(wanted, ells), Rational(231, 64));
    wanted.late_first_link = true;
    EXPECT_EQ(plan_time(wanted, ells), Rational(105, 32));
}

TEST(Stragglers, UnequalSegmentsSaveAThirdOrMoreOfWhatEqualOnesLose) {
    // What remains above the limit of many segments, with 15 of them: head and tail of one small segment, and what the
    // milder straggler, a phase late, adds.
    for (const Rank ranks : {16, 32}) {
        for (const auto& texts :
             std::vector<std::vector<const char*>>{{"2", "8/7"}, {"2", "4/3"}, {"2", "8/7", "8/7"}}) {
            const Slowdowns ells = slowdowns(texts);
            const Rational limit = bounds::queues_limit(ranks, ells);
            OptccParameters wanted = parameters(ranks, ells.size(), OptccPlan::kUniform, 15);
            const Rational equal = plan_time(wanted, ells);
            for (const OptccPlan plan : {OptccPlan::kLag, OptccPlan::kRamp}) {
                wanted.plan = plan;
                wanted.weights = plan == OptccPlan::kLag
                                     ? std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5, 4, 3, 2, 1}
                                     : std::vector<std::int64_t>{1, 2, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 4, 2, 1};
                wanted.elements = (ranks - static_cast<Rank>(ells.size())) *
                                  std::accumulate(wanted.weights.begin(), wanted.weights.end(), std::int64_t{0});
                const Rational time = plan_time(wanted, ells);
                EXPECT_GE(time, limit) << to_string(plan) << " p=" << ranks;
                EXPECT_LE(3 * (time - limit), 2 * (equal - limit)) << to_string(plan) << " p=" << ranks;
            }
        }
    }
}

TEST(Stragglers, StarsLieBetweenTheBoundAndTheirWindows) {
    for (const auto& texts : std::vector<std::vector<const char*>>{
             {"8/7", "8/7"}, {"3/2", "8/7"}, {"2", "2"}, {"2", "4/3", "8/7"}, {"4/3", "4/3", "4/3", "4/3"}}) {
        const Slowdowns ells = slowdowns(texts);
        const auto m = static_cast<Rank>(ells.size());
        for (const Rank ranks : {7, 8, 12}) {
            const Rank h = ranks - m;
            if (h < m) {
                continue;
            }
            const std::int64_t k = 8;
            const std::int64_t section = 840; // a multiple of every numerator
            std::vector<std::int64_t> chunks;
            std::int64_t elements = k * h * section;
            for (const Rational& ell : ells) {
                chunks.push_back(whole(numerator(Rational(k * section * (2 - ell) / ell))));
                elements += chunks.back();
            }
            ASSERT_EQ(star_shares(ranks, elements, ells), chunks);
            const OptccParameters wanted{.servers = ranks,
                                         .stragglers = spread(ranks, ells.size()),
                                         .elements = elements,
                                         .plan = OptccPlan::kStar,
                                         .segments = k,
                                         .star_elements = chunks};
            const Rational time = plan_time(wanted, ells);
            EXPECT_LE(time, Rational(2 * (k + 1) * (ranks - 1) * section) / elements) << "p=" << ranks << " m=" << m;
            EXPECT_GE(time, bounds::theorem2(ranks, ells));
            EXPECT_GE(time, bounds::port_sum(ranks, ells));
        }
    }
}

/// Plans of a kind for the grid: with stars where there is room for them.
std::vector<OptccParameters> variants(Rank ranks, std::size_t stragglers, std::int64_t elements,
                                      std::int64_t segments) {
    std::vector<OptccParameters> list;
    for (const bool shared : {false, true}) {
        OptccParameters wanted = parameters(ranks, stragglers, OptccPlan::kUniform, segments);
        wanted.elements = elements;
        wanted.shared = shared;
        list.push_back(wanted);
        wanted.late_first_link = true;
        list.push_back(wanted);
        wanted.late_first_link = false;
        wanted.plan = OptccPlan::kBalanced;
        list.push_back(wanted);
        if (2 * stragglers <= static_cast<std::size_t>(ranks)) {
            wanted.plan = OptccPlan::kStar;
            for (std::size_t a = 0; a < stragglers; ++a) {
                wanted.star_elements.push_back(elements / (8 + static_cast<std::int64_t>(a)));
            }
            list.push_back(wanted);
            wanted.star_elements.back() = 0;
            list.push_back(wanted);
            wanted.star_elements.clear();
        }
        for (const OptccPlan plan : {OptccPlan::kLag, OptccPlan::kRamp}) {
            wanted.plan = plan;
            wanted.weights = {};
            for (std::int64_t b = 0; b < segments; ++b) {
                wanted.weights.push_back(1 + 2 * std::min(b, segments - 1 - b));
            }
            list.push_back(wanted);
        }
    }
    return list;
}

TEST(Stragglers, EveryPlanIsProven) {
    for (const Rank ranks : {4, 5, 6, 7, 9, 12}) {
        for (std::size_t m = 1; m <= 4 && static_cast<Rank>(m) + 2 <= ranks; ++m) {
            for (const std::int64_t k : {1, 2, 3, 8}) {
                for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{ranks} + 2, std::int64_t{2003}}) {
                    for (const OptccParameters& wanted : variants(ranks, m, elements, k)) {
                        const auto schedule = make_optcc(wanted);
                        for (const Violation& violation : verify(*schedule, 2)) {
                            ADD_FAILURE() << schedule->name() << " p=" << ranks << " n=" << elements << ": "
                                          << to_string(violation);
                        }
                    }
                }
            }
        }
    }
}

TEST(Stragglers, TwoHealthyRanksAreEnoughForAnyNumber) {
    for (const std::size_t m : {5U, 7U, 10U}) {
        for (const OptccParameters& wanted : variants(static_cast<Rank>(m) + 2, m, 1009, 3)) {
            const auto schedule = make_optcc(wanted);
            EXPECT_TRUE(verify(*schedule, 1).empty()) << schedule->name();
        }
    }
}

TEST(Stragglers, EveryPlanGivesTheSumInAnyOrderOfEvents) {
    for (const std::size_t m : {2U, 3U}) {
        for (const std::int64_t elements : {5, 97}) {
            for (const OptccParameters& wanted : variants(7, m, elements, 3)) {
                const auto schedule = make_optcc(wanted);
                EXPECT_EQ(test::wrong_runs(*schedule, 2), 0) << schedule->name() << " n=" << elements;
            }
        }
    }
}

TEST(Stragglers, StandInTheName) {
    OptccParameters wanted = parameters(8, 1, OptccPlan::kBalanced, 4);
    wanted.stragglers = {3};
    EXPECT_EQ(make_optcc(wanted)->name(), "optcc-bs(k=4,straggler=3)");
    wanted.stragglers = {7, 3};
    EXPECT_EQ(make_optcc(wanted)->name(), "optcc-bs(k=4,stragglers=7,3)");
}

} // namespace
} // namespace railbreak::collective
