#include "harness/record/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::record {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
    EXPECT_EQ(median({}), std::nullopt);
    EXPECT_EQ(median({7}), 7);
    EXPECT_EQ(median({9, 1, 5}), 5);
    EXPECT_EQ(median({9, 1, 5, 2}), 3.5);
}

TEST(PhaseStatistics, KeepsAlgorithmsInOrderOfRunAndPhasesInOrderOfTime) {
    RunData data = fixture_run();
    std::reverse(data.iterations.begin(), data.iterations.end());
    std::vector<std::string> names;
    for (const PhaseStatistics& entry : phase_statistics(data)) {
        names.push_back(entry.algorithm + "/" + entry.phase);
    }
    EXPECT_THAT(names, ::testing::ElementsAre("optcc-shared/warmup", "optcc-shared/steady", "optcc-shared/degraded",
                                              "optcc-shared/recovered", "optcc/warmup", "optcc/steady",
                                              "optcc/degraded", "optcc/recovered", "ring/warmup", "ring/steady",
                                              "ring/degraded", "ring/recovered"));
}

TEST(PhaseStatistics, ComputesEveryFigureFromTheMedian) {
    RunData data = fixture_run();
    data.run.bytes = 1000;
    const auto set = [&](std::string_view algorithm, std::string_view phase, std::int64_t a, std::int64_t b,
                         std::int64_t c) {
        const auto rows = iterations_of(data, algorithm, phase);
        rows.at(0)->duration_ns = a;
        rows.at(1)->duration_ns = b;
        rows.at(2)->duration_ns = c;
    };
    set("ring", "steady", 100, 300, 200);
    set("optcc", "steady", 250, 250, 250);
    set("optcc", "degraded", 900, 400, 500);
    data.bounds = {{1, "optcc", "degraded", "loose", "fluid", "", 2, 1, 100},
                   {1, "optcc", "degraded", "tight", "fluid", "", 2, 1, 400},
                   {1, "optcc", "degraded", "Theorem 6", "exclusive", "", 2, 1, 250}};
    const auto all = phase_statistics(data);
    const PhaseStatistics* entry = find(all, "optcc", "degraded");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->iterations, 3);
    EXPECT_EQ(entry->time_min_ns, 400);
    EXPECT_EQ(entry->time_median_ns, 500);
    EXPECT_EQ(entry->time_max_ns, 900);
    EXPECT_EQ(entry->algbw_bytes_per_s, 2e9);
    EXPECT_EQ(entry->busbw_bytes_per_s, 2e9 * 14 / 8);
    EXPECT_EQ(entry->vs_healthy, 2.5);
    EXPECT_EQ(entry->vs_steady, 2.0);
    EXPECT_EQ(entry->overhead_fluid, 1.25) << "over the larger of the two bounds";
    EXPECT_EQ(entry->overhead_exclusive, 2.0);
}

TEST(PhaseStatistics, LeavesOutWhatFailedAndLeavesEmptyWhatIsUnknown) {
    RunData data = fixture_run();
    const auto rows = iterations_of(data, "ring", "steady");
    rows.at(0)->error = "rank 3 died";
    rows.at(1)->error = "rank 3 died";
    rows.at(2)->error = "rank 3 died";
    data.bounds.clear();
    iterations_of(data, "optcc", "steady").at(1)->correct = false;
    data.rank_iterations.back().digest = "other";
    const auto all = phase_statistics(data);
    const PhaseStatistics* ring = find(all, "ring", "steady");
    ASSERT_NE(ring, nullptr);
    EXPECT_EQ(ring->failed, 3);
    EXPECT_EQ(ring->iterations, 0);
    EXPECT_EQ(ring->time_median_ns, std::nullopt);
    EXPECT_EQ(ring->algbw_bytes_per_s, std::nullopt);
    const PhaseStatistics* optcc = find(all, "optcc", "steady");
    EXPECT_EQ(optcc->vs_healthy, std::nullopt);
    EXPECT_EQ(optcc->overhead_fluid, std::nullopt);
    EXPECT_NE(optcc->vs_steady, std::nullopt);
    EXPECT_EQ(optcc->wrong, 1);
    EXPECT_EQ(find(all, "optcc-shared", "recovered")->wrong, 1);
    EXPECT_EQ(find(all, "optcc", "recovered")->wrong, 0);
    EXPECT_EQ(find(all, "nobody", "steady"), nullptr);
}

} // namespace
} // namespace railbreak::record
