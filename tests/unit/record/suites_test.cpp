// Suites and baselines: what spans several runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "harness/record/controller_mark.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/plain_sql.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SuitesTest : public ::testing::Test {
protected:
    SuitesTest() {
        for (int i = 0; i < 3; ++i) {
            RunRow run = fixture_run().run;
            run.run_id = "run-" + std::to_string(i);
            const auto id = recorder_.begin_run(run);
            EXPECT_TRUE(id.has_value());
            runs_.push_back(*id);
        }
        suite_.suite_id = "20260131T123456Z-nightly-3f9c";
        suite_.name = "nightly";
        suite_.text = "suite: nightly\n";
        suite_.plan_json = "{}";
        suite_.plan_hash = "abc";
        suite_.seed = 18'446'744'073'709'551'615ULL;
        suite_.backend = "lab";
        suite_.cluster = "lab on node7";
        suite_.version = "0.1.0";
        suite_.command_line = "railbreak run nightly.yaml";
        suite_.environment_json = R"({"cpu":"x"})";
        suite_.started_realtime_ns = 5;
        for (std::int32_t i = 0; i < 3; ++i) {
            SuiteItemRow item;
            item.item = i;
            item.name = "half-rate[host=" + std::to_string(i) + "]#1";
            item.scenario_name = "half-rate";
            item.params_json = R"({"host":"3"})";
            item.plan_hash = "def";
            item.state = "waiting";
            items_.push_back(item);
        }
    }

    RunReader reader() const {
        auto opened = RunReader::open_readonly(path_);
        EXPECT_TRUE(opened.has_value()) << opened.error().to_line();
        return std::move(*opened);
    }

    std::int64_t begin() {
        const auto id = recorder_.begin_suite(suite_, items_);
        EXPECT_TRUE(id.has_value()) << id.error().to_line();
        suite_.id = *id;
        for (SuiteItemRow& item : items_) {
            item.suite = *id;
        }
        return *id;
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "runs.db";
    Recorder recorder_ = std::move(*Recorder::open(path_));
    std::vector<std::int64_t> runs_;
    SuiteRow suite_;
    std::vector<SuiteItemRow> items_;
};

TEST_F(SuitesTest, GivesBackEveryColumn) {
    begin();
    items_[1].state = "done";
    items_[1].run = runs_[2];
    items_[1].attempts = 2;
    items_[2].state = "skipped";
    items_[2].reason = "host 3 is reserved";
    for (const SuiteItemRow& item : items_) {
        ASSERT_TRUE(recorder_.update_suite_item(item).has_value());
    }
    ASSERT_TRUE(recorder_.finish_run(runs_[2], 9, {{0, "run", "", "fail", "slow", {}, {}, {}}}).has_value());
    ASSERT_TRUE(recorder_.finish_suite(suite_.id, 77).has_value());
    suite_.finished_realtime_ns = 77;

    const auto data = reader().load_suite("latest");
    ASSERT_TRUE(data.has_value()) << data.error().to_line();
    EXPECT_EQ(data->suite, suite_);
    EXPECT_EQ(data->items, items_);
    EXPECT_THAT(data->run_ids, ElementsAre("", "run-2", ""));
    EXPECT_THAT(data->verdicts, ElementsAre("", "fail", ""));
    EXPECT_THAT(data->reasons, ElementsAre("", "slow", "host 3 is reserved"));
    EXPECT_THAT(*reader().list_suites(5), ElementsAre(suite_));
    EXPECT_EQ(sql(path_, "SELECT name, items, done, passed FROM v_suites"), "nightly|3|1|0\n");
    EXPECT_EQ(sql(path_, "SELECT state, run_id, verdict, reason FROM v_suite_items"),
              "waiting|||\ndone|run-2|fail|slow\nskipped|||host 3 is reserved\n");
}

