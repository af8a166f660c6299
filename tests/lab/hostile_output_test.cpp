// A run whose words nobody reads: the terminal hung up, `| head` closed the pipe, the disk is full. It goes on, reverts
// its faults and is judged as usual.
#include <fstream>

#include <gtest/gtest.h>

#include "harness/record/reader.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

constexpr const char* kScenario = R"(
railbreak: 1
name: unheard
cluster: {hosts: 3, rate: 200Mbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  algorithms: [ring]
  iterations: {warmup: 0, steady: 1, degraded: 1, recovered: 1}
lease: 2s
faults:
  - {name: half, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}
)";
constexpr Nanoseconds kPatience = std::chrono::seconds(60);

class HostileOutput : public ::testing::Test {
protected:
    void SetUp() override {
        const Finished probe = run_railbreak(home(), {"lab", "up", "probe", "--hosts", "2"});
        if (probe.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << probe.err;
        }
        ASSERT_EQ(run_railbreak(home(), {"lab", "down", "probe"}).status.code, 0);
        std::ofstream(home() / "unheard.yaml") << kScenario;
    }

    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }

    /// Runs the scenario with its output arranged by a shell: `redirections` as in "2>&-".
    [[nodiscard]] Finished run_with(const std::string& redirections) {
        const std::string script = "exec \"$0\" run \"$1\" " + redirections;
        Result<launch::Child> child =
            launch::spawn({.argv = {"/usr/bin/env", "RAILBREAK_STATE_DIR=" + (home() / "state").string(),
                                    "RAILBREAK_DB=" + (home() / "runs.db").string(), "/bin/sh", "-c", script,
                                    RAILBREAK_BINARY, (home() / "unheard.yaml").string()},
                           .inherit_stderr = true});
        if (!child) {
            ADD_FAILURE() << child.error().to_line();
            return {};
        }
        child->stdout_fd.reset(); // nobody reads
        const std::optional<launch::ExitStatus> status = launch::wait_for(*child, Deadline::after(kPatience));
        EXPECT_TRUE(status) << "railbreak run hangs with " << redirections;
        return {status.value_or(launch::ExitStatus{false, -1}), "", ""};
    }

    /// The run has a verdict, and its exit code says it: 2 where this machine was too busy for one.
    void expect_recorded(const Finished& run, int code_of_a_pass) {
        Result<record::RunReader> reader = record::RunReader::open_readonly(home() / "runs.db");
        ASSERT_TRUE(reader) << reader.error().to_line();
        Result<std::vector<record::RunSummary>> runs = reader->list_runs(1);
        ASSERT_TRUE(runs && runs->size() == 1);
        EXPECT_FALSE(runs->front().verdict.empty()) << "the run has no end";
        EXPECT_EQ(run.status.code, runs->front().verdict == "pass" ? code_of_a_pass : 2) << runs->front().reason;
        EXPECT_TRUE(wait_until_none(home(), kPatience).empty());
    }

    TemporaryFolder folder_;
};

TEST_F(HostileOutput, PipeThatNobodyReadsIsNoReasonToStop) {
    const Finished run = run_with("2>&1");
    expect_recorded(run, 0);
}

TEST_F(HostileOutput, MoreMemoryThanThereIsIsRefusedBeforeAnythingIsBuilt) {
    std::string text = kScenario;
    text.replace(text.find("1MiB"), 4, "1TiB");
    std::ofstream(home() / "unheard.yaml") << text;
    const Finished run = run_railbreak(home(), {"run", (home() / "unheard.yaml").string()}, kPatience);
    EXPECT_EQ(run.status.code, 3) << run.err;
    EXPECT_NE(run.err.find("need more memory than this machine has available"), std::string::npos) << run.err;
    EXPECT_TRUE(processes_of(home()).empty());
}

TEST_F(HostileOutput, StateFolderThatIsNoneIsBadInputAndSaysSoInJson) {
    std::filesystem::remove_all(home() / "state");
    std::ofstream(home() / "state") << "no folder";
    const Finished run = run_railbreak(home(), {"--json", "run", (home() / "unheard.yaml").string()}, kPatience);
    EXPECT_EQ(run.status.code, 64) << run.err;
    EXPECT_NE(run.err.find("RAILBREAK_STATE_DIR must name a folder"), std::string::npos) << run.err;
    EXPECT_NE(run.out.find("\"schema\": \"railbreak-error\""), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("\"kind\": \"input\""), std::string::npos) << run.out;
    EXPECT_FALSE(std::filesystem::exists(home() / "runs.db")) << "nothing is recorded of a run that did not begin";
}

TEST_F(HostileOutput, ClosedStderrIsNoReasonToStop) {
    const Finished run = run_with(">/dev/null 2>&- <&-");
    expect_recorded(run, 0);
}

TEST_F(HostileOutput, ReportThatCannotBeWrittenIsToldAndTheRunIsRecorded) {
    const Finished run = run_with(">/dev/full 2>/dev/null");
    expect_recorded(run, 64);
}

} // namespace
} // namespace railbreak::tests
