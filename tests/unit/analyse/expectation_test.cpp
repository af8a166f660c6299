// Limits of every kind: over phases, of faults, and those that stand on earlier runs.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/history.hpp"
#include "tests/unit/analyse/analyse_case.hpp"

namespace railbreak::analyse {
namespace {

using scenarios::Expectation;

class ExpectationCase : public ::testing::TestWithParam<Case> {};

TEST_P(ExpectationCase, JudgesAsDocumented) {
    judges_as_documented(GetParam());
}

Expectation recovery(Nanoseconds most) {
    return {.algorithm = "optcc", .metric = Metric::kRecoveryTime, .max_time = most};
}

Expectation detection(Nanoseconds most) {
    return {.algorithm = "optcc", .metric = Metric::kDetectionTime, .max_time = most};
}

Expectation collateral(double most) {
    return {.algorithm = "optcc", .metric = Metric::kCollateral, .max = most};
}

constexpr std::string_view kTwoNics =
    R"(["MTU of rail1 went from \"1500\" to \"1400\"","flags of rail1 went from \"a\" to \"b\"","rail2 is gone"])";

const std::vector<Case> kPhases{
    {"TimeHeld",
     [](RunData&, Plan& p) {
         p.expectations = {{.algorithm = "ring",
                            .phase = Phase::kSteady,
                            .metric = Metric::kTime,
                            .max_time = std::chrono::seconds(2)}};
     },
     "expectation", "ring/steady time", Verdict::kPass, "median time of 3 iterations is 994.", ExitCode::kPass},
    {"TimeMissed",
     [](RunData&, Plan& p) {
         p.expectations = {{.algorithm = "ring",
                            .phase = Phase::kSteady,
                            .metric = Metric::kTime,
                            .max_time = std::chrono::milliseconds(500)}};
     },
     "expectation", "ring/steady time", Verdict::kFail, "above the maximum of 500 ms", ExitCode::kFail},
    {"AllIterationsRight",
     [](RunData&, Plan& p) { p.expectations = {{.algorithm = "ring", .metric = Metric::kCorrectness, .min = 1.0}}; },
     "expectation", "ring/degraded correctness", Verdict::kPass, "3 of 3 iterations gave the right result",
     ExitCode::kPass},
};

