// The course of a suite: what runs, what is skipped, what is left, and how it goes on. Runs are pretended (a row with a
// verdict); the database is real.
#include "harness/controller/suite_run.hpp"

#include <csignal>
#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/analyse/suite.hpp"
#include "harness/controller/environment.hpp"
#include "harness/controller/suite_progress.hpp"
#include "harness/record/prune.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::controller {
namespace {

using scenarios::OnFailure;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// What a pretended run is to do.
enum class Act { kPass, kFail, kRefuse, kLoseDatabase, kInterrupt, kLeaveSomething, kDie };

class SuiteRun : public ::testing::Test {
protected:
    SuiteRun() {
        plan_.name = "test";
        plan_.seed = 7;
        plan_.canonical_json = "{}";
        plan_.hash = "hash";
    }

    /// `entries` items of each of the letters, named "a0", "a1", "b0", ...
    void items(const std::string& letters, OnFailure on_failure, int each = 2) {
        for (std::size_t entry = 0; entry < letters.size(); ++entry) {
            for (int i = 0; i < each; ++i) {
                scenarios::SuiteItem item;
                item.name = letters[entry] + std::to_string(i);
                item.entry = static_cast<std::int32_t>(entry);
                item.seed = plan_.items.size();
                item.on_failure = on_failure;
                item.scenario.name = std::string(1, letters[entry]);
                item.plan_hash = "p" + item.name;
                plan_.items.push_back(std::move(item));
            }
        }
    }

    Result<RunResult> pretend(const RunOptions& options) {
        const std::string& name = plan_.items[options.seed].name;
        const Act act = acts_.contains(name) ? acts_.at(name) : Act::kPass;
        ran_.push_back(name);
        command_lines_.push_back(options.command_line);
        if (act == Act::kRefuse) {
            return fail(ErrorKind::kRefused, "not here");
        }
        auto recorder = record::Recorder::open(options.database);
        record::RunRow row;
        row.run_id = "run-" + std::to_string(++runs_) + "-" + name;
        row.scenario_name = name;
        row.plan_json = "{}";
        const Result<std::int64_t> run = recorder->begin_run(row);
        EXPECT_TRUE(run && options.on_recorded(*run));
        EXPECT_EQ(state_of(options.seed), "running") << "before anything can act";
        if (act == Act::kLoseDatabase) {
            return fail(ErrorKind::kHarness, "disk full");
        }
        if (act == Act::kDie) {
            throw std::runtime_error("killed"); // nothing else is written from here
        }
        const std::string verdict = act == Act::kFail ? "fail" : act == Act::kInterrupt ? "aborted" : "pass";
        std::vector<record::VerdictRow> verdicts{{.scope = "run", .verdict = verdict, .reason = "because"}};
        if (act == Act::kLeaveSomething) {
            verdicts.push_back({.scope = "teardown", .verdict = "fail", .reason = "h1"});
        }
        EXPECT_TRUE(recorder->finish_run(*run, 1, verdicts));
        return RunResult{.run_id = row.run_id,
                         .exit_code = static_cast<int>(analyse::exit_code_of(verdicts)),
                         .reason = "because",
                         .verdict = verdict,
                         .interrupted = act == Act::kInterrupt};
    }

    Result<SuiteResult> run(bool resume = false, bool retry_failed = false) {
        ran_.clear();
        SuiteOptions options;
        options.run.database = database();
        options.item_command = [](const scenarios::SuiteItem& item) { return "run only " + item.name; };
        options.retry_failed = retry_failed;
        options.resume = resume ? std::optional<std::string>("") : std::nullopt;
        options.run_item = [this](const scenarios::Scenario&, const RunOptions& item, Progress&) {
            return pretend(item);
        };
        Progress progress(false);
        return run_suite(plan_, options, progress);
    }

    int exit_code(bool resume = false, bool retry_failed = false) {
        const Result<SuiteResult> result = run(resume, retry_failed);
        EXPECT_TRUE(result) << result.error().to_line();
        return result ? result->exit_code : -1;
    }

