// Simulated times equal the closed forms exactly.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/bounds.hpp"
#include "collective/simulate/simulate.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {
namespace {

std::int64_t whole(const boost::multiprecision::cpp_int& value) {
    return static_cast<std::int64_t>(value);
}

/// T/n with one straggler.
Rational time_over_n(const Schedule& schedule, Rank straggler, const Rational& slowdown) {
    const Result<Rational> time = simulate_exact(schedule, one_straggler(schedule.ranks(), straggler, slowdown));
    EXPECT_TRUE(time) << (time ? "" : time.error().to_line());
    return time ? Rational(*time / schedule.elements()) : Rational(-1);
}

OptccParameters parameters(Rank ranks, OptccPlan plan, std::int64_t segments) {
    // Every slice and every segment of a section gets a whole number of elements.
    return {.servers = ranks,
            .stragglers = {ranks / 2},
            .elements = (ranks - 1) * segments * (segments + 1),
            .plan = plan,
            .segments = segments};
}

Rational uniform_time(Rank ranks, const Rational& ell, std::int64_t k) {
    const Rational h = ranks - 1;
    if (ell >= 2) {
        return ell * (k + 1) / k;
    }
    return ((k - 1) * (2 * (h - 1) + ell) + 2 * h * ell) / (k * h);
}

Rational balanced_time(Rank ranks, const Rational& ell, std::int64_t k) {
    const Rational h = ranks - 1;
    if (ell * (k + 1) > 2 * k) {
        return ell * (k + 1) / k;
    }
    return (2 * (h - 1) + (1 + Rational(1, k)) * ell) / h;
}

struct TimeVector {
    Rank ranks;
    const char* slowdown;
    std::int64_t segments;
    OptccPlan plan;
    const char* time;
};

TEST(SimulateExact, MatchesTheVectors) {
    const std::vector<TimeVector> vectors = {
        {3, "2", 1, OptccPlan::kUniform, "4"},        {3, "2", 1, OptccPlan::kBalanced, "4"},
        {3, "2", 4, OptccPlan::kUniform, "5/2"},      {3, "2", 4, OptccPlan::kBalanced, "5/2"},
        {4, "8/7", 1, OptccPlan::kUniform, "16/7"},   {4, "8/7", 1, OptccPlan::kBalanced, "16/7"},
        {4, "8/7", 4, OptccPlan::kUniform, "13/7"},   {4, "8/7", 4, OptccPlan::kBalanced, "38/21"},
        {5, "2", 1, OptccPlan::kUniform, "4"},        {5, "2", 1, OptccPlan::kBalanced, "4"},
        {5, "2", 4, OptccPlan::kUniform, "5/2"},      {5, "2", 4, OptccPlan::kBalanced, "5/2"},
        {5, "3/2", 1, OptccPlan::kUniform, "3"},      {5, "3/2", 1, OptccPlan::kBalanced, "3"},
        {5, "3/2", 4, OptccPlan::kUniform, "69/32"},  {5, "3/2", 4, OptccPlan::kBalanced, "63/32"},
        {8, "8/7", 1, OptccPlan::kUniform, "16/7"},   {8, "8/7", 1, OptccPlan::kBalanced, "16/7"},
        {8, "8/7", 4, OptccPlan::kUniform, "97/49"},  {8, "8/7", 4, OptccPlan::kBalanced, "94/49"},
        {8, "3", 1, OptccPlan::kUniform, "6"},        {8, "3", 1, OptccPlan::kBalanced, "6"},
        {8, "3", 4, OptccPlan::kUniform, "15/4"},     {8, "3", 4, OptccPlan::kBalanced, "15/4"},
        {16, "4/3", 1, OptccPlan::kUniform, "8/3"},   {16, "4/3", 1, OptccPlan::kBalanced, "8/3"},
        {16, "4/3", 4, OptccPlan::kUniform, "32/15"}, {16, "4/3", 4, OptccPlan::kBalanced, "89/45"},
    };
    for (const TimeVector& row : vectors) {
        const auto schedule = make_optcc(parameters(row.ranks, row.plan, row.segments));
        EXPECT_EQ(time_over_n(*schedule, row.ranks / 2, *parse_rational(row.slowdown)), *parse_rational(row.time))
            << schedule->name() << " p=" << row.ranks << " l=" << row.slowdown;
    }
}

TEST(SimulateExact, MatchesTheClosedFormsOnAGrid) {
    for (const Rank ranks : {3, 4, 5, 6, 9, 16}) {
        for (const char* text : {"1", "8/7", "4/3", "3/2", "8/5", "2", "3", "4"}) {
            const Rational ell = *parse_rational(text);
            for (const std::int64_t k : {1, 2, 3, 4, 8}) {
                const auto uniform = make_optcc(parameters(ranks, OptccPlan::kUniform, k));
                const auto balanced = make_optcc(parameters(ranks, OptccPlan::kBalanced, k));
                EXPECT_EQ(time_over_n(*uniform, ranks / 2, ell), uniform_time(ranks, ell, k))
                    << uniform->name() << " p=" << ranks << " l=" << text;
                EXPECT_EQ(time_over_n(*balanced, ranks / 2, ell), balanced_time(ranks, ell, k))
                    << balanced->name() << " p=" << ranks << " l=" << text;
            }
        }
    }
}

TEST(SimulateExact, RingIsAsSlowAsItsSlowestPort) {
    for (const Rank ranks : {2, 3, 5, 8}) {
        const auto ring = make_ring(ranks, std::int64_t{10} * ranks);
        EXPECT_EQ(time_over_n(*ring, 0, {8, 7}), bounds::degraded_ring<Rational>(ranks, {8, 7}));
        EXPECT_EQ(time_over_n(*ring, ranks - 1, 3), bounds::degraded_ring<Rational>(ranks, 3));
    }
}

TEST(SimulateExact, StarLiesBetweenTheBoundAndItsWindows) {
    for (const Rank ranks : {3, 5, 8, 16}) {
        for (const char* text : {"1", "8/7", "4/3", "3/2"}) {
            const Rational ell = *parse_rational(text);
            for (const std::int64_t k : {1, 4, 16}) {
                // A section of numerator(l) elements leaves room for a chunk of 2 denominator(l) - numerator(l).
                const std::int64_t section = whole(numerator(ell));
                const std::int64_t chunk = 2 * whole(denominator(ell)) - section;
                const std::int64_t elements = k * ((ranks - 1) * section + chunk);
                ASSERT_EQ(star_shares(ranks, elements, {ell}), std::vector<std::int64_t>{k * chunk});
                const auto star = make_optcc({.servers = ranks,
                                              .stragglers = {1},
                                              .elements = elements,
                                              .plan = OptccPlan::kStar,
                                              .segments = k,
                                              .star_elements = {k * chunk}});
                const Rational windows = Rational(2 * (k + 1) * (ranks - 1) * section) / elements;
                const Rational time = time_over_n(*star, 1, ell);
                EXPECT_GE(time, bounds::theorem6(ranks, ell));
                EXPECT_LE(time, windows) << star->name() << " p=" << ranks << " l=" << text;
                if (k == 16) {
                    EXPECT_LT(time, bounds::theorem6(ranks, ell) * Rational(17, 16));
                }
            }
        }
    }
}

} // namespace
} // namespace railbreak::collective
