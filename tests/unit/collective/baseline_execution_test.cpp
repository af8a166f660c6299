// The baselines carried out on numbers, element by element, in random order.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/collective/baseline_support.hpp"
#include "tests/unit/collective/list_schedule.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

using namespace test;

struct Case {
    const char* algorithm;
    Rank servers;
    Rank ranks_per_server;
    std::int32_t nics;
    std::vector<std::pair<std::string, std::string>> options;
    std::int32_t dead_nic = -1; ///< of server 1; otherwise server 1 has slowdown 3/2
};

class AnyTimingBaseline : public testing::TestWithParam<Case> {};

Plan plan_for(const Case& wanted, std::int64_t elements) {
    Topology topology = healthy_topology(wanted.servers);
    topology.ranks_per_server = wanted.ranks_per_server;
    topology.nics_per_server = wanted.nics;
    PortSlowdown& slow = topology.servers[1];
    if (wanted.dead_nic >= 0) {
        slow.failed_nics = std::uint64_t{1} << wanted.dead_nic;
    }
    slow.send = slow.receive = wanted.dead_nic >= 0 ? Rational(wanted.nics, wanted.nics - 1) : ratio("3/2");
    PlanRequest request = request_for(std::move(topology), elements, wanted.options);
    request.flow_overhead = std::chrono::microseconds(8); // few pieces and chunks
    Result<Plan> plan = plan_of(wanted.algorithm, request);
    EXPECT_TRUE(plan.has_value()) << (plan ? "" : plan.error().to_line());
    return plan ? std::move(*plan) : Plan{};
}

TEST_P(AnyTimingBaseline, GivesTheSum) {
    for (const std::int64_t elements : {3, 50, 96}) {
        const Plan plan = plan_for(GetParam(), elements);
        ASSERT_NE(plan.schedule, nullptr);
        EXPECT_EQ(wrong_runs(*plan.schedule, 6), 0) << plan.schedule->name();
    }
}

TEST_P(AnyTimingBaseline, NeedsItsWaits) {
    const Plan plan = plan_for(GetParam(), 96);
    ASSERT_NE(plan.schedule, nullptr);
    ListSchedule list(*plan.schedule);
    for (Rank rank = 0; rank < list.ranks(); ++rank) {
        for (Lane lane = 0; lane < list.lanes(); ++lane) {
            for (Step& step : list.sends(rank, lane)) {
                step.after = {};
            }
        }
    }
    EXPECT_EQ(wrong_runs(list, 6), 6) << "this test cannot see a race";
}

INSTANTIATE_TEST_SUITE_P(Plans, AnyTimingBaseline,
                         testing::Values(Case{"ring", 5, 1, 2, {{"channels", "3"}}}, Case{"ring", 3, 2, 2, {}},
                                         Case{"ring", 2, 3, 3, {}}, Case{"iccl", 3, 2, 2, {}, 1},
                                         Case{"r2ccl-balance", 2, 3, 3, {}, 2}, Case{"r2ccl", 5, 1, 1, {}},
                                         Case{"r2ccl", 3, 1, 1, {{"k", "1"}}}, Case{"stragglar", 4, 1, 1, {}},
                                         Case{"stragglar", 7, 1, 1, {}}, Case{"halving-doubling", 6, 1, 1, {}},
                                         Case{"tree", 6, 1, 1, {{"chunks", "3"}}},
                                         Case{"tree", 7, 1, 1, {{"chunks", "2"}}}, Case{"hierarchical", 3, 3, 3, {}}),
                         [](const auto& info) {
                             std::string name = info.param.algorithm;
                             std::erase(name, '-');
                             return name + "_" + std::to_string(info.index);
                         });

} // namespace
} // namespace railbreak::collective
