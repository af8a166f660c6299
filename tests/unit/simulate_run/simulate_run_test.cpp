// Whole scenarios in the simulator, as the database holds them afterwards.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/analyse.hpp"
#include "harness/controller/gantt_artefact.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/statistics.hpp"
#include "harness/simulate/simulate_run.hpp"
#include "scenarios/load.hpp"
#include "scenarios/plan.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::simulate {
namespace {

using record::RunData;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

/// `faults` and `expect` are YAML lists, each entry on its own line.
scenarios::Scenario scenario(std::string_view faults, std::string_view expect = "",
                             std::string_view algorithms = "ring, optcc", std::string_view timeout = "20s") {
    const std::string text = fmt::format(R"(railbreak: 1
name: simulated
description: for a test
cluster: {{hosts: 8, rate: 500Mbit/s}}
workload:
  collective: allreduce
  bytes: 4MiB
  dtype: float32
  algorithms: [{}]
  iterations: {{warmup: 1, steady: 2, degraded: 3, recovered: 2}}
  iteration_timeout: {}
lease: 30s
{}{}{}{}
)",
                                         algorithms, timeout, faults.empty() ? "" : "faults:\n", faults,
                                         expect.empty() ? "" : "expect:\n", expect);
    auto loaded = scenarios::load_scenario(text, "test", {{{"ring"}, {"optcc"}}, {}});
    if (!loaded) {
        ADD_FAILURE() << loaded.error().front().to_line();
        return {};
    }
    return std::move(*loaded);
}

constexpr std::string_view kHalf =
    "  - {name: half, kind: cap, target: {host: 3}, direction: both, fraction: 1/2, during: degraded}\n";

struct Played {
    int exit_code = -1;
    std::string reason;
    RunData data;
};

Played play(const scenarios::Scenario& scenario, SimulateOptions options = {}) {
    const record::TemporaryFolder folder;
    options.database = folder / "runs.db";
    options.command_line = "railbreak simulate test.yaml";
    const Result<SimulatedRun> run = simulate_scenario(scenario, options);
    if (!run) {
        ADD_FAILURE() << run.error().to_line();
        return {};
    }
    const Result<record::RunReader> reader = record::RunReader::open_readonly(options.database);
    Result<RunData> data = reader->load_run(run->run_id);
    if (!data) {
        ADD_FAILURE() << data.error().to_line();
        return {};
    }
    return {run->exit_code, run->reason, std::move(*data)};
}

std::int64_t time_of(const Played& played, std::string_view algorithm, std::string_view phase, std::int32_t iteration) {
    for (const record::IterationRow& row : played.data.iterations) {
        if (row.algorithm == algorithm && row.phase == phase && row.iteration == iteration) {
            return row.duration_ns;
        }
    }
    ADD_FAILURE() << "no " << algorithm << " " << phase << " " << iteration;
    return 0;
}

const record::VerdictRow& verdict(const Played& played, std::string_view scope, std::string_view subject) {
    static const record::VerdictRow kNone;
    for (const record::VerdictRow& row : played.data.verdicts) {
        if (row.scope == scope && row.subject == subject) {
            return row;
        }
    }
    ADD_FAILURE() << "no verdict about " << scope << " " << subject;
    return kNone;
}

TEST(SimulateRun, LeavesTheRowsOfARun) {
    const Played played = play(scenario(kHalf));
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    EXPECT_EQ(played.data.run.backend, "sim");
    EXPECT_EQ(played.data.hosts.size(), 8U);
    EXPECT_EQ(played.data.nics.size(), 8U);
    EXPECT_EQ(played.data.ranks.size(), 8U);
    EXPECT_THAT(played.data.iterations, Each(Field(&record::IterationRow::correct, true)));
    const std::vector<record::PhaseStatistics> statistics = record::phase_statistics(played.data);
    EXPECT_NEAR(*record::find(statistics, "ring", "degraded")->vs_healthy, 2, 0.05);
    EXPECT_LT(*record::find(statistics, "optcc", "degraded")->vs_healthy, 1.5);
    EXPECT_EQ(*record::find(statistics, "optcc", "recovered")->vs_steady, 1);
    EXPECT_GE(*record::find(statistics, "optcc", "degraded")->overhead_fluid, 1);
    // Every rank of a ring sends its vector twice but for a section each.
    EXPECT_EQ(played.data.rank_iterations.front().bytes_sent, 2 * 4 * 1024 * 1024 * 7 / 8);
}

