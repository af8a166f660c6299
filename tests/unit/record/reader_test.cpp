#include "harness/record/reader.hpp"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/location.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunReaderTest : public ::testing::Test {
protected:
    RunReaderTest() {
        auto recorder = Recorder::open(path_);
        EXPECT_TRUE(recorder.has_value());
        for (int i = 0; i < 7; ++i) {
            RunRow run = fixture_run().run;
            run.run_id = "2026013" + std::to_string(i) + "-run";
            run.started_realtime_ns += i;
            const auto id = recorder->begin_run(run);
            EXPECT_TRUE(id.has_value());
            if (i == 5) {
                EXPECT_TRUE(recorder->finish_run(*id, 9,
                                                 {{0, "run", "", "fail", "slow", {}, {}, {}},
                                                  {0, "teardown", "h3", "fail", "h3 is capped", {}, {}, {}}}));
            }
        }
    }

    RunReader reader() const {
        auto opened = RunReader::open_readonly(path_);
        EXPECT_TRUE(opened.has_value()) << opened.error().to_line();
        return std::move(*opened);
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "runs.db";
};

TEST_F(RunReaderTest, FindsARunByLatestNameOrBeginning) {
    EXPECT_EQ(reader().load_run("latest")->run.run_id, "20260136-run");
    EXPECT_EQ(reader().load_run("20260132-run")->run.run_id, "20260132-run");
    EXPECT_EQ(reader().load_run("20260133")->run.run_id, "20260133-run");
}

TEST_F(RunReaderTest, NamesTheRunsThatThereAre) {
    const auto unknown = reader().load_run("nope");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("20260136-run, 20260135-run"));
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("..."));
    EXPECT_THAT(unknown.error().to_line(), Not(HasSubstr("20260130-run"))) << "only the last few";
    EXPECT_FALSE(reader().load_run("").has_value());
    EXPECT_FALSE(reader().load_run("%").has_value());
}

TEST_F(RunReaderTest, RefusesABeginningOfSeveralNames) {
    const auto ambiguous = reader().load_run("2026");
    ASSERT_FALSE(ambiguous.has_value());
    EXPECT_THAT(ambiguous.error().to_line(), HasSubstr("more than one"));
}

TEST_F(RunReaderTest, ListsTheLastRunsFirst) {
    const auto runs = reader().list_runs(3);
    ASSERT_TRUE(runs.has_value());
    ASSERT_EQ(runs->size(), 3U);
    EXPECT_EQ(runs->at(0).run_id, "20260136-run");
    EXPECT_EQ(runs->at(0).verdict, "");
    EXPECT_EQ(runs->at(0).seed, fixture_run().run.seed);
    EXPECT_EQ(runs->at(1).verdict, "fail");
    EXPECT_EQ(runs->at(1).reason, "slow");
    EXPECT_EQ(runs->at(1).teardown_problem, "h3 is capped");
}

TEST_F(RunReaderTest, FindsTheFinishedRunsOfOneKindOldestFirst) {
    auto recorder = Recorder::open(path_);
    ASSERT_TRUE(recorder.has_value());
    RunRow run = fixture_run().run;
    const auto add = [&](const char* name, const char* scenario, const char* hash, const char* cluster, bool finished) {
        run.run_id = name;
        run.scenario_name = scenario;
        run.plan_hash = hash;
        run.cluster = cluster;
        run.started_realtime_ns -= 1'000'000'000; // the clock goes backwards
        run.finished_realtime_ns = finished ? run.started_realtime_ns + 5 : 0;
        ASSERT_TRUE(recorder->begin_run(run).has_value());
    };
    add("a1", "a", "h", "x", true);
    add("a2", "a", "h", "y", true);
    add("b1", "b", "h", "x", true);
    add("a3", "a", "i", "x", true);
    add("a4", "a", "h", "x", false);
    add("a5", "a", "h", "x", true);
    const auto found = [&](const char* scenario, const char* hash, const char* cluster, int limit) {
        std::string names;
        const auto runs = reader().find_runs(scenario, hash, cluster, limit);
        EXPECT_TRUE(runs.has_value());
        for (const RunSummary& summary : *runs) {
            names += summary.run_id + " ";
        }
        return names;
    };
    EXPECT_EQ(found("a", "", "", 9), "a1 a2 a3 a5 ");
    EXPECT_EQ(found("a", "h", "", 9), "a1 a2 a5 ");
    EXPECT_EQ(found("a", "h", "x", 9), "a1 a5 ");
    EXPECT_EQ(found("a", "", "x", 2), "a3 a5 ");
    EXPECT_EQ(found("nobody", "", "", 9), "");
    EXPECT_EQ(reader().load_run("latest")->run.run_id, "a5");
    EXPECT_EQ(reader().list_runs(2)->at(1).run_id, "a4");
}

TEST_F(RunReaderTest, ReadsWhileARunIsBeingRecorded) {
    auto recorder = Recorder::open(path_);
    ASSERT_TRUE(recorder.has_value());
    RunRow run = fixture_run().run;
    run.started_realtime_ns += 1000;
    ASSERT_TRUE(recorder->begin_run(run).has_value());
    EXPECT_EQ(reader().load_run("latest")->run.run_id, run.run_id);
}

