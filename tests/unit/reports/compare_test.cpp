#include "reports/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using record::RunData;
using ::testing::HasSubstr;
using ::testing::Not;

std::string table_of(const std::vector<RunData>& a, const std::vector<RunData>& b) {
    return compare_table(a, b, analyse::compare_sets(a, b));
}

nlohmann::json json_of(const std::vector<RunData>& a, const std::vector<RunData>& b) {
    return nlohmann::json::parse(compare_json(a, b, analyse::compare_sets(a, b)));
}

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
    const nlohmann::json json = json_of({good_run()}, {half_speed()});
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
    const std::string text = table_of({good_run()}, {other});
    EXPECT_THAT(text, HasSubstr("only A has optcc steady\n"));
    EXPECT_THAT(text, HasSubstr("B ran ring(p=99)"));
    EXPECT_THAT(text, HasSubstr("THE PLANS DIFFER"));
    EXPECT_THAT(table_of({good_run()}, {good_run()}), Not(HasSubstr("only")));
}

TEST(Compare, RunsWithoutIterationsAreNoCrash) {
    EXPECT_THAT(table_of({unfinished_run()}, {good_run()}), HasSubstr("only B has ring steady\n"));
    EXPECT_THAT(table_of({unfinished_run()}, {unfinished_run()}), HasSubstr("A: "));
}

/// The good run several times, each a little slower than the one before, all slower by `factor`.
std::vector<RunData> several(int count, double factor) {
    std::vector<RunData> runs;
    for (int i = 0; i < count; ++i) {
        RunData& run = runs.emplace_back(good_run());
        run.run.run_id = "run-" + std::to_string(i);
        for (record::IterationRow& row : run.iterations) {
            row.duration_ns =
                static_cast<std::int64_t>(static_cast<double>(row.duration_ns) * factor * (1 + 0.001 * i));
        }
    }
    return runs;
}

TEST(Compare, SetsOfRunsAreComparedByStatistics) {
    const std::string text = table_of(several(8, 1), several(8, 1.1));
    EXPECT_THAT(text, HasSubstr("A: run-0  "));
    EXPECT_THAT(text, HasSubstr("   run-7  "));
    EXPECT_THAT(text, HasSubstr("95 % confidence"));
    EXPECT_THAT(text, HasSubstr("ring steady: B is slower than A by 10.0 % (95 % confidence: "));
    EXPECT_THAT(text, HasSubstr("B is slower in"));
    const nlohmann::json json = json_of(several(8, 1), several(8, 1.1));
    EXPECT_TRUE(json.at("a").at("run_id").is_null());
    EXPECT_EQ(json.at("a").at("runs").size(), 8U);
    const nlohmann::json& statistics = json.at("phases").at(0).at("statistics");
    EXPECT_EQ(statistics.at("difference"), "slower");
    EXPECT_EQ(statistics.at("method"), "ranks");
    EXPECT_NEAR(statistics.at("ratio").get<double>(), 1.1, 1e-6);
    EXPECT_GT(statistics.at("ratio_low").get<double>(), 1.09);
    EXPECT_LT(statistics.at("ratio_high").get<double>(), 1.11);
}

TEST(Compare, OneRunOnEachSideTellsNoChance) {
    EXPECT_THAT(table_of({good_run()}, {half_speed()}), HasSubstr("One run on each side does not show"));
    const nlohmann::json json = json_of({good_run()}, {half_speed()});
    EXPECT_EQ(json.at("phases").at(0).at("statistics").at("difference"), "cannot_tell");
    EXPECT_TRUE(json.at("phases").at(0).at("statistics").at("ratio_low").is_null());
    EXPECT_EQ(json.at("a").at("run_id"), good_run().run.run_id);
}

TEST(Compare, SaysWhatItComparesAndWhichRunsAreInBothSets) {
    const std::vector<RunData> a = several(3, 1);
    const std::vector<RunData> b{a[2]};
    const std::string text = compare_table(a, b, analyse::compare_sets(a, b), {"the baseline gold\x1b", "latest"});
    EXPECT_THAT(text, ::testing::StartsWith("time of A, the baseline gold? (3 runs), and B, latest (1 run)\nA: run-0"));
    EXPECT_THAT(text, HasSubstr("IN BOTH SETS, which makes them look more alike than they are: run-2\n"));
    EXPECT_EQ(json_of(a, b).at("shared_runs"), nlohmann::json({"run-2"}));
    EXPECT_THAT(table_of(a, {half_speed()}), Not(HasSubstr("IN BOTH")));
}

TEST(Compare, GoesScenarioByScenario) {
    std::vector<RunData> a = several(4, 1);
    a[1].run.plan_hash = a[2].run.plan_hash = "second";
    a[3].run.scenario_name = "only\nhere";
    a[3].run.plan_hash = "third";
    std::vector<RunData> b{half_speed(), half_speed()};
    b[1].run.plan_hash = "second";
    const analyse::Matching matching = analyse::match(a, b);
    std::vector<analyse::RunSets> pairs;
    for (const analyse::MatchedRuns& runs : matching.scenarios) {
        pairs.push_back({runs.a, runs.b});
    }
    const std::vector<analyse::SetComparison> compared = analyse::compare_all(pairs, {});
    const std::string text = compare_scenarios_table(matching, compared, {"the baseline gold", "nightly"});
    EXPECT_THAT(text, ::testing::StartsWith("[1 of 2] half-rate-nic " + a[0].run.plan_hash.substr(0, 12) + " on "));
    EXPECT_THAT(text, HasSubstr("\ntime of A, the baseline gold (1 run), and B, nightly (1 run)\nA: run-0"));
    EXPECT_THAT(text, HasSubstr("\n\n[2 of 2] half-rate-nic second on "));
    EXPECT_THAT(text, HasSubstr("\ntime of A, the baseline gold (2 runs), and B, nightly (1 run)\nA: run-1"));
    EXPECT_THAT(text, HasSubstr("\nonly A has only?here "));
    const auto json = nlohmann::json::parse(compare_scenarios_json(matching, compared, "gold"));
    EXPECT_EQ(json.at("schema"), "railbreak-compare-scenarios");
    EXPECT_EQ(json.at("baseline"), "gold");
    ASSERT_EQ(json.at("scenarios").size(), 2U);
    const nlohmann::json alone = json_of({a[1], a[2]}, {b[1]});
    for (const char* key : {"schema", "a", "b", "measure", "not_comparable", "shared_runs"}) {
        EXPECT_EQ(json.at("scenarios").at(1).at(key), alone.at(key)) << "as by itself";
    }
    EXPECT_EQ(json.at("only_a").size(), 1U);
}

TEST(Compare, HostileNamesAreShownAsText) {
    RunData evil = good_run();
    evil.run.run_id = "\x1b[2J";
    evil.run.cluster = "lab\non \x07";
    evil.run.plan_hash = "other";
    const std::string text = table_of({good_run()}, {evil});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, HasSubstr("not like with like: the clusters differ: A has lab on node7, B has lab?on ?"));
}

} // namespace
} // namespace railbreak::reports