    [[nodiscard]] record::SuiteData data() const {
        const auto reader = record::RunReader::open_readonly(database());
        auto data = reader->load_suite("latest");
        EXPECT_TRUE(data) << data.error().to_line();
        return data ? *data : record::SuiteData{};
    }

    [[nodiscard]] std::vector<std::string> words() const {
        std::vector<std::string> words;
        for (const analyse::ItemOutcome& item : analyse::judge_suite(data()).items) {
            words.push_back(item.word);
        }
        return words;
    }

    [[nodiscard]] std::string state_of(std::size_t item) const { return data().items.at(item).state; }
    [[nodiscard]] std::filesystem::path database() const { return folder_ / "runs.db"; }

    record::TemporaryFolder folder_;
    scenarios::SuitePlan plan_;
    std::map<std::string, Act> acts_;
    std::vector<std::string> ran_;
    std::vector<std::string> command_lines_; ///< of the runs in ran_
    int runs_ = 0;
};

TEST_F(SuiteRun, RunsEveryItemOnce) {
    items("ab", OnFailure::kContinue);
    EXPECT_EQ(exit_code(), 0);
    EXPECT_THAT(ran_, ElementsAre("a0", "a1", "b0", "b1"));
    EXPECT_THAT(command_lines_, ElementsAre("run only a0", "run only a1", "run only b0", "run only b1"));
    EXPECT_THAT(words(), ElementsAre("pass", "pass", "pass", "pass"));
    EXPECT_GT(data().suite.finished_realtime_ns, 0);
    EXPECT_EQ(exit_code(true), 0) << "nothing is left";
    EXPECT_TRUE(ran_.empty());
}

TEST_F(SuiteRun, GoesOnAfterAFailureOrEndsOrLeavesTheScenario) {
    acts_ = {{"a0", Act::kFail}};
    items("ab", OnFailure::kContinue);
    EXPECT_EQ(exit_code(), 1);
    EXPECT_THAT(words(), ElementsAre("fail", "pass", "pass", "pass"));
    plan_.items.clear();
    items("ab", OnFailure::kSkipScenario);
    EXPECT_EQ(exit_code(), 1);
    EXPECT_THAT(words(), ElementsAre("fail", "skipped", "pass", "pass"));
    EXPECT_EQ(data().items[1].reason, "another item of a did not pass");
    plan_.items.clear();
    items("ab", OnFailure::kStop);
    EXPECT_EQ(exit_code(), 1);
    EXPECT_THAT(words(), ElementsAre("fail", "skipped", "skipped", "skipped"));
    EXPECT_EQ(data().items[3].reason, "a0 did not pass");
    EXPECT_GT(data().suite.finished_realtime_ns, 0);
}

TEST_F(SuiteRun, RepeatsFailuresOnlyWhenAsked) {
    acts_ = {{"a0", Act::kFail}, {"b1", Act::kRefuse}};
    items("ab", OnFailure::kSkipScenario);
    EXPECT_EQ(exit_code(), 1);
    EXPECT_THAT(words(), ElementsAre("fail", "skipped", "pass", "refused"));
    EXPECT_EQ(exit_code(true), 1);
    EXPECT_THAT(ran_, ElementsAre());
    EXPECT_THAT(words(), ElementsAre("fail", "skipped", "pass", "refused"));
    acts_.clear();
    EXPECT_EQ(exit_code(true, true), 0);
    EXPECT_THAT(ran_, ElementsAre("a0", "a1", "b1"));
    EXPECT_THAT(words(), ElementsAre("pass", "pass", "pass", "pass"));
    EXPECT_EQ(data().items[0].attempts, 2);
    EXPECT_EQ(data().reasons[3], "because") << "that it was refused once is over";
}

TEST_F(SuiteRun, EndsWithAnInterruptionAndGoesOnThere) {
    acts_ = {{"a1", Act::kInterrupt}};
    items("ab", OnFailure::kContinue);
    const auto result = run();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->exit_code, 4);
    EXPECT_EQ(result->left, 3U);
    EXPECT_TRUE(result->broken_off);
    EXPECT_THAT(words(), ElementsAre("pass", "interrupted", "waiting", "waiting"));
    EXPECT_EQ(data().suite.finished_realtime_ns, 0);
    acts_.clear();
    EXPECT_EQ(exit_code(true), 0);
    EXPECT_THAT(ran_, ElementsAre("a1", "b0", "b1"));
    EXPECT_EQ(data().items[1].attempts, 2);
    EXPECT_GT(data().suite.finished_realtime_ns, 0);
}