TEST(SimulateRun, KeepsAPictureOfTheScheduleThatMetTheDamage) {
    const Played played = play(scenario(kHalf));
    const auto artefacts = played.data.artefacts;
    ASSERT_EQ(artefacts.size(), 2U);
    for (const record::ArtefactRow& artefact : artefacts) {
        const bool ring = artefact.name == "gantt/ring.svg";
        EXPECT_TRUE(ring || artefact.name == "gantt/optcc.svg") << artefact.name;
        EXPECT_EQ(artefact.media_type, "image/svg+xml");
        EXPECT_LE(artefact.content.size(), controller::kLargestGantt);
        EXPECT_THAT(artefact.content, HasSubstr(ring ? "<title>ring" : "<title>optcc"));
        EXPECT_THAT(artefact.content, HasSubstr("slowdown 2")) << "the damaged cluster, not the healthy one";
    }
}

TEST(SimulateRun, SaysWhatItIs) {
    const Played played = play(scenario(kHalf));
    EXPECT_THAT(verdict(played, "run", "").reason, HasSubstr("in the simulation"));
    EXPECT_THAT(verdict(played, "correctness", "ring").reason,
                AllOf(HasSubstr("no data moved"), HasSubstr("proven"), Not(HasSubstr("digest"))));
    EXPECT_THAT(verdict(played, "fault", "half/optcc").reason, HasSubstr("nothing real was touched"));
    EXPECT_THAT(played.data.verdicts, Each(Field(&record::VerdictRow::scope, Not("teardown"))))
        << "nothing was restored, because nothing was touched";
    EXPECT_THAT(played.data.injections, Each(Field(&record::InjectionRow::realism, "pretended")));
    EXPECT_THAT(played.data.run.environment_json, HasSubstr(R"("port_model":"fluid")"));
}

TEST(SimulateRun, TriesTheFormsOfAnAlgorithmAndKeepsTheFastest) {
    const Played played = play(scenario(kHalf));
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    std::string kept;
    int tried = 0;
    for (const record::IterationRow& row : played.data.iterations) {
        if (row.phase == "comparison") {
            ++tried;
            kept = row.duration_ns < best ? row.schedule : kept;
            best = std::min(best, row.duration_ns);
        }
    }
    EXPECT_GT(tried, 1);
    EXPECT_EQ(time_of(played, "optcc", "degraded", 1), best);
    EXPECT_THAT(played.data.iterations, Contains(AllOf(Field(&record::IterationRow::phase, "degraded"),
                                                       Field(&record::IterationRow::schedule, kept))));
}

TEST(SimulateRun, SameSeedGivesTheSameTimes) {
    const std::string_view random =
        "  - {name: some, kind: cap, target: {host: random}, direction: send, fraction: 1/3, during: degraded}\n";
    const Played first = play(scenario(random), {.seed = 7});
    const Played second = play(scenario(random), {.seed = 7});
    ASSERT_EQ(first.data.iterations.size(), second.data.iterations.size());
    for (std::size_t i = 0; i < first.data.iterations.size(); ++i) {
        EXPECT_EQ(first.data.iterations[i], second.data.iterations[i]);
    }
    EXPECT_EQ(first.data.verdicts, second.data.verdicts);
}

TEST(SimulateRun, OutageDelaysTheIterationThatItHits) {
    const Played played = play(scenario("  - {name: blink, kind: link_down, target: {host: 2}, at: {iteration: 2, "
                                        "offset: 20ms}, for: 70ms}\n",
                                        "", "ring"));
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    const std::int64_t usual = time_of(played, "ring", "steady", 1);
    EXPECT_EQ(time_of(played, "ring", "degraded", 1), usual);
    EXPECT_EQ(time_of(played, "ring", "degraded", 2), usual + 70'000'000);
    EXPECT_EQ(time_of(played, "ring", "degraded", 3), usual);
    ASSERT_EQ(played.data.injections.size(), 1U);
    EXPECT_EQ(played.data.injections[0].restored_at - played.data.injections[0].ordered_at, 70'000'000);
    EXPECT_THAT(played.data.events, Not(Contains(Field(&record::EventRow::kind, "path_stalled"))))
        << "TCP waits longer";
}

