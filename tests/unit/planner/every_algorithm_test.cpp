// Whatever the registry can plan can be written out, read back and turned into a correct program.
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "collective/planner.hpp"
#include "collective/verify.hpp"
#include "harness/planner/msccl_xml.hpp"
#include "harness/planner/schedule_json.hpp"
#include "tests/unit/planner/msccl_checker.hpp"

namespace railbreak::planner::test {

namespace {

collective::PlanRequest request(const collective::Topology& topology) {
    return {.topology = topology,
            .elements = 1680, // divides by most small numbers
            .healthy_goodput = BitRate::bits_per_s(1'000'000'000),
            .flow_overhead = std::chrono::microseconds(20)}; // so that plans have few flows
}

std::vector<collective::PlanRequest> requests() {
    std::vector<collective::PlanRequest> list;
    for (const Rational& slowdown : {Rational(1), Rational(5, 4), Rational(2)}) {
        list.push_back(request(collective::one_straggler(5, 2, slowdown)));
        collective::Topology servers = collective::one_straggler(4, 1, slowdown);
        servers.ranks_per_server = servers.nics_per_server = 2;
        servers.local_ratio = 4;
        list.push_back(request(servers));
    }
    list.push_back(request(collective::stragglers_first(6, {Rational(2), Rational(3, 2)})));
    list.push_back(request(collective::healthy_topology(8)));
    return list;
}

} // namespace

TEST(EveryAlgorithm, ComesBackFromJsonAndIsACorrectProgram) {
    std::set<std::string> planned;
    for (const collective::PlanRequest& request : requests()) {
        for (const collective::Algorithm* algorithm : collective::plannable_algorithms()) {
            const Result<collective::Plan> plan = algorithm->plan(request);
            if (!plan || !planned.insert(plan->schedule->name()).second) {
                continue;
            }
            SCOPED_TRACE(plan->schedule->name());
            std::ostringstream program;
            const Result<MscclSummary> summary = write_msccl_xml(*plan->schedule, program);
            ASSERT_TRUE(summary) << summary.error().to_line();
            EXPECT_EQ(what_is_wrong_with_program(program.str()), "");

            std::stringstream json;
            ASSERT_TRUE(write_schedule_json(*plan->schedule, json));
            const auto back = read_schedule_json(json);
            ASSERT_TRUE(back) << back.error().to_line();
            EXPECT_TRUE(collective::verify(**back).empty());
        }
    }
    EXPECT_GE(planned.size(), 10U);
}

} // namespace railbreak::planner::test
