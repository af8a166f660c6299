// A home with a run in it, for tests of the commands that look at runs: simulated, so without lab and privilege.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {

inline constexpr const char* kSlowPort = R"(railbreak: 1
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

/// See the file comment.
class SimulatedHome : public testing::Test {
protected:
    SimulatedHome() {
        std::ofstream(path("scenario.yaml")) << kSlowPort;
        EXPECT_EQ(run({"simulate", path("scenario.yaml")}).status.code, 0);
    }
    /// Of a file in it.
    [[nodiscard]] std::string path(const std::string& name) const { return (home.path() / name).string(); }
    [[nodiscard]] Finished run(const std::vector<std::string>& words) const {
        return run_railbreak(home.path(), words);
    }
    /// Another program, with the same environment.
    [[nodiscard]] Finished run_program(const std::string& program, const std::vector<std::string>& words) const {
        return run_railbreak(home.path(), words, std::chrono::seconds(60), program);
    }

    TemporaryFolder home;
};

} // namespace railbreak::tests