TEST_F(RunReaderTest, SaysWhatIsMissing) {
    const auto missing = RunReader::open_readonly(folder_ / "missing.db");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(missing.error().to_line(), HasSubstr("missing.db"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "missing.db"));

    for (const std::filesystem::path& no_file : {folder_.path(), std::filesystem::path("/dev/null")}) {
        const auto opened = RunReader::open_readonly(no_file);
        ASSERT_FALSE(opened.has_value());
        EXPECT_EQ(opened.error().kind(), ErrorKind::kInput);
        const auto writable = Recorder::open(no_file);
        ASSERT_FALSE(writable.has_value());
        EXPECT_EQ(writable.error().kind(), ErrorKind::kInput);
    }
    EXPECT_FALSE(std::filesystem::exists("/dev/null-journal")) << "SQLite has put a file beside a device";

    std::ofstream(folder_ / "empty.db").flush();
    const auto empty = RunReader::open_readonly(folder_ / "empty.db");
    ASSERT_FALSE(empty.has_value());
    EXPECT_THAT(empty.error().to_line(), HasSubstr("empty"));

    ASSERT_TRUE(Recorder::open(folder_ / "fresh.db").has_value());
    const auto none = RunReader::open_readonly(folder_ / "fresh.db")->load_run("latest");
    ASSERT_FALSE(none.has_value());
    EXPECT_THAT(none.error().to_line(), HasSubstr("no run in it yet"));
}

// Sets environment variables for one test.
class Environment {
public:
    ~Environment() {
        for (const auto& [name, value] : former_) {
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
        }
    }
    void set(const char* name, const char* value) {
        const char* now = std::getenv(name);
        former_.emplace_back(name, now != nullptr ? std::optional<std::string>(now) : std::nullopt);
        value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
    }

private:
    std::vector<std::pair<std::string, std::optional<std::string>>> former_;
};

TEST(DefaultDatabasePath, FollowsTheVariablesInOrder) {
    Environment environment;
    environment.set("RAILBREAK_DB", nullptr);
    environment.set("XDG_STATE_HOME", nullptr);
    environment.set("HOME", "/home/someone");
    EXPECT_EQ(*default_database_path(), "/home/someone/.local/state/railbreak/railbreak.db");
    environment.set("XDG_STATE_HOME", "relative/is/ignored");
    EXPECT_EQ(*default_database_path(), "/home/someone/.local/state/railbreak/railbreak.db");
    environment.set("XDG_STATE_HOME", "/state");
    EXPECT_EQ(*default_database_path(), "/state/railbreak/railbreak.db");
    environment.set("RAILBREAK_DB", "here.db");
    EXPECT_EQ(*default_database_path(), "here.db");
    environment.set("RAILBREAK_DB", nullptr);
    environment.set("XDG_STATE_HOME", nullptr);
    environment.set("HOME", nullptr);
    EXPECT_EQ(default_database_path().error().kind(), ErrorKind::kUsage);
}

TEST(MakeRunId, SortsByTimeAndTellsRunsOfOneSecondApart) {
    const Nanoseconds at(1'769'862'896'123'456'789);
    EXPECT_EQ(make_run_id(at, "half-rate-nic", 0x3f9c), "20260131T123456Z-half-rate-nic-3f9c");
    EXPECT_EQ(make_run_id(at, "../Odd  name!", 0), "20260131T123456Z-odd-name-0000");
    EXPECT_EQ(make_run_id(at, "", 1), "20260131T123456Z-run-0001");
    EXPECT_NE(make_run_id(at, "a", 1ULL << 40), make_run_id(at, "a", 0));
    EXPECT_LT(make_run_id(at, "z", 9), make_run_id(at + std::chrono::seconds(1), "a", 1));
}

TEST_F(RunReaderTest, EventsOfARunGoOnWhereTheyWereLeft) {
    auto recorder = Recorder::open(path_);
    ASSERT_TRUE(recorder.has_value());
    for (std::int64_t at = 1; at <= 6; ++at) { // of two runs by turns
        ASSERT_TRUE(recorder->add_event({1 + at % 2, at, "info", "rank 3", "phase", std::to_string(at), "{}"}));
    }
    const RunReader opened = reader();
    const auto first = opened.events_since(1, 0, 2);
    ASSERT_TRUE(first.has_value());
    ASSERT_EQ(first->size(), 2U);
    EXPECT_EQ(first->front().event.text, "2");
    EXPECT_EQ(first->back().event.text, "4");
    const auto rest = opened.events_since(1, first->back().id, 2);
    ASSERT_TRUE(rest.has_value());
    ASSERT_EQ(rest->size(), 1U);
    EXPECT_EQ(rest->front().event, (EventRow{1, 6, "info", "rank 3", "phase", "6", "{}"}));
    EXPECT_TRUE(opened.events_since(1, rest->front().id, 2)->empty());
}

TEST_F(RunReaderTest, StateOfARunTellsWhetherItGoesOn) {
    auto recorder = Recorder::open(path_);
    ASSERT_TRUE(recorder.has_value());
    RunRow run = fixture_run().run;
    run.run_id = "20260137-run";
    run.finished_realtime_ns = 0;
    ASSERT_TRUE(recorder->begin_run(run).has_value());
    const RunReader opened = reader();
    const auto going = opened.run_state(*opened.find_run("latest"));
    ASSERT_TRUE(going.has_value());
    EXPECT_EQ(going->run_id, "20260137-run");
    EXPECT_FALSE(going->finished);
    EXPECT_FALSE(going->controller_gone) << "this process began it";
    EXPECT_EQ(going->origin, 0);
    const auto ended = opened.run_state(*opened.find_run("20260135"));
    ASSERT_TRUE(ended.has_value());
    EXPECT_TRUE(ended->finished);
    ASSERT_EQ(ended->verdicts.size(), 2U);
    EXPECT_EQ(ended->verdicts.front().reason, "slow");
}

} // namespace
} // namespace railbreak::record
