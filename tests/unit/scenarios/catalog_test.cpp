#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/plan.hpp"
#include "scenarios/summary.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using testing::algorithms;
using testing::catalog;
using testing::errors_of;

TEST(Catalog, HasTheScenariosThatTheDocumentationNames) {
    std::vector<std::string> names;
    for (const auto& path : catalog()) {
        names.push_back(path.filename().string());
    }
    EXPECT_THAT(names, ::testing::IsSupersetOf({"flap.yaml", "half-rate-nic.yaml", "kill-rank.yaml", "late-rank.yaml",
                                                "link-down-long.yaml", "link-down-short.yaml", "loss.yaml",
                                                "nic-12-percent.yaml", "partition-one-way.yaml", "pause-rank.yaml",
                                                "reroute.yaml", "smoke.yaml", "two-ranks-per-host.yaml",
                                                "two-stragglers.yaml"}));
}

TEST(Catalog, EveryFileIsValidAndNamedAsItSays) {
    for (const auto& path : catalog()) {
        const auto scenario = load_scenario_file(path.string(), algorithms());
        ASSERT_TRUE(scenario) << errors_of(scenario);
        EXPECT_EQ(scenario->name, path.stem().string());
        EXPECT_FALSE(scenario->description.empty()) << path;
        EXPECT_FALSE(scenario->expectations.empty()) << path;
        EXPECT_TRUE(summarise(*scenario).notes.empty()) << to_text(summarise(*scenario));
        EXPECT_TRUE(expand(*scenario, 1)) << path;
    }
}

TEST(Catalog, SaysWhatIsExpectedOfEachFault) {
    for (const auto& path : catalog()) {
        const auto scenario = load_scenario_file(path.string(), algorithms());
        ASSERT_TRUE(scenario) << errors_of(scenario);
        if (path.stem() == "late-rank") {
            continue; // its fault changes nothing on the host and is over with each iteration
        }
        const auto of_all = [&](Metric metric) {
            return std::ranges::any_of(scenario->expectations, [&](const Expectation& expectation) {
                return !expectation.outcome && expectation.metric == metric && !expectation.fault;
            });
        };
        EXPECT_TRUE(of_all(Metric::kCollateral)) << path;
        EXPECT_TRUE(of_all(Metric::kRecoveryTime) || of_all(Metric::kCorrectness)) << path;
    }
}

TEST(Catalog, RunsAreAsShortAsTheirCommentsSay) {
    for (const auto& path : catalog()) {
        const auto scenario = load_scenario_file(path.string(), algorithms());
        ASSERT_TRUE(scenario) << errors_of(scenario);
        const bool smoke = path.stem() == "smoke";
        EXPECT_LT(estimate_run_time(*scenario), std::chrono::seconds(smoke ? 8 : 45)) << path;
    }
}

} // namespace
} // namespace railbreak::scenarios