TEST_F(SuitesTest, FindsASuiteByItsBeginningAndNamesTheOthers) {
    EXPECT_THAT(reader().load_suite("latest").error().to_line(), HasSubstr("no suite in it yet"));
    begin();
    suite_.suite_id = "20260201T000000Z-smoke-0001";
    suite_.started_realtime_ns = 1; // the clock was set back
    begin();
    EXPECT_EQ(reader().load_suite("latest")->suite.suite_id, suite_.suite_id);
    EXPECT_EQ(reader().load_suite("20260131")->suite.name, "nightly");
    EXPECT_THAT(reader().load_suite("2026").error().to_line(), HasSubstr("more than one suite's name"));
    EXPECT_THAT(reader().load_suite("x").error().to_line(), HasSubstr(suite_.suite_id));
    EXPECT_EQ(reader().list_suites(1)->size(), 1U);
}

TEST_F(SuitesTest, RefusesWhatDoesNotFit) {
    begin();
    SuiteItemRow unknown = items_[0];
    unknown.item = 7;
    EXPECT_EQ(recorder_.update_suite_item(unknown).error().kind(), ErrorKind::kInternal);
    EXPECT_EQ(recorder_.finish_suite(99, 1).error().kind(), ErrorKind::kInternal);
    SuiteItemRow wrong = items_[0];
    wrong.state = "lost";
    EXPECT_FALSE(recorder_.update_suite_item(wrong).has_value());
    wrong = items_[0];
    wrong.run = 99;
    EXPECT_FALSE(recorder_.update_suite_item(wrong).has_value()) << "there is no such run";
    EXPECT_FALSE(recorder_.begin_suite(suite_, items_).has_value()) << "the name is taken";
    EXPECT_EQ(sql(path_, "SELECT count(*) FROM suite_items"), "3\n");
}

TEST_F(SuitesTest, AnItemOutlivesItsRun) {
    begin();
    items_[0].run = runs_[0];
    items_[0].state = "done";
    ASSERT_TRUE(recorder_.update_suite_item(items_[0]).has_value());
    sql(path_, "PRAGMA foreign_keys = ON; DELETE FROM runs WHERE run_id = 'run-0'");
    items_[0].run = 0;
    EXPECT_EQ(reader().load_suite("latest")->items, items_);
}

TEST_F(SuitesTest, ABaselineIsReplacedAsAWholeAndProtectsItsRuns) {
    ASSERT_TRUE(recorder_.set_baseline("main", {runs_[2], runs_[0], runs_[0]}, 11, "after the upgrade").has_value());
    const BaselineRow first{"main", runs_[0], "run-0", 11, "after the upgrade"};
    const BaselineRow third{"main", runs_[2], "run-2", 11, "after the upgrade"};
    EXPECT_THAT(*reader().baseline("main"), ElementsAre(first, third));
    EXPECT_EQ(sql(path_, "SELECT tag, run_id, note FROM v_baselines LIMIT 1"), "main|run-0|after the upgrade\n");

    ASSERT_TRUE(recorder_.set_baseline("main", {runs_[1]}, 12, "").has_value());
    ASSERT_TRUE(recorder_.set_baseline("a", {runs_[2]}, 13, "n").has_value());
    const BaselineRow other{"a", runs_[2], "run-2", 13, "n"};
    const BaselineRow second{"main", runs_[1], "run-1", 12, ""};
    EXPECT_THAT(*reader().list_baselines(), ElementsAre(other, second));
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, "PRAGMA foreign_keys = ON; DELETE FROM runs", nullptr, nullptr, nullptr),
              SQLITE_CONSTRAINT);
    sqlite3_close(database);

    ASSERT_TRUE(recorder_.drop_baseline("main").has_value());
    EXPECT_THAT(*reader().list_baselines(), ElementsAre(other));
    EXPECT_THAT(reader().baseline("main").error().to_line(), HasSubstr("give one of: a"));
    EXPECT_EQ(recorder_.drop_baseline("main").error().kind(), ErrorKind::kInput);
}