TEST_F(SuiteRun, GoesOnAfterTheDeathOfTheController) {
    acts_ = {{"a1", Act::kDie}};
    items("ab", OnFailure::kContinue);
    EXPECT_THROW((void)run(), std::runtime_error);
    EXPECT_THAT(words(), ElementsAre("pass", "interrupted", "waiting", "waiting"));
    acts_.clear();
    EXPECT_EQ(exit_code(true), 0);
    EXPECT_THAT(ran_, ElementsAre("a1", "b0", "b1"));
}

TEST_F(SuiteRun, TakesTheVerdictOfARunWhoseItemWasNotWrittenAnyMore) {
    acts_ = {{"a1", Act::kInterrupt}};
    items("ab", OnFailure::kContinue);
    EXPECT_EQ(exit_code(), 4);
    {
        auto recorder = record::Recorder::open(database());
        record::SuiteItemRow row = data().items[0];
        row.state = "running"; // as if the controller had died right after the verdict
        ASSERT_TRUE(recorder->update_suite_item(row));
    }
    acts_.clear();
    EXPECT_EQ(exit_code(true), 0);
    EXPECT_THAT(ran_, ElementsAre("a1", "b0", "b1"));
    EXPECT_EQ(state_of(0), "done");
}

TEST_F(SuiteRun, KnowsWhatBecameOfItemsWhoseRunsWerePruned) {
    acts_ = {{"a0", Act::kFail}};
    items("a", OnFailure::kContinue);
    EXPECT_EQ(exit_code(), 1);
    const record::PrunePlan everything{.runs = {{1, "run-1-a0", "fail"}, {2, "run-2-a1", "pass"}}};
    ASSERT_TRUE(record::prune(database(), everything, false, [](const record::PrunedRun&) {}));
    EXPECT_THAT(words(), ElementsAre("fail", "pass"));
    EXPECT_EQ(exit_code(true), 1);
    EXPECT_THAT(ran_, ElementsAre());
    acts_.clear();
    EXPECT_EQ(exit_code(true, true), 0);
    EXPECT_THAT(ran_, ElementsAre("a0"));
    EXPECT_EQ(data().items[0].pruned, record::PrunedOutcome{}) << "the new run counts";
}

TEST_F(SuiteRun, EndsAtOnceWhenATeardownIsNotVerified) {
    acts_ = {{"a0", Act::kLeaveSomething}};
    items("ab", OnFailure::kContinue);
    const auto result = run();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->exit_code, 5);
    EXPECT_TRUE(result->broken_off);
    EXPECT_EQ(result->left, 3U);
    EXPECT_THAT(ran_, ElementsAre("a0"));
    acts_.clear();
    EXPECT_EQ(exit_code(true), 5) << "one of its runs still says so";
    EXPECT_THAT(ran_, ElementsAre("a1", "b0", "b1"));
}

TEST_F(SuiteRun, EndsWithAnErrorThatAllItemsWouldMeet) {
    acts_ = {{"a0", Act::kLoseDatabase}};
    items("a", OnFailure::kContinue);
    const auto result = run();
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().to_line(), HasSubstr("disk full [suite="));
    EXPECT_THAT(words(), ElementsAre("interrupted", "waiting"));
}

