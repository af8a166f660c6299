// Plans carried out on real numbers in random order.
#include <cstdint>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "tests/unit/collective/list_schedule.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

using test::wrong_runs;

void drop_waits(test::ListSchedule& list) {
    for (Rank rank = 0; rank < list.ranks(); ++rank) {
        for (Lane lane = 0; lane < list.lanes(); ++lane) {
            for (Step& step : list.sends(rank, lane)) {
                step.after = {};
            }
        }
    }
}

std::vector<std::int64_t> star_of(OptccPlan plan, std::int64_t elements) {
    return plan == OptccPlan::kStar ? std::vector<std::int64_t>{elements} : std::vector<std::int64_t>{};
}

class AnyTiming : public testing::TestWithParam<std::tuple<OptccPlan, bool, int>> {};

TEST_P(AnyTiming, GivesTheSum) {
    const auto [plan, shared, elements] = GetParam();
    const auto schedule = make_optcc({.servers = 5,
                                      .stragglers = {3},
                                      .elements = elements,
                                      .plan = plan,
                                      .segments = 3,
                                      .star_elements = star_of(plan, elements / 6),
                                      .shared = shared});
    EXPECT_EQ(wrong_runs(*schedule), 0) << schedule->name();
    if (elements > 50) {
        test::ListSchedule list(*schedule);
        drop_waits(list);
        EXPECT_EQ(wrong_runs(list), 12) << "this test cannot see a race";
    }
}

INSTANTIATE_TEST_SUITE_P(Plans, AnyTiming,
                         testing::Combine(testing::Values(OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar),
                                          testing::Bool(), testing::Values(3, 11, 97)));

TEST(AnyTimingRing, GivesTheSum) {
    for (const Rank ranks : {2, 3, 6}) {
        EXPECT_EQ(wrong_runs(*make_ring(ranks, 31)), 0);
    }
}

} // namespace
} // namespace railbreak::collective