TEST_F(SuitesTest, ALockedFileIsToldOfABaselineAsOfAllElse) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &other), SQLITE_OK);
    auto impatient = Recorder::open(path_, std::chrono::milliseconds(1));
    ASSERT_TRUE(impatient.has_value());
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    const Error of_baseline = impatient->set_baseline("main", {runs_[0]}, 1, "").error();
    const Error of_event = impatient->add_event({runs_[0], 1, "info", "s", "k", "t", "{}"}).error();
    EXPECT_EQ(of_baseline.kind(), of_event.kind());
    EXPECT_EQ(of_baseline.kind(), ErrorKind::kHarness);
    EXPECT_THAT(of_baseline.to_line(), HasSubstr("cannot set a baseline: another process keeps it locked"));
    sqlite3_close(other);
    EXPECT_TRUE(impatient->set_baseline("main", {runs_[0]}, 1, "").has_value());
}

TEST_F(SuitesTest, ABaselineNeedsRunsThatThereAre) {
    ASSERT_TRUE(recorder_.set_baseline("main", {runs_[0]}, 1, "").has_value());
    EXPECT_EQ(recorder_.set_baseline("main", {}, 2, "").error().kind(), ErrorKind::kInput);
    EXPECT_EQ(recorder_.set_baseline("", {runs_[0]}, 2, "").error().kind(), ErrorKind::kInput);
    const auto unknown = recorder_.set_baseline("main", {runs_[1], 99}, 2, "");
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("no run 99"));
    EXPECT_EQ(reader().baseline("main")->at(0).run, runs_[0]) << "the former one stays";
}

TEST_F(SuitesTest, OneProcessAtATimeGoesOnWithASuite) {
    const std::int64_t suite = begin();
    ASSERT_TRUE(recorder_.take_suite(suite).has_value()) << "it is ours already";
    const std::string ours = this_controller();
    sql(path_, "UPDATE suites SET controller = replace(controller, 'pid:[', 'pid:[7')"); // cannot be seen from here
    const auto taken = recorder_.take_suite(suite);
    ASSERT_FALSE(taken.has_value());
    EXPECT_EQ(taken.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(taken.error().to_line(), HasSubstr("is running in another process"));
    sql(path_, "UPDATE suites SET controller = 'another-boot pid:[1] 7 7'");
    EXPECT_TRUE(recorder_.take_suite(suite).has_value()) << "its process is gone";
    EXPECT_EQ(sql(path_, "SELECT controller FROM suites"), ours + "\n");
    ASSERT_TRUE(recorder_.finish_suite(suite, 5).has_value());
    sql(path_, "UPDATE suites SET controller = replace(controller, 'pid:[', 'pid:[7')");
    EXPECT_TRUE(recorder_.take_suite(suite).has_value()) << "it ended, so that nobody runs it";
    EXPECT_EQ(sql(path_, "SELECT finished_realtime_ns FROM suites"), "0\n") << "and goes on now";
    EXPECT_EQ(recorder_.take_suite(suite + 1).error().kind(), ErrorKind::kInput);
}

TEST(ControllerMark, TellsALivingProcessFromOthers) {
    const std::string mark = this_controller();
    EXPECT_TRUE(may_be_running(mark)) << mark;
    EXPECT_FALSE(may_be_running(""));
    EXPECT_FALSE(may_be_running("garbage"));
    EXPECT_FALSE(may_be_running("another-boot" + mark.substr(mark.find(' '))));
    EXPECT_FALSE(may_be_running(mark + "9")) << "another process of the same pid";
    std::string elsewhere = mark;
    elsewhere.replace(elsewhere.find("pid:["), 5, "pid:[7");
    EXPECT_TRUE(may_be_running(elsewhere)) << "cannot be seen from here";
}

} // namespace
} // namespace railbreak::record
