#include "reports/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The good run on a cluster of half the speed: all times and all bounds are twice as long.
record::RunData half_speed() {
    record::RunData run = good_run();
    run.run.run_id = "half-speed";
    for (record::IterationRow& row : run.iterations) {
        row.duration_ns *= 2;
    }
    for (record::BoundRow& row : run.bounds) {
        row.time_ns *= 2;
    }
    return run;
}

TEST(Compare, TimesDoubleButOverheadsStayOnAClusterOfHalfTheSpeed) {
    const nlohmann::json json = nlohmann::json::parse(compare_json(good_run(), half_speed()));
    int with_bound = 0;
    for (const nlohmann::json& phase : json.at("phases")) {
        EXPECT_NE(phase.at("phase"), "warmup");
        EXPECT_NE(phase.at("phase"), "comparison");
        if (!phase.at("time_ratio").is_null()) {
            EXPECT_NEAR(phase.at("time_ratio").get<double>(), 2.0, 1e-9) << phase;
        }
        if (!phase.at("overhead_ratio").is_null()) {
            ++with_bound;
            EXPECT_NEAR(phase.at("overhead_ratio").get<double>(), 1.0, 1e-6) << phase;
        }
    }
    EXPECT_GT(with_bound, 0);
}

TEST(Compare, SaysWhatOnlyOneRunHasAndWhatDiffers) {
    record::RunData other = good_run();
    std::erase_if(other.iterations, [](const auto& row) { return row.algorithm == "optcc" && row.phase == "steady"; });
    for (record::IterationRow& row : other.iterations) {
        if (row.algorithm == "ring" && row.phase == "steady") {
            row.schedule = "ring(p=99)";
        }
    }
    other.run.plan_hash = "another";
    const std::string text = compare_table(good_run(), other);
    EXPECT_THAT(text, HasSubstr("only A has optcc steady\n"));
    EXPECT_THAT(text, HasSubstr("B ran ring(p=99)"));
    EXPECT_THAT(text, HasSubstr("THE PLANS DIFFER"));
    EXPECT_THAT(compare_table(good_run(), good_run()), Not(HasSubstr("only")));
}

TEST(Compare, RunsWithoutIterationsAreNoCrash) {
    EXPECT_THAT(compare_table(unfinished_run(), good_run()), HasSubstr("only B has ring steady\n"));
    EXPECT_THAT(compare_table(unfinished_run(), unfinished_run()), HasSubstr("A: "));
}

} // namespace
} // namespace railbreak::reports
