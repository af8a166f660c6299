// Runs over many nights: since when they are slower, and whether a gate lets them through.
#include "harness/analyse/trend.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/band.hpp"
#include "harness/analyse/change_point.hpp"
#include "harness/analyse/gate.hpp"
#include "scenarios/random.hpp"
#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::analyse {
namespace {

using record::RunData;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kDay = 86'400'000'000'000;

/// One night of the hand-made run, all of its times by that much longer.
RunData night(int number, double factor) {
    RunData run = record::fixture_run();
    run.run.id = number;
    run.run.run_id = fmt::format("night-{:02}", number);
    run.run.started_realtime_ns += number * kDay;
    for (record::IterationRow& row : run.iterations) {
        row.duration_ns = static_cast<std::int64_t>(static_cast<double>(row.duration_ns) * factor);
    }
    run.verdicts = {{1, "run", "", "pass", "all passed", {}, {}, {}}};
    return run;
}

/// Nights with a little noise of their own.
std::vector<RunData> nights(int count, double factor, int first = 0) {
    scenarios::SplitMix64 random(static_cast<std::uint64_t>(first) + 1);
    std::vector<RunData> runs;
    for (int i = 0; i < count; ++i) {
        const double noise = static_cast<double>(random.below(2001)) / 1000 - 1; // -1 to 1
        runs.push_back(night(first + i, factor * (1 + 0.005 * noise)));
    }
    return runs;
}

std::vector<RunData> joined(std::vector<RunData> first, const std::vector<RunData>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

// Nine values whose two halves do not overlap: of the 126 ways to choose the places of the five small ones, only those
// with all on one side have |U| = 20. Chance in exact terms: 2 / 126.
TEST(ChangePoint, CountsTheOrdersThatComeToAsMuch) {
    const std::vector<double> values{1, 1, 1, 1, 1, 2, 2, 2, 2};
    const std::optional<Split> split = find_split(values, 20'000, 1);
    ASSERT_TRUE(split);
    EXPECT_EQ(split->first, 5U);
    EXPECT_EQ(split->statistic, 20);
    EXPECT_NEAR(split->p_value, 2.0 / 126, 0.003);
    EXPECT_FALSE(find_split(std::vector<double>{1, 2, 3}, 100, 1));
    EXPECT_DOUBLE_EQ(find_split(std::vector<double>(8, 1.0), 100, 1)->p_value, 1);
}

TEST(ChangePoint, FindsSeveralChanges) {
    std::vector<double> values;
    for (int i = 0; i < 36; ++i) {
        values.push_back((i < 12 ? 100 : i < 24 ? 110 : 104) + i % 3);
    }
    const std::vector<Split> splits = find_splits(values, 0.01, 1000, 1);
    ASSERT_THAT(splits, SizeIs(2));
    EXPECT_EQ(splits[0].first, 12U);
    EXPECT_EQ(splits[1].first, 24U);
}

TEST(ChangePoint, RarelyFindsOneInNoise) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        scenarios::SplitMix64 random(seed);
        std::vector<double> values;
        for (int i = 0; i < 20; ++i) {
            values.push_back(static_cast<double>(random.below(1'000'000)));
        }
        found += find_split(values, 200, 1)->p_value <= 0.05 ? 1 : 0;
    }
    EXPECT_LE(found, 18) << "of 200 series without a change, at a level of 5 %";
}

// Student's t for 4 degrees of freedom at 95 %: 2.776. The values' logarithms are -2 .. 2, their deviation sqrt(2.5).
TEST(Band, IsStudentsPredictionInterval) {
    std::vector<double> values;
    for (const double log : {-2.0, -1.0, 0.0, 1.0, 2.0}) {
        values.push_back(std::exp(log));
    }
    const std::optional<Band> band = prediction_band(values, 0.95);
    ASSERT_TRUE(band);
    EXPECT_NEAR(band->typical, 1, 1e-12);
    EXPECT_NEAR(std::log(band->high), 2.776 * std::sqrt(2.5) * std::sqrt(1.2), 1e-3);
    EXPECT_NEAR(band->low * band->high, 1, 1e-12);
    EXPECT_FALSE(prediction_band(std::vector{1.0}, 0.95));
}

TEST(Trend, SaysSinceWhenTheLevelIsAnother) {
    const Trend trend = trend_data(joined(nights(15, 1), nights(10, 1.05, 15)));
    ASSERT_THAT(trend.runs, SizeIs(25));
    ASSERT_THAT(trend.series, SizeIs(9));
    const TrendSeries& series = trend.series.front();
    EXPECT_EQ(series.algorithm, "ring");
    ASSERT_THAT(series.changes, SizeIs(1));
    EXPECT_EQ(series.changes[0].first, 15U);
    EXPECT_NEAR(series.changes[0].change(), 0.05, 0.01);
    EXPECT_FALSE(series.points[4].baseline) << "only 4 runs before";
    EXPECT_TRUE(series.points[5].baseline);
    EXPECT_FALSE(series.points[10].outside);
    EXPECT_TRUE(series.points[15].outside);
    EXPECT_NEAR(*series.points[15].change, 0.05, 0.012);
    EXPECT_NEAR(*series.points[19].change, 0.05, 0.012) << "4 runs of the new level are no baseline yet";
    EXPECT_NEAR(*series.points[24].change, 0, 0.012) << "measured against the new level";
    EXPECT_THAT(trend.notes, IsEmpty());
}

TEST(Trend, EqualNightsHaveNoChange) {
    for (const TrendSeries& series : trend_data(nights(30, 1)).series) {
        EXPECT_THAT(series.changes, IsEmpty());
    }
}

TEST(Trend, ShowsGapsPlansAndRunsThatProveNothing) {
    std::vector<RunData> runs = nights(12, 1);
    runs.erase(runs.begin() + 6, runs.begin() + 9);
    runs[3].verdicts = {{1, "run", "", "fail", "wrong result", {}, {}, {}}};
    std::erase_if(runs[4].iterations, [](const auto& row) { return row.algorithm == "ring" && row.phase == "steady"; });
    runs[8].run.plan_hash = "another";
    RunData elsewhere = night(20, 1);
    elsewhere.run.cluster = "another";
    runs.insert(runs.begin(), elsewhere);
    std::swap(runs[0].run.id, runs[9].run.id); // recorded before the latest
    const Trend trend = trend_data(runs);
    EXPECT_THAT(trend.notes, SizeIs(1));
    ASSERT_THAT(trend.runs, SizeIs(9));
    ASSERT_TRUE(trend.runs[6].gap);
    EXPECT_NEAR(*trend.runs[6].gap, 4, 0.1);
    EXPECT_FALSE(trend.runs[5].gap);
    EXPECT_TRUE(trend.runs[8].new_plan);
    const auto ring = std::ranges::find_if(
        trend.series, [](const TrendSeries& one) { return one.algorithm == "ring" && one.phase == "steady"; });
    ASSERT_NE(ring, trend.series.end());
    EXPECT_FALSE(ring->points[3].counts);
    EXPECT_TRUE(ring->points[3].value);
    EXPECT_FALSE(ring->points[4].value);
    EXPECT_FALSE(ring->points[8].baseline) << "no run of that plan before";
    EXPECT_THAT(trend_data({}).runs, IsEmpty());
}

TEST(Gate, LetsEqualRunsThrough) {
    const Gate result = gate(nights(8, 1), nights(6, 1.002, 20));
    EXPECT_EQ(result.verdict, GateVerdict::kNoRegression) << result.sentence;
    EXPECT_THAT(result.findings, SizeIs(9));
    EXPECT_THAT(result.sentence, HasSubstr("no regression of more than 3 % in any of 9 phases"));
}

TEST(Gate, StopsSlowerRuns) {
    std::vector<RunData> slow = nights(6, 1, 20);
    for (RunData& run : slow) {
        for (record::IterationRow* row : iterations_of(run, "optcc", "degraded")) {
            row->duration_ns = row->duration_ns * 108 / 100;
        }
    }
    const Gate result = gate(nights(8, 1), slow);
    EXPECT_EQ(result.verdict, GateVerdict::kRegression);
    EXPECT_EQ(result.findings.front().subject, "half-rate-nic: optcc degraded");
    EXPECT_THAT(result.sentence,
                HasSubstr("regression: half-rate-nic: optcc degraded: this is slower than the baseline"));
    EXPECT_EQ(gate(nights(8, 1), slow, {.tolerance = 0.2}).verdict, GateVerdict::kNoRegression);
    EXPECT_EQ(gate(slow, nights(8, 1)).verdict, GateVerdict::kNoRegression) << "faster is no regression";
}

TEST(Gate, HoldsOneRunAgainstSeveral) {
    EXPECT_EQ(gate(nights(10, 1), nights(1, 1.1, 20)).verdict, GateVerdict::kRegression);
    EXPECT_EQ(gate(nights(10, 1), nights(1, 1, 20)).verdict, GateVerdict::kNoRegression);
    EXPECT_EQ(gate(nights(1, 1), nights(1, 1.1, 20)).verdict, GateVerdict::kCannotTell);
}

TEST(Gate, SaysWhatCannotBeTold) {
    std::vector<RunData> other = nights(6, 1, 20);
    for (RunData& run : other) {
        run.run.plan_hash = "another plan";
    }
    const Gate unlike = gate(nights(8, 1), other);
    EXPECT_EQ(unlike.verdict, GateVerdict::kCannotTell);
    EXPECT_THAT(unlike.sentence,
                HasSubstr("the baseline has no sound run of this plan (another plan) on lab on node7"));

    std::vector<RunData> aborted = nights(6, 1, 20);
    aborted[2].verdicts.front().verdict = "aborted";
    EXPECT_EQ(gate(nights(8, 1), aborted).verdict, GateVerdict::kCannotTell);
    aborted[2].verdicts.front().verdict = "fail";
    const Gate failed = gate(nights(8, 1), aborted);
    EXPECT_EQ(failed.verdict, GateVerdict::kRegression);
    EXPECT_EQ(failed.findings.front().subject, "night-22");

    const std::vector<RunData> same = nights(8, 1);
    const Gate itself = gate(same, same);
    EXPECT_EQ(itself.verdict, GateVerdict::kCannotTell) << "nothing is left to compare with";
    EXPECT_THAT(itself.sentence, HasSubstr("the baseline has no other sound run of this plan"));

    std::vector<RunData> two = nights(6, 1, 20);
    two.insert(two.end(), other.begin(), other.end());
    for (const GateFinding& finding : gate(nights(8, 1), two).findings) {
        EXPECT_THAT(finding.subject, testing::ContainsRegex(" \\((another plan|[0-9a-z ]+)\\)"));
    }
    EXPECT_EQ(gate(same, {}).verdict, GateVerdict::kCannotTell);
    EXPECT_EQ(gate(nights(8, 1), nights(6, 1, 20), {}, {{GateVerdict::kCannotTell, "item", "it was not run"}}).verdict,
              GateVerdict::kCannotTell);
}

} // namespace
} // namespace railbreak::analyse
