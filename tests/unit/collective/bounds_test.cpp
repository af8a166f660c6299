#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/bounds.hpp"
#include "collective/exact_bound.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective {
namespace {

struct BoundVector {
    Rank ranks;
    std::string slowdowns;
    std::string fault_free, ring, theorem1, theorem6, theorem2, port_sum, exact, windows, star, queues;
};

const std::vector<BoundVector>& vectors() {
    static const std::vector<BoundVector> list = {
#include "tests/unit/collective/bound_vectors.inc"
    };
    return list;
}

Rational number(const std::string& text) {
    return *parse_rational(text);
}

std::vector<Rational> numbers(const std::string& text) {
    std::istringstream in(text);
    std::vector<Rational> values;
    for (std::string word; in >> word;) {
        values.push_back(number(word));
    }
    return values;
}

/// What the best weights prove in the exclusive model, exactly; more than one server.
Rational exact_optimum(Rank ranks, const std::vector<Rational>& ells) {
    const Result<bounds::BestWeights> best =
        bounds::best_weights(PortModel::kExclusive, bounds::cluster_of(stragglers_first(ranks, ells)));
    EXPECT_TRUE(best.has_value() && best->optimal);
    return best ? best->time_over_n : Rational(0);
}

class BoundRow : public testing::TestWithParam<BoundVector> {};

TEST_P(BoundRow, IsExact) {
    const BoundVector& row = GetParam();
    const std::vector<Rational> ells = numbers(row.slowdowns);
    EXPECT_EQ(bounds::fault_free<Rational>(row.ranks), number(row.fault_free));
    EXPECT_EQ(bounds::degraded_ring(row.ranks, *std::max_element(ells.begin(), ells.end())), number(row.ring));
    EXPECT_EQ(bounds::theorem2(row.ranks, ells), number(row.theorem2));
    EXPECT_EQ(bounds::port_sum(row.ranks, ells), number(row.port_sum));
    EXPECT_EQ(exact_optimum(row.ranks, ells), number(row.exact));
    EXPECT_EQ(bounds::windows_limit(row.ranks, ells), number(row.windows));
    EXPECT_EQ(bounds::queues_limit(row.ranks, ells), number(row.queues));
    const std::optional<Rational> star = bounds::star_limit(row.ranks, ells);
    EXPECT_EQ(star.has_value(), !row.star.empty());
    if (star) {
        EXPECT_EQ(*star, number(row.star));
    }
    ASSERT_EQ(ells.size() == 1, !row.theorem6.empty());
    if (ells.size() == 1) {
        EXPECT_EQ(bounds::theorem1(row.ranks, ells[0]), number(row.theorem1));
        EXPECT_EQ(bounds::theorem6(row.ranks, ells[0]), number(row.theorem6));
    }
}

TEST_P(BoundRow, EveryBoundStaysBelowTheExactOptimum) {
    const BoundVector& row = GetParam();
    const std::vector<Rational> ells = numbers(row.slowdowns);
    const Rational exact = number(row.exact);
    EXPECT_LE(bounds::theorem2(row.ranks, ells), exact);
    EXPECT_LE(bounds::port_sum(row.ranks, ells), exact);
    EXPECT_LE(bounds::peers(row.ranks, ells), exact);
    std::vector<double> slowdowns(static_cast<std::size_t>(row.ranks), 1.0);
    for (std::size_t i = 0; i < ells.size(); ++i) {
        slowdowns[2 * i % slowdowns.size()] = to_double(ells[i]);
    }
    const Bound exclusive = lower_bound_exclusive(slowdowns, slowdowns);
    const Bound fluid = lower_bound_fluid(slowdowns, slowdowns);
    EXPECT_LE(exclusive.time_over_n, to_double(exact) * (1 + 1e-12)) << exclusive.name;
    EXPECT_LE(fluid.time_over_n, exclusive.time_over_n * (1 + 1e-12));
    EXPECT_DOUBLE_EQ(fluid.time_over_n, to_double(number(row.theorem2)));
    EXPECT_EQ(exclusive.model, "exclusive");
    EXPECT_EQ(fluid.model, "fluid");
    if (ells.size() == 1) {
        EXPECT_DOUBLE_EQ(exclusive.time_over_n, to_double(number(row.theorem6)));
    }
    EXPECT_NEAR(exclusive.time_over_n, to_double(exact), to_double(exact) * 1e-9) << exclusive.name;
}

INSTANTIATE_TEST_SUITE_P(Vectors, BoundRow, testing::ValuesIn(vectors()),
                         [](const testing::TestParamInfo<BoundVector>& info) { return std::to_string(info.index); });

TEST(Bounds, EqualStragglersMatchTheExactOptimum) {
    for (const Rank ranks : {4, 5, 7, 8, 12, 19}) {
        for (Rank m = 1; m <= std::min(4, ranks - 2); ++m) {
            for (const char* slowdown : {"1", "8/7", "4/3", "3/2", "8/5", "9/5", "2"}) {
                const Rational ell = number(slowdown);
                EXPECT_EQ(bounds::equal_stragglers(ranks, m, ell),
                          exact_optimum(ranks, std::vector<Rational>(static_cast<std::size_t>(m), ell)))
                    << ranks << " " << m << " " << slowdown;
            }
        }
    }
}

TEST(Bounds, ExactOptimumOfOneStragglerIsTheorem6) {
    for (const Rank ranks : {3, 4, 5, 8, 16}) {
        for (const char* slowdown : {"1", "8/7", "3/2", "2", "3"}) {
            EXPECT_EQ(exact_optimum(ranks, {number(slowdown)}), bounds::theorem6(ranks, number(slowdown)));
        }
    }
}

TEST(Bounds, TheoremsAreChoicesOfWeights) {
    const Rank ranks = 7;
    for (const char* text : {"8/7", "4/3", "3/2", "2"}) {
        const Rational ell = number(text);
        std::vector<Rational> slowdowns(static_cast<std::size_t>(ranks), Rational(1));
        slowdowns[3] = ell;
        std::vector<Rational> weights(slowdowns.size(), Rational(1));
        EXPECT_EQ(bounds::spanning_tree(PortModel::kExclusive, slowdowns, weights),
                  bounds::port_sum(ranks, std::vector<Rational>{ell}));
        weights[3] = 1 / ell;
        EXPECT_EQ(bounds::spanning_tree(PortModel::kFluid, slowdowns, weights),
                  Rational(2 * ell * (ranks - 1) / (ell * (ranks - 1) + 1)));
        weights[3] = 2 / ell - 1;
        EXPECT_EQ(bounds::spanning_tree(PortModel::kExclusive, slowdowns, weights),
                  Rational(2 * ell * (ranks - 1) / (ell * (ranks - 2) + 2)));
    }
}

TEST(Bounds, NoWeightsBeatTheFluidClosedForm) {
    const std::vector<Rational> slowdowns = {1, 1, {8, 7}, 1, {5, 2}, 1};
    const Rational best = bounds::theorem2(6, std::vector<Rational>{{8, 7}, {5, 2}});
    for (int a = 0; a <= 6; ++a) {
        for (int b = 0; b <= 6; ++b) {
            for (int c = 1; c <= 3; ++c) {
                const Rational healthy(c, 3);
                const std::vector<Rational> weights = {1, healthy, {a, 6}, 1, {b, 6}, healthy};
                EXPECT_LE(bounds::spanning_tree(PortModel::kFluid, slowdowns, weights), best);
            }
        }
    }
}

TEST(Bounds, AsymmetricStragglerLiesBetweenItsTwoDirections) {
    for (const Rank ranks : {3, 4, 8, 64}) {
        for (const char* a : {"1", "8/7", "3/2", "2", "3"}) {
            for (const char* b : {"1", "8/7", "3/2", "2", "3"}) {
                const Rational low = std::min(number(a), number(b));
                const Rational high = std::max(number(a), number(b));
                const Rational value = bounds::asymmetric_straggler(ranks, number(a), number(b));
                EXPECT_LE(bounds::theorem6(ranks, low), value);
                EXPECT_LE(value, bounds::theorem6(ranks, high));
                EXPECT_EQ(value, bounds::asymmetric_straggler(ranks, number(b), number(a)));
            }
        }
    }
}

TEST(LowerBound, HealthyClusterIsFaultFreeInBothModels) {
    const std::vector<double> healthy(8, 1.0);
    EXPECT_DOUBLE_EQ(lower_bound_exclusive(healthy, healthy).time_over_n, 1.75);
    EXPECT_DOUBLE_EQ(lower_bound_fluid(healthy, healthy).time_over_n, 1.75);
    EXPECT_EQ(lower_bound_exclusive(healthy, healthy).name, "fault-free");
    EXPECT_EQ(lower_bound_fluid(healthy, healthy).name, "fault-free");
}

TEST(LowerBound, NamesTheTheoremAndTheBranch) {
    std::vector<double> slowdowns(8, 1.0);
    slowdowns[5] = 1.5;
    const Bound mild = lower_bound_exclusive(slowdowns, slowdowns);
    EXPECT_EQ(mild.name, "theorem 6");
    EXPECT_EQ(mild.branch, "2l(p-1)/(l(p-2)+2)");
    EXPECT_DOUBLE_EQ(mild.time_over_n, 21.0 / 11.0);
    EXPECT_EQ(mild.proof, "OptCC paper, Theorem 6");
    EXPECT_EQ(lower_bound_fluid(slowdowns, slowdowns).name, "theorem 1");
    slowdowns[5] = 2.5;
    const Bound severe = lower_bound_exclusive(slowdowns, slowdowns);
    EXPECT_EQ(severe.name, "theorem 6");
    EXPECT_EQ(severe.branch, "l");
    EXPECT_DOUBLE_EQ(severe.time_over_n, 2.5);
}

TEST(LowerBound, OneDirectionCountsLessThanBoth) {
    const std::vector<double> healthy(8, 1.0);
    std::vector<double> slow = healthy;
    slow[2] = 1.5;
    const Bound one = lower_bound_exclusive(slow, healthy);
    EXPECT_DOUBLE_EQ(one.time_over_n, 14 / (6 + 1 + 1 / 1.5));
    EXPECT_EQ(one.name, "one straggler, send and receive differ");
    EXPECT_LT(one.time_over_n, lower_bound_exclusive(slow, slow).time_over_n);
    EXPECT_DOUBLE_EQ(lower_bound_exclusive(healthy, slow).time_over_n, one.time_over_n);
    // Fluid: all sends together take 14 vector times at the total rate of 7 + 2/3.
    EXPECT_DOUBLE_EQ(lower_bound_fluid(slow, healthy).time_over_n, 14 / (7 + 1 / 1.5));
    EXPECT_DOUBLE_EQ(lower_bound_fluid(healthy, slow).time_over_n, 14 / (7 + 1 / 1.5));
}

TEST(LowerBound, ScalesWithTheReference) {
    const std::vector<double> slow = {1, 1, 1, 1.5, 1};
    std::vector<double> doubled = slow;
    for (double& value : doubled) {
        value /= 2;
    }
    EXPECT_DOUBLE_EQ(lower_bound_exclusive(doubled, doubled).time_over_n,
                     lower_bound_exclusive(slow, slow).time_over_n / 2);
    EXPECT_DOUBLE_EQ(lower_bound_fluid(doubled, doubled).time_over_n, lower_bound_fluid(slow, slow).time_over_n / 2);
}

} // namespace
} // namespace railbreak::collective
