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
