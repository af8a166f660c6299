// The reports of suites, against golden files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/suite.hpp"
#include "reports/suite_json.hpp"
#include "reports/suite_table.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

/// An item of each fate, with names that no terminal should meet.
record::SuiteData suite() {
    record::SuiteData data;
    data.suite = {.suite_id = "20260131T123456Z-nightly-3f9c",
                  .name = "nightly",
                  .plan_hash = "5f2a8b50dd9b00da0f0a920b83f75fe0",
                  .seed = 18'446'744'073'709'551'615ULL,
                  .backend = "lab",
                  .cluster = "lab on node7 <\x1b[31m>",
                  .version = "0.1.0 abc",
                  .command_line = "railbreak run nightly.yaml",
                  .environment_json = R"({"cpus":2})",
                  .started_realtime_ns = 1'769'862'896'000'000'000,
                  .finished_realtime_ns = 0};
    const auto add = [&](const std::string& name, const std::string& state, std::int32_t attempts,
                         const std::string& verdict, const std::string& reason, bool has_run = true) {
        const auto index = static_cast<std::int32_t>(data.items.size());
        data.items.push_back({.suite = 1,
                              .item = index,
                              .name = name,
                              .scenario_name = "half",
                              .params_json = index == 0 ? R"({"host":"0"})" : "not json",
                              .plan_hash = "77",
                              .state = state,
                              .run = has_run ? index + 1 : 0,
                              .attempts = attempts,
                              .reason = has_run ? "" : reason});
        data.run_ids.push_back(has_run ? "20260131T123456Z-half-" + std::to_string(index) : "");
        data.verdicts.push_back(verdict);
        data.reasons.push_back(reason);
    };
    add("half[host=0]", "done", 1, "pass", "all 5 checks passed");
    add("half[host=1]", "done", 2, "fail", "expectation of ring/degraded: above the maximum");
    add("half[host=<script>\n\x1b[2J\"]", "done", 1, "inconclusive", "\x1b]0;evil\x07 \"quoted\" \xff");
    add("half[host=3]", "done", 0, "", "refused by the site policy", false);
    add("half[host=4]", "done", 1, "", "", false);
    add("half[host=5]", "running", 1, "", "");
    add("half[host=6]", "waiting", 0, "", "", false);
    add("half[host=7]", "skipped", 0, "", "half[host=1] did not pass", false);
    return data;
}

TEST(SuiteReport, IsThatOfTheGoldenFiles) {
    expect_golden("suite.txt", suite_table(suite()));
    expect_golden("suite.json", suite_json(suite()));
    EXPECT_EQ(suite_json(suite()), suite_json(suite()));
}

TEST(SuiteReport, TellsTheWorstOfTheItems) {
    record::SuiteData data = suite();
    const auto verdict = [&] {
        const analyse::SuiteOutcome outcome = analyse::judge_suite(data);
        return std::pair(std::string(to_string(outcome.verdict)), static_cast<int>(exit_code_of(outcome)));
    };
    EXPECT_EQ(verdict(), std::pair(std::string("fail"), 1)) << "a proven failure stands, whatever is left";
    data.verdicts[1] = "invalid";
    EXPECT_EQ(verdict(), std::pair(std::string("invalid"), 2));
    data.verdicts[2] = "fail";
    EXPECT_EQ(verdict(), std::pair(std::string("invalid"), 1));
    data.verdicts[1] = data.verdicts[2] = "pass";
    EXPECT_EQ(verdict(), std::pair(std::string("aborted"), 4)) << "two items have not run";
    data.items[5].state = data.items[6].state = "skipped";
    EXPECT_EQ(verdict(), std::pair(std::string("refused"), 3));
    data.items[3].state = "skipped";
    EXPECT_EQ(verdict(), std::pair(std::string("inconclusive"), 2)) << "the run of one item was deleted";
    data.verdicts[4] = "pass";
    EXPECT_EQ(verdict(), std::pair(std::string("pass"), 0));
    data.items[0].reason = "teardown not verified: h1";
    EXPECT_EQ(verdict(), std::pair(std::string("pass"), 5)) << "beside the verdict, never in its place";
}

} // namespace
} // namespace railbreak::reports
