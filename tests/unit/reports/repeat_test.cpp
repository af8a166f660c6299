#include "reports/repeat.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;

/// Three runs whose times are 1, 2 and 4 times those of the fixture; the last one failed.
std::vector<record::RunData> three_runs() {
    std::vector<record::RunData> runs;
    for (const int factor : {1, 2, 4}) {
        record::RunData run = record::fixture_run();
        run.run.run_id += "-" + std::to_string(factor);
        for (record::IterationRow& row : run.iterations) {
            row.duration_ns *= factor;
        }
        run.verdicts = {{.scope = "run", .verdict = factor == 4 ? "fail" : "pass", .reason = "reason of it"}};
        runs.push_back(std::move(run));
    }
    return runs;
}

TEST(Repeat, CountsVerdictsAndNamesEveryRun) {
    const std::string text = repeat_table(three_runs());
    EXPECT_THAT(text, HasSubstr("\n3 runs: 1 fail 2 pass\n"));
    EXPECT_THAT(text, HasSubstr("-4  fail: reason of it\n"));
    EXPECT_EQ(repeat_table(three_runs()), text) << "the same runs give the same bytes";
}

TEST(Repeat, SpreadsTheMediansOfTheRunsAndLeavesOutWarmUp) {
    const nlohmann::json json = nlohmann::json::parse(repeat_json(three_runs()));
    bool seen = false;
    for (const nlohmann::json& phase : json.at("phases")) {
        EXPECT_NE(phase.at("phase"), "warmup");
        if (phase.at("algorithm") == "ring" && phase.at("phase") == "steady") {
            seen = true;
            const double min = phase.at("time_median_ns").at("min");
            EXPECT_NEAR(phase.at("time_median_ns").at("median").get<double>() / min, 2.0, 1e-9);
            EXPECT_NEAR(phase.at("time_median_ns").at("max").get<double>() / min, 4.0, 1e-9);
            EXPECT_NEAR(phase.at("vs_healthy").at("max").get<double>(), 1.0, 1e-12);
        }
    }
    EXPECT_TRUE(seen);
}

TEST(Repeat, ARunWithoutVerdictAndNoRunsAreNoCrash) {
    std::vector<record::RunData> runs(1);
    EXPECT_THAT(repeat_table(runs), HasSubstr("1 runs: 1 none\n"));
    EXPECT_THAT(repeat_table({}), HasSubstr("0 runs:"));
}

} // namespace
} // namespace railbreak::reports
