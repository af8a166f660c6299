// A suite in the lab: killed in the middle and resumed, it ends with the verdicts of one that was left alone.
#include <csignal>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/reader.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kScenario = R"(
railbreak: 1
name: tiny
cluster: {hosts: 2, rate: 200Mbit/s}
workload:
  collective: allreduce
  bytes: 4MiB
  algorithms: [ring]
  iterations: {warmup: 0, steady: 1, degraded: 1, recovered: 1}
  iteration_timeout: 5s
lease: 2s
faults:
  - {name: tardy, kind: late, target: {rank: 0}, by: 300ms, during: degraded}
)";
/// One item passes; of the other the impossible is expected.
constexpr const char* kSuite = R"(
railbreak: 1
suite: two
scenarios:
  - file: tiny.yaml
    matrix: {seed: [7]}
  - file: tiny.yaml
    name: impossible
    set:
      algorithms: [{name: ring, as: doomed}]
      expect: [{phase: degraded, metric: vs_steady, max: 0.01}]
)";
constexpr Nanoseconds kPatience = std::chrono::seconds(60);
constexpr Nanoseconds kLease = std::chrono::seconds(2);

class SuiteInTheLab : public ::testing::Test {
protected:
    void SetUp() override {
        std::ofstream(folder_.path() / "tiny.yaml") << kScenario;
        std::ofstream(suite()) << kSuite;
        first_ = run_railbreak(folder_.path(), {"run", suite()}, kPatience);
        if (first_.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << first_.err;
        }
    }

    [[nodiscard]] std::string suite() const { return (folder_.path() / "suite.yaml").string(); }

    [[nodiscard]] record::SuiteData latest() const {
        const auto reader = record::RunReader::open_readonly(folder_.path() / "runs.db");
        auto data = reader ? reader->load_suite("latest") : fail(Error(reader.error()));
        if (!data) {
            ADD_FAILURE() << data.error().to_line();
            return {};
        }
        return std::move(*data);
    }

    /// The command that the reports of an item's run give for repeating it has the item's plan.
    void expect_alone(const record::SuiteItemRow& item, const std::string& run_id) const {
        const auto reader = record::RunReader::open_readonly(folder_.path() / "runs.db");
        const auto run = reader ? reader->load_run(run_id) : tl::unexpected(reader.error());
        ASSERT_TRUE(run) << run.error().to_line();
        const std::string call = std::string("railbreak() { '") + RAILBREAK_BINARY + "' \"$@\"; }; " +
                                 run->run.command_line + " --dry-run --json";
        const Finished forecast = run_railbreak(folder_.path(), {"-c", call}, kPatience, "/bin/sh");
        EXPECT_EQ(forecast.status.code, 0) << call << forecast.err;
        EXPECT_THAT(forecast.out, HasSubstr("\"plan_hash\": \"" + item.plan_hash + "\"")) << call;
        EXPECT_EQ(forecast.out.find("plan_hash"), forecast.out.rfind("plan_hash")) << "of one item";
    }

    TemporaryFolder folder_;
    Finished first_;
};

TEST_F(SuiteInTheLab, KilledAndResumedEndsAsOneThatWasLeftAlone) {
    EXPECT_EQ(first_.status.code, 1) << first_.err << first_.out;
    const record::SuiteData whole = latest();
    EXPECT_THAT(whole.verdicts, ElementsAre("pass", "fail")) << first_.err;
    expect_alone(whole.items[0], whole.run_ids[0]);
    {
        RailbreakProcess killed(folder_.path(), {"run", suite()});
        ASSERT_TRUE(killed.wait_for_stderr("doomed: applying faults", kPatience)) << killed.err();
        launch::send_signal(killed.child(), SIGKILL);
        ASSERT_TRUE(killed.finish(kPatience));
    }
    EXPECT_TRUE(wait_until_none(folder_.path(), 3 * kLease).empty());
    const record::SuiteData broken = latest();
    EXPECT_EQ(broken.items[0].state, "done");
    EXPECT_EQ(broken.items[1].state, "running");
    EXPECT_NE(broken.items[1].run, 0);
    const Finished resumed = run_railbreak(folder_.path(), {"run", "--resume", suite()}, kPatience);
    EXPECT_EQ(resumed.status.code, 1) << resumed.err;
    EXPECT_THAT(resumed.err, Not(HasSubstr("[1 of 2]"))) << "what passed is not repeated";
    const record::SuiteData data = latest();
    EXPECT_EQ(data.suite.suite_id, broken.suite.suite_id);
    EXPECT_EQ(data.verdicts, whole.verdicts) << resumed.err;
    EXPECT_EQ(data.items[0].run, broken.items[0].run);
    EXPECT_EQ(data.items[1].attempts, 2);
    EXPECT_GT(data.suite.finished_realtime_ns, 0);
}

} // namespace
} // namespace railbreak::tests
