#include "reports/trend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/gate.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using record::RunData;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kDay = 86'400'000'000'000;

/// Nights of the good run, slower by 10 % from the 13th on; one was left out, and the last has another plan.
std::vector<RunData> nights() {
    std::vector<RunData> runs;
    for (int i = 0; i < 24; ++i) {
        RunData& run = runs.emplace_back(good_run());
        run.run.id = i;
        run.run.run_id = "night-" + std::to_string(i);
        run.run.started_realtime_ns += (i < 20 ? i : i + 3) * kDay;
        for (record::IterationRow& row : run.iterations) {
            row.duration_ns = row.duration_ns * (i < 12 ? 1000 + i % 3 : 1100 + i % 3) / 1000;
        }
    }
    runs.back().run.plan_hash = "another";
    return runs;
}

TEST(TrendReport, ShowsLevelsGapsAndPlansInText) {
    const std::string text = trend_table(analyse::trend_data(nights()));
    EXPECT_THAT(text, HasSubstr("half-rate-nic on lab on node7: 24 runs from 2026-01-31T"));
    EXPECT_THAT(text, HasSubstr("\nring steady  "));
    EXPECT_THAT(text, HasSubstr("|##"));
    EXPECT_THAT(text, HasSubstr("(night-12) another level: +"));
    EXPECT_THAT(text, HasSubstr("ANOTHER LEVEL"));
    EXPECT_THAT(text, HasSubstr("4.0 x the usual break"));
    EXPECT_THAT(text, HasSubstr("another plan"));
    EXPECT_EQ(text, trend_table(analyse::trend_data(nights())));
    EXPECT_EQ(trend_table(analyse::trend_data({})), "no runs\n");
}

/// Twelve nights, and eight that are slower by 10 %.
analyse::Gate gate_of_nights() {
    const std::vector<RunData> all = nights();
    return analyse::gate({all.begin(), all.begin() + 12}, {all.begin() + 12, all.begin() + 20});
}

TEST(TrendReport, IsThatOfTheGoldenFiles) {
    analyse::Trend trend = analyse::trend_data(nights());
    trend.series.resize(2); // the others are no different
    expect_golden("trend.txt", trend_table(trend));
    expect_golden("trend.json", trend_json(trend));
}

TEST(GateReport, IsThatOfTheGoldenFiles) {
    expect_golden("gate.txt", gate_table(gate_of_nights(), "nightly"));
    expect_golden("gate.json", gate_json(gate_of_nights(), "nightly", 1));
}

TEST(TrendReport, HasTheSameAsJson) {
    const nlohmann::json json = nlohmann::json::parse(trend_json(analyse::trend_data(nights())));
    EXPECT_EQ(json.at("schema"), "railbreak-trend-report");
    EXPECT_EQ(json.at("runs").size(), 24U);
    const nlohmann::json& series = json.at("series").at(0);
    EXPECT_EQ(series.at("points").size(), 24U);
    EXPECT_EQ(series.at("changes").at(0).at("run_id"), "night-12");
    EXPECT_TRUE(series.at("points").at(0).at("baseline").is_null());
    EXPECT_TRUE(series.at("points").at(12).at("outside").get<bool>());
}

TEST(GateReport, HasOneLineForEachFinding) {
    const analyse::Gate gate = gate_of_nights();
    const std::string text = gate_table(gate, "evil\x1b[2J");
    EXPECT_THAT(text, HasSubstr("against the baseline evil?[2J, tolerated 3 %\n"));
    EXPECT_THAT(text, HasSubstr("  REGRESSION  half-rate-nic: ring steady: this is slower than the baseline by "));
    EXPECT_THAT(text, HasSubstr("\nregression: half-rate-nic: "));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    const nlohmann::json json = nlohmann::json::parse(gate_json(gate, "nightly", 1));
    EXPECT_EQ(json.at("verdict"), "regression");
    EXPECT_EQ(json.at("exit_code"), 1);
    EXPECT_EQ(json.at("findings").at(0).at("verdict"), "regression");
}

} // namespace
} // namespace railbreak::reports