TEST_F(SuiteRun, ResumesNothingElse) {
    items("a", OnFailure::kContinue);
    EXPECT_THAT(run(true).error().message(), HasSubstr("suite test has not run yet"));
    EXPECT_EQ(exit_code(), 0);
    plan_.hash = "other";
    plan_.canonical_json = R"({"seed":2,"items":[]})";
    EXPECT_THAT(run(true).error().message(), HasSubstr("cannot go on with suite"));
}

TEST_F(SuiteRun, GoesOnWithTheLastSuiteOfThatPlanBehindOneOfSingleItems) {
    items("a", OnFailure::kContinue);
    acts_ = {{"a0", Act::kFail}};
    EXPECT_EQ(exit_code(), 1);
    const std::string whole = data().suite.suite_id;
    const scenarios::SuitePlan plan = plan_;
    plan_.hash = "of one item";
    plan_.items.resize(1);
    EXPECT_EQ(exit_code(), 1);
    EXPECT_NE(data().suite.suite_id, whole);
    plan_ = plan;
    const auto resumed = run(true);
    ASSERT_TRUE(resumed) << resumed.error().to_line();
    EXPECT_EQ(resumed->suite_id, whole);
}

TEST_F(SuiteRun, TakesAsLongAsEarlierRunsOfThePlanThatPassed) {
    items("a", OnFailure::kContinue, 1);
    constexpr std::int64_t kSecond = 1'000'000'000;
    for (const auto& [run, took, verdict] :
         {std::tuple(1, 30, "pass"), {2, 34, "pass"}, {3, 32, "pass"}, {4, 900, "fail"}}) {
        auto recorder = record::Recorder::open(database());
        record::RunRow row;
        row.run_id = "earlier-" + std::to_string(run);
        row.scenario_name = "a";
        row.plan_json = "{}";
        row.plan_hash = "pa0";
        row.cluster = cluster_name();
        row.started_realtime_ns = run * 1000 * kSecond;
        const Result<std::int64_t> id = recorder->begin_run(row);
        ASSERT_TRUE(id);
        ASSERT_TRUE(recorder->finish_run(*id, row.started_realtime_ns + took * kSecond,
                                         {{.scope = "run", .verdict = verdict, .reason = "because"}}));
    }
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(exit_code(), 0);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("[1 of 1] a0, about 32 s left\n"));
}

TEST_F(SuiteRun, DoesNotMeasureSeveralItemsOnOneMachine) {
    items("a", OnFailure::kContinue);
    plan_.parallel = 2;
    const auto result = run();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kUsage);
    EXPECT_TRUE(check_parallel(plan_, "somewhere else"));
}

TEST(SuiteClock, LearnsFromWhatHasRun) {
    using std::chrono::seconds;
    SuiteClock clock;
    EXPECT_EQ(clock.left({{"a", seconds(10)}, {"b", seconds(20)}}), seconds(30));
    clock.finished({"a", seconds(10)}, seconds(20));
    EXPECT_EQ(clock.left({{"a", seconds(10)}, {"b", seconds(20)}}), seconds(60)) << "estimates are half of the truth";
    clock.finished({"a", seconds(10)}, seconds(25));
    clock.finished({"a", seconds(10)}, seconds(90));
    EXPECT_EQ(clock.left({{"a", seconds(10)}}), seconds(25));
    EXPECT_EQ(clock.left({}), seconds(0));
    const Nanoseconds centuries(9'000'000'000'000'000'000);
    EXPECT_EQ(SuiteClock().left({{"a", centuries}, {"b", centuries}}), centuries) << "more is not counted";
}

TEST(SuiteClock, SaysTimesRoughly) {
    using namespace std::chrono_literals;
    EXPECT_EQ(rough(44'600ms), "45 s");
    EXPECT_EQ(rough(90s), "1 min 30 s");
    EXPECT_EQ(rough(3h + 5min + 20s), "3 h 05 min");
}

} // namespace
} // namespace railbreak::controller