TEST(SimulateRun, LinkThatStaysDownFailsTheRun) {
    scenarios::Scenario gone = scenario("  - {name: gone, kind: link_down, target: {host: 2}, at: {iteration: 1, "
                                        "offset: 0ms}, for: 70ms}\n");
    gone.faults[0].at_iteration.reset(); // as no scenario file may have it
    gone.faults[0].duration.reset();
    const Played played = play(gone);
    EXPECT_EQ(played.exit_code, 1);
    EXPECT_THAT(played.reason, HasSubstr("ring degraded iteration 1"));
    EXPECT_THAT(played.reason, HasSubstr("stays down"));
    EXPECT_EQ(verdict(played, "correctness", "ring").verdict, "fail");
}

TEST(SimulateRun, FaultThatComesTooLateProvesNothing) {
    const Played played =
        play(scenario("  - {name: late, kind: cap, target: {host: 2}, direction: both, fraction: 1/2, "
                      "at: {iteration: 1, offset: 5s}, for: 1s}\n",
                      "", "ring"));
    EXPECT_EQ(played.exit_code, 2);
    EXPECT_THAT(verdict(played, "fault", "late/ring").reason, HasSubstr("the iteration was over after"));
}

TEST(SimulateRun, TimeLimitsAndExpectationsHold) {
    const Played slow = play(scenario(kHalf, "", "ring", "200ms"));
    EXPECT_EQ(slow.exit_code, 1);
    EXPECT_THAT(slow.reason, HasSubstr("longer than the time limit of 200 ms"));
    const Played missed =
        play(scenario(kHalf, "  - {algorithm: ring, phase: degraded, metric: vs_healthy, max: 1.5}\n"));
    EXPECT_EQ(missed.exit_code, 1);
    EXPECT_EQ(verdict(missed, "expectation", "ring/degraded vs_healthy").verdict, "fail");
}

TEST(SimulateRun, ALateRankMakesItsIterationsLonger) {
    const Played played =
        play(scenario("  - {name: slow, kind: late, target: {rank: 3}, by: 500ms, during: degraded}\n"));
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    for (const char* algorithm : {"ring", "optcc"}) {
        const std::int64_t steady = time_of(played, algorithm, "steady", 1);
        EXPECT_GE(time_of(played, algorithm, "degraded", 1), 500'000'000) << algorithm;
        EXPECT_LE(time_of(played, algorithm, "degraded", 1), 500'000'000 + steady) << algorithm;
        EXPECT_EQ(time_of(played, algorithm, "recovered", 1), steady) << algorithm;
    }
    EXPECT_EQ(played.data.injections.at(0).rank, 3);
    EXPECT_EQ(played.data.injections.at(0).params_json, R"({"late_ns":500000000})");
}

TEST(SimulateRun, AnExpectedErrorEndsThePhaseAndNotTheRun) {
    const std::string down =
        "  - {name: gone, kind: link_down, target: {host: 2}, at: {iteration: 2, offset: 10ms}, for: 30s}\n";
    const std::string expected = "  - {phase: degraded, outcome: error, within: 20s}\n";
    const Played played = play(scenario(down, expected + "  - {metric: detection_time, max: 200ms}\n", "ring"));
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    EXPECT_THAT(verdict(played, "expectation", "gone/ring detection_time").reason,
                HasSubstr("simulator said path_stalled, 200 ms after the fault was observed"));
    EXPECT_THAT(verdict(played, "expectation", "ring/degraded outcome").reason,
                HasSubstr("degraded iteration 2 ended with an error 19.99 s after"));
    EXPECT_THAT(verdict(played, "correctness", "ring").reason, HasSubstr("6 simulated iterations"));
    const Played late = play(scenario(down, "  - {phase: degraded, outcome: error, within: 1s}\n", "ring"));
    EXPECT_EQ(late.exit_code, 1);
    const std::string short_down =
        "  - {name: gone, kind: link_down, target: {host: 2}, at: {iteration: 2, offset: 10ms}, for: 1s}\n";
    const Played well = play(scenario(short_down, expected, "ring"));
    EXPECT_EQ(well.exit_code, 1);
    EXPECT_THAT(well.reason, HasSubstr("all 3 degraded iterations ended well"));
}