const std::vector<Case> kFaults{
    {"BackWithTheFirstRecoveredIteration",
     [](RunData&, Plan& p) { p.expectations = {recovery(std::chrono::seconds(2))}; }, "expectation",
     "half/optcc recovery_time", Verdict::kPass, "recovered iteration 1 ended, within 5 % of the steady median, 1.",
     ExitCode::kPass},
    {"BackTooLate", [](RunData&, Plan& p) { p.expectations = {recovery(std::chrono::milliseconds(500))}; },
     "expectation", "half/optcc recovery_time", Verdict::kFail, "above the maximum of 500 ms", ExitCode::kFail},
    {"NeverBack",
     [](RunData& d, Plan& p) {
         p.expectations = {recovery(std::chrono::seconds(2))};
         for (std::size_t i = 0; i < 3; ++i) {
             iteration(d, "optcc", "recovered", i).duration_ns *= 2;
         }
     },
     "expectation", "half/optcc recovery_time", Verdict::kFail, "none of 3 iterations was back within 5 %",
     ExitCode::kFail},
    {"BackWithinAWiderBand",
     [](RunData& d, Plan& p) {
         p.expectations = {recovery(std::chrono::seconds(5))};
         p.expectations[0].band = 200'000;
         iteration(d, "optcc", "recovered", 0).duration_ns =
             iteration(d, "optcc", "recovered", 0).duration_ns * 115 / 100;
     },
     "expectation", "half/optcc recovery_time", Verdict::kPass, "recovered iteration 1 ended, within 20 %",
     ExitCode::kPass},
    {"NeverUndone",
     [](RunData& d, Plan& p) {
         p.expectations = {recovery(std::chrono::seconds(2))};
         d.injections[1].reverted_at = 0;
     },
     "expectation", "half/optcc recovery_time", Verdict::kInconclusive, "no data: the fault was never undone",
     ExitCode::kInconclusive},
    {"NoticedByTheFirstSlowIteration", [](RunData&, Plan& p) { p.expectations = {detection(std::chrono::seconds(3))}; },
     "expectation", "half/optcc detection_time", Verdict::kPass,
     "degraded iteration 1 ended, more than 5 % above the steady median, 1.", ExitCode::kPass},
    {"NoticedByAnEvent",
     [](RunData& d, Plan& p) {
         p.expectations = {detection(std::chrono::milliseconds(50))};
         d.events.push_back(
             {1, d.injections[1].observed_at + 40'000'000, "warning", "agent h3", "path_stalled", "", "{}"});
     },
     "expectation", "half/optcc detection_time", Verdict::kPass, "agent h3 said path_stalled, 40 ms after the fault",
     ExitCode::kPass},
    {"Unnoticed",
     [](RunData& d, Plan& p) {
         p.expectations = {detection(std::chrono::seconds(3))};
         for (std::size_t i = 0; i < 3; ++i) {
             iteration(d, "optcc", "degraded", i).duration_ns = iteration(d, "optcc", "steady", 0).duration_ns;
         }
         std::erase_if(d.bounds, [](const auto& bound) { return bound.phase == "degraded"; });
         p.faults[0].kind = scenarios::FaultKind::kLinkDown;
         for (auto& row : d.injections) {
             row.kind = "link_down";
         }
     },
     "expectation", "half/optcc detection_time", Verdict::kFail, "the fault went unnoticed: all 3 iterations",
     ExitCode::kFail},
    {"NothingElseChanged", [](RunData&, Plan& p) { p.expectations = {collateral(0)}; }, "expectation",
     "half/optcc collateral", Verdict::kPass, "0 NICs changed that no fault acts on, not above the maximum of 0",
     ExitCode::kPass},
    {"TooMuchElseChanged",
     [](RunData& d, Plan& p) {
         p.expectations = {collateral(1)};
         d.injections[1].collateral_json = kTwoNics;
     },
     "expectation", "half/optcc collateral", Verdict::kFail, "2 NICs changed that no fault acts on (MTU of rail1",
     ExitCode::kFail},
    {"AsMuchElseChangedAsIsExpected",
     [](RunData& d, Plan& p) {
         p.expectations = {collateral(2)};
         d.injections[1].collateral_json = kTwoNics;
     },
     "fault", "half/optcc collateral", Verdict::kPass, "as much as is expected", ExitCode::kPass},
    {"OnlyTheNamedFault",
     [](RunData&, Plan& p) {
         p.expectations = {collateral(0)};
         p.expectations[0].fault = "half";
         p.expectations[0].algorithm.reset();
     },
     "expectation", "half/ring collateral", Verdict::kPass, "0 NICs", ExitCode::kPass},
};

/// A history of that many runs whose values lie around the one of the fixture.
void remember(RunData& data, int runs, double value) {
    nlohmann::json all = nlohmann::json::array();
    for (int i = 0; i < runs; ++i) {
        all.push_back({{"run_id", fmt::format("r{}", i)},
                       {"measured", {{"optcc/degraded overhead_exclusive", value * (1 + 0.001 * (i % 3 - 1))}}}});
    }
    data.artefacts.push_back(
        {1, std::string(kHistoryArtefact), "application/json", nlohmann::json{{"runs", all}}.dump()});
}

void stand_on_baseline(Plan& plan, scenarios::BaselineLimit limit) {
    plan.expectations[0].max.reset();
    plan.expectations[0].baseline = limit;
}

