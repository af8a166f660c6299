// `railbreak simulate` as a user runs it: no lab and no privilege needed.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kScenario = R"(railbreak: 1
name: slow-port
description: one port at half its rate
cluster: {hosts: 4, rate: 1Gbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  dtype: float32
  algorithms: [ring]
  iterations: {warmup: 0, steady: 1, degraded: 1, recovered: 1}
  iteration_timeout: 10s
lease: 30s
faults:
  - {name: half, kind: cap, target: {host: 1}, direction: both, fraction: 1/2, during: degraded}
)";

class Simulate : public testing::Test {
protected:
    Simulate() { std::ofstream(scenario) << kScenario; }
    Finished run(std::vector<std::string> words) {
        words.insert(words.begin(), "simulate");
        return run_railbreak(home.path(), words);
    }

    TemporaryFolder home;
    std::string scenario = (home.path() / "scenario.yaml").string();
};

TEST_F(Simulate, ReportsLikeARun) {
    const Finished simulated = run({scenario, "--json"});
    EXPECT_EQ(simulated.status.code, 0) << simulated.err;
    const json report = json::parse(simulated.out, nullptr, false);
    EXPECT_EQ(report["verdict"], "pass");
    EXPECT_EQ(report["run"]["backend"], "sim");
    EXPECT_EQ(report["run"]["environment"]["cut_through"], true);
    const Finished again = run_railbreak(home.path(), {"report", "latest", "--json"});
    EXPECT_EQ(again.out, simulated.out) << "what simulate prints is what the database holds";
    EXPECT_THAT(run_railbreak(home.path(), {"list"}).out, HasSubstr("slow-port"));
}

TEST_F(Simulate, PlaysEveryScenarioItIsGiven) {
    const Finished finished = run({scenario, scenario, "--model", "exclusive"});
    EXPECT_EQ(finished.status.code, 0) << finished.err;
    const std::size_t first = finished.out.find("VERDICT pass");
    EXPECT_NE(first, std::string::npos);
    EXPECT_NE(finished.out.find("VERDICT pass", first + 1), std::string::npos);
    EXPECT_THAT(finished.out, HasSubstr("port_model exclusive"));
}

TEST_F(Simulate, ItsRunsCanBeTaggedPrunedExportedAndChecked) {
    ASSERT_EQ(run({scenario, scenario, scenario}).status.code, 0);
    const auto result = [&](std::vector<std::string> words) {
        words.push_back("--json");
        const Finished finished = run_railbreak(home.path(), words);
        EXPECT_EQ(finished.status.code, 0) << finished.err;
        return json::parse(finished.out, nullptr, false);
    };
    const json runs = result({"list"})["runs"];
    ASSERT_EQ(runs.size(), 3U);
    const json tagged = result({"baseline", "set", "good", runs[2]["run_id"], "--note", "first"});
    EXPECT_EQ(tagged["runs"][0]["run_id"], runs[2]["run_id"]);
    EXPECT_EQ(result({"baseline", "list"}), tagged);
    EXPECT_EQ(result({"db", "prune", "--keep", "1", "--dry-run"})["deleted"].size(), 1U);
    const json pruned = result({"db", "prune", "--keep", "1"});
    EXPECT_EQ(pruned["deleted"][0]["run_id"], runs[1]["run_id"]) << "the first is a baseline, the last is kept";
    EXPECT_EQ(pruned["kept"]["baseline"], 1);
    const json exported = result({"db", "export", "--table", "v_runs", "-o", (home.path() / "out").string()});
    EXPECT_EQ(exported["tables"][0]["rows"], 2);
    EXPECT_TRUE(std::filesystem::exists(home.path() / "out" / "v_runs.csv"));
    const json checked = result({"db", "check"});
    EXPECT_EQ(checked["ok"], true);
    EXPECT_EQ(checked["runs"], 2);
    EXPECT_EQ(result({"baseline", "drop", "good"}), tagged);
    for (const auto& [words, reason] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"baseline", "drop", "good"}, "no baseline \"good\""},
             {{"db", "prune"}, "nothing says which runs may go"},
             {{"db", "prune", "--older-than", "ages"}, "--older-than"},
             {{"db", "export", "--format", "parquet", "-o", "out"}, "Debian packages no library"},
             {{"--db", scenario, "db", "check"}, "not a database"}}) {
        const Finished refused = run_railbreak(home.path(), words);
        EXPECT_EQ(refused.status.code, 64) << refused.err;
        EXPECT_THAT(refused.err, HasSubstr(reason));
        EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    }
}

TEST_F(Simulate, WrongInputIsToldInOneLine) {
    struct Case {
        std::vector<std::string> words;
        std::string told;
    };
    for (const Case& wrong : std::vector<Case>{{{}, "SCENARIO is required"},
                                               {{scenario, "--model", "wet"}, "wet not in {fluid,exclusive}"},
                                               {{scenario, "--latency", "5"}, "\"5\" is not a duration"},
                                               {{scenario, "--overhead", "2h"}, "--overhead"},
                                               {{scenario, "--overhead", "90min"}, "at most an hour"},
                                               {{scenario, "--seed", "-1"}, "is no seed"},
                                               {{"/nowhere.yaml"}, "cannot read the file"}}) {
        const Finished finished = run(wrong.words);
        EXPECT_EQ(finished.status.code, 64) << wrong.told;
        EXPECT_THAT(finished.err, HasSubstr(wrong.told));
        EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
        EXPECT_EQ(finished.out, "");
    }
}

} // namespace
} // namespace railbreak::tests