TEST(SimulateRun, WhatCannotBePlayedIsRefusedBeforeARunIsRecorded) {
    const record::TemporaryFolder folder;
    const Result<SimulatedRun> run =
        simulate_scenario(scenario("  - {name: l, kind: loss, target: {host: 1}, probability: 1%, during: degraded}\n"),
                          {.database = folder / "runs.db"});
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(run.error().to_line(), HasSubstr("cannot play fault \"l\": a loss"));
    EXPECT_FALSE(std::filesystem::exists(folder / "runs.db"));
}

TEST(SimulateRun, CostsOfFlowsCount) {
    const Played free = play(scenario("", "", "ring"),
                             {.cut_through = false, .flow_overhead = Nanoseconds(0), .flow_latency = Nanoseconds(0)});
    const Played dear = play(scenario("", "", "ring"), {.model = collective::PortModel::kExclusive,
                                                        .cut_through = false,
                                                        .flow_overhead = std::chrono::microseconds(10),
                                                        .flow_latency = std::chrono::microseconds(90)});
    const std::int64_t hops = 14;
    // A hop of the ring waits for the data of the one before: 14 overheads and latencies in all.
    EXPECT_NEAR(static_cast<double>(time_of(dear, "ring", "steady", 1)),
                static_cast<double>(time_of(free, "ring", "steady", 1) + hops * 100'000), 2);
}

TEST(SimulateRun, ClustersWithSeveralRanksAHost) {
    scenarios::Scenario wide = scenario("", "", "ring");
    wide.cluster.hosts = 4;
    wide.cluster.ranks_per_host = 2;
    wide.cluster.nics_per_host = 2;
    const Played played = play(wide);
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    EXPECT_EQ(played.data.ranks.size(), 8U);
    EXPECT_EQ(played.data.nics.size(), 8U);
    EXPECT_EQ(played.data.ranks.back().host, 3);
}

TEST(SimulateRun, ARingThatMovesToABackupNicIsAnotherPlanOfTheSameName) {
    scenarios::Scenario wide = scenario(kHalf, "", "ring");
    wide.cluster.hosts = 4;
    wide.cluster.ranks_per_host = 2;
    wide.cluster.nics_per_host = 2;
    wide.workload.algorithms = {{.name = "iccl", .label = "iccl"}};
    scenarios::FaultSpec& dead = wide.faults.at(0);
    dead.kind = scenarios::FaultKind::kLinkDown;
    dead.target.nic = 1;
    const Played played = play(wide);
    EXPECT_EQ(played.exit_code, 0) << played.reason;
    const double slower = static_cast<double>(time_of(played, "iccl", "degraded", 1)) /
                          static_cast<double>(time_of(played, "iccl", "steady", 1));
    EXPECT_NEAR(slower, 2, 0.05) << "two channels share the NIC that is left";
}

TEST(SimulateRun, JudgingAgainGivesTheSame) {
    const Played played = play(scenario(kHalf));
    const Result<scenarios::Plan> plan = scenarios::plan_from_json(played.data.run.plan_json, played.data.run.seed);
    ASSERT_TRUE(plan);
    std::vector<record::VerdictRow> verdicts = analyse::analyse(played.data, *plan).verdicts;
    EXPECT_EQ(verdicts, played.data.verdicts);
}

TEST(SimulateRun, DatabaseThatIsNoneIsAnError) {
    const Result<SimulatedRun> run = simulate_scenario(scenario(kHalf), {.database = "/proc/nowhere/runs.db"});
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().kind(), ErrorKind::kInput) << run.error().to_line();
}

} // namespace
} // namespace railbreak::simulate