const std::vector<Case> kBaselines{
    {"WithinAShareOfEarlierRuns",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 50'000});
         remember(d, 6, 1.07);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kPass,
     "is 1.0782, within the band of 5 % around 1.07, the median of 6 earlier runs", ExitCode::kPass},
    {"AboveAShareOfEarlierRuns",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 50'000});
         remember(d, 6, 1.0);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kFail, "above the band of 5 % around 1",
     ExitCode::kFail},
    {"FasterThanEarlierRunsIsAChangeToo",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 50'000});
         remember(d, 6, 1.2);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kFail, "below the band", ExitCode::kFail},
    {"FasterIsFineWhereOnlyAboveCounts",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 50'000, .side = scenarios::Side::kAbove});
         remember(d, 6, 1.2);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kPass, "within the band", ExitCode::kPass},
    {"BeyondThreeSigma",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 3'000'000, .in_sigmas = true});
         remember(d, 6, 1.07);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kFail, "above the band of 3 standard deviations (",
     ExitCode::kFail},
    {"WithinManySigmas",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 12'000'000, .in_sigmas = true});
         remember(d, 6, 1.07);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kPass, "within the band of 12 standard deviations",
     ExitCode::kPass},
    {"TooFewEarlierRuns",
     [](RunData& d, Plan& p) {
         stand_on_baseline(p, {.band = 50'000});
         remember(d, 3, 1.07);
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kInconclusive,
     "baseline still being gathered: 3 of 5 earlier runs of this plan on this cluster are there, 2 more to come; "
     "median",
     ExitCode::kInconclusive},
    {"AMissedMaximumNeedsNoEarlierRuns",
     [](RunData&, Plan& p) {
         p.expectations[0].max = 1.05;
         p.expectations[0].baseline = scenarios::BaselineLimit{.band = 50'000};
     },
     "expectation", "optcc/degraded overhead_exclusive", Verdict::kFail, "above the maximum of 1.05", ExitCode::kFail},
};

INSTANTIATE_TEST_SUITE_P(OverPhases, ExpectationCase, ::testing::ValuesIn(kPhases), name_of);
INSTANTIATE_TEST_SUITE_P(OfFaults, ExpectationCase, ::testing::ValuesIn(kFaults), name_of);
INSTANTIATE_TEST_SUITE_P(OnBaselines, ExpectationCase, ::testing::ValuesIn(kBaselines), name_of);

/// The verdict of one expectation, where another check has the run's.
std::string verdict_of(const RunData& data, const Plan& plan) {
    const VerdictRow row = analyse(data, plan).verdicts.back();
    return fmt::format("{} {}: {}", row.subject, row.verdict, row.reason);
}

TEST(Expectation, IsJudgedBesideWorseChecks) {
    Plan plan = fixture_plan();
    plan.expectations = {{.algorithm = "ring", .metric = Metric::kCorrectness, .min = 1.0}};
    RunData wrong = record::fixture_run();
    iteration(wrong, "ring", "degraded", 1).correct = false;
    EXPECT_EQ(verdict_of(wrong, plan),
              "ring/degraded correctness fail: 2 of 3 iterations gave the right result on every "
              "rank, below the minimum of 1");
    RunData fewer = record::fixture_run();
    std::erase_if(fewer.iterations, [](const auto& row) {
        return row.algorithm == "ring" && row.phase == "degraded" && row.iteration > 1;
    });
    EXPECT_EQ(verdict_of(fewer, plan),
              "ring/degraded correctness inconclusive: 1 of 1 iterations gave the right result "
              "on every rank, not below the minimum of 1; 3 were planned");

    plan.expectations = {recovery(std::chrono::seconds(2))};
    RunData ended = record::fixture_run();
    std::erase_if(ended.iterations,
                  [](const auto& row) { return row.algorithm == "optcc" && row.phase == "recovered"; });
    EXPECT_EQ(verdict_of(ended, plan),
              "half/optcc recovery_time inconclusive: no data: no iteration ended after the fault was undone");

    plan.expectations = {collateral(2)};
    RunData blind = record::fixture_run();
    blind.injections[1].collateral_json = R"(["the host's other interfaces could not be looked at: no answer"])";
    EXPECT_EQ(verdict_of(blind, plan), "half/optcc collateral inconclusive: no data: the host's other interfaces could "
                                       "not be looked at: no answer");
}

TEST(History, ARunThatOnlyGathersABaselineIsSound) {
    RunData run = record::fixture_run();
    EXPECT_FALSE(is_sound(run)) << "it was not judged";
    Plan plan = fixture_plan();
    stand_on_baseline(plan, {.band = 50'000});
    EXPECT_TRUE(needs_history(plan));
    run.verdicts = analyse(run, plan).verdicts;
    EXPECT_EQ(run.verdicts.front().verdict, "inconclusive");
    EXPECT_TRUE(is_sound(run));
    iteration(run, "ring", "steady", 0).correct = false;
    run.verdicts = analyse(run, plan).verdicts;
    EXPECT_FALSE(is_sound(run));
    EXPECT_FALSE(needs_history(fixture_plan()));
}

TEST(History, WhatIsNotOneCountsAsNone) {
    RunData run = record::fixture_run();
    EXPECT_TRUE(history_of(run).runs.empty());
    for (const char* content : {"", "{}", "[1]", R"({"runs": [{"run_id": 1}]})", R"({"runs": [{"run_id": "a"}]})"}) {
        run.artefacts = {{1, std::string(kHistoryArtefact), "application/json", content}};
        EXPECT_TRUE(history_of(run).runs.empty()) << content;
    }
}

} // namespace
} // namespace railbreak::analyse
