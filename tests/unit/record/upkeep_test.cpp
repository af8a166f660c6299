// Checking, pruning and exporting a database.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/check.hpp"
#include "harness/record/export.hpp"
#include "harness/record/figures_json.hpp"
#include "harness/record/prune.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/plain_sql.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/store_run.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kDay = 86'400'000'000'000;

class UpkeepTest : public ::testing::Test {
protected:
    // A run that started `day` days after 1970; "" for the verdict: unfinished.
    std::int64_t add(const std::string& name, const std::string& scenario, std::int64_t day,
                     const std::string& verdict) {
        RunRow run = fixture_run().run;
        run.run_id = name;
        run.scenario_name = scenario;
        run.started_realtime_ns = day * kDay;
        run.finished_realtime_ns = 0;
        const auto id = recorder_.begin_run(run);
        EXPECT_TRUE(id.has_value()) << id.error().to_line();
        if (!verdict.empty()) {
            EXPECT_TRUE(recorder_.finish_run(*id, day * kDay + 9, {{0, "run", "", verdict, "why", {}, {}, {}}}));
        }
        return *id;
    }

    // What would go by these rules on day 100.
    std::string pruned(Retention retention) const {
        retention.now = Nanoseconds(100 * kDay);
        const auto plan = plan_prune(path_, retention);
        EXPECT_TRUE(plan.has_value()) << plan.error().to_line();
        std::string names;
        for (const PrunedRun& run : plan->runs) {
            names += run.run_id + " ";
        }
        return names;
    }

    // As if the controllers of all runs had gone.
    void forget_controllers() { sql(path_, "UPDATE runs SET controller = ''"); }

    std::string content(const std::filesystem::path& file) const {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "runs.db";
    Recorder recorder_ = std::move(*Recorder::open(path_));
};

TEST_F(UpkeepTest, AGoodDatabaseHasNoFindings) {
    ASSERT_TRUE(store_run(recorder_, fixture_run()).has_value());
    const auto check = check_database(path_);
    ASSERT_TRUE(check.has_value()) << check.error().to_line();
    EXPECT_TRUE(check->ok());
    EXPECT_THAT(check->findings, IsEmpty());
    EXPECT_EQ(check->runs, 1);
    EXPECT_EQ(check->schema_version, 4);
    EXPECT_GT(check->file_bytes, 0);
}

TEST_F(UpkeepTest, FindsRunsAndSuitesWhoseControllerIsGone) {
    add("a", "s", 1, "");
    SuiteRow suite;
    suite.suite_id = "nightly-1";
    ASSERT_TRUE(recorder_.begin_suite(suite, {}).has_value());
    auto check = check_database(path_);
    ASSERT_TRUE(check.has_value());
    EXPECT_TRUE(check->ok()) << "this process lives";
    ASSERT_EQ(check->findings.size(), 2U);
    EXPECT_THAT(check->findings[0].text, HasSubstr("run a is being recorded"));

    forget_controllers();
    sql(path_, "UPDATE suites SET controller = ''");
    check = check_database(path_);
    EXPECT_FALSE(check->ok());
    EXPECT_THAT(check->findings[0].text, HasSubstr("run a never ended and its controller is gone"));
    EXPECT_THAT(check->findings[1].text, HasSubstr("suite nightly-1 was interrupted with 0 of 0 items done"));
}

TEST_F(UpkeepTest, FindsDamageAndRowsThatBelongToNothing) {
    const auto run = store_run(recorder_, fixture_run());
    ASSERT_TRUE(run.has_value());
    sql(path_, "PRAGMA foreign_keys = OFF; DELETE FROM hosts WHERE host = 3; PRAGMA wal_checkpoint(TRUNCATE)");
    auto check = check_database(path_);
    ASSERT_TRUE(check.has_value());
    ASSERT_FALSE(check->ok());
    EXPECT_THAT(check->findings[0].text, HasSubstr("1 rows of nics belong to no row of hosts"));

    const std::string page = sql(path_, "SELECT rootpage FROM sqlite_master WHERE name = 'rank_iterations'");
    {
        std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp((std::stol(page) - 1) * 4096 + 3);
        file << std::string(200, '\xFF');
    }
    check = check_database(path_);
    ASSERT_TRUE(check.has_value()) << check.error().to_line();
    EXPECT_FALSE(check->ok());
    EXPECT_EQ(check->findings[0].kind, "damage");

    std::ofstream(folder_ / "garbage") << std::string(5000, 'x');
    EXPECT_EQ(check_database(folder_ / "garbage").error().kind(), ErrorKind::kInput);
    EXPECT_EQ(check_database(folder_ / "missing").error().kind(), ErrorKind::kInput);
}

TEST_F(UpkeepTest, PrunesByCountPerScenarioAndByAge) {
    add("a1", "a", 10, "pass");
    add("b1", "b", 20, "pass");
    add("a2", "a", 30, "fail");
    add("a3", "a", 60, "pass");
    add("a4", "a", 90, "pass");
    add("b2", "b", 91, "pass");
    EXPECT_EQ(pruned({.keep = 1}), "a1 b1 a2 a3 ");
    EXPECT_EQ(pruned({.keep = 2}), "a1 a2 ");
    EXPECT_EQ(pruned({.older_than = Nanoseconds(50 * kDay)}), "a1 b1 a2 ");
    EXPECT_EQ(pruned({.keep = 2, .older_than = Nanoseconds(80 * kDay)}), "a1 ") << "each rule must let it go";
    EXPECT_EQ(pruned({.keep = 1, .keep_failed = true}), "a1 b1 a3 ");
    EXPECT_EQ(plan_prune(path_, {}).error().kind(), ErrorKind::kUsage);
}

TEST_F(UpkeepTest, ASimulatedRunDoesNotStandForAMeasuredOne) {
    add("measured", "a", 1, "pass");
    add("simulated1", "a", 2, "pass");
    add("simulated2", "a", 3, "pass");
    sql(path_, "UPDATE runs SET backend = 'sim', cluster = 'sim' WHERE run_id LIKE 'simulated%'");
    EXPECT_EQ(pruned({.keep = 1}), "simulated1 ");
    EXPECT_EQ(pruned({.older_than = Nanoseconds(0)}), "simulated1 ") << "each kind keeps its latest pass";
}

TEST_F(UpkeepTest, NeverPrunesBaselinesLivingRunsAndTheLatestPass) {
    const std::int64_t tagged = add("tagged", "a", 1, "pass");
    add("passed", "a", 2, "pass");
    add("running", "a", 3, "");
    add("failed1", "a", 4, "fail");
    add("failed2", "a", 5, "fail");
    ASSERT_TRUE(recorder_.set_baseline("main", {tagged}, 1, "").has_value());
    const Retention everything{.older_than = Nanoseconds(0), .now = Nanoseconds(100 * kDay)};
    const auto plan = plan_prune(path_, everything);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(pruned(everything), "failed1 failed2 ");
    EXPECT_EQ(plan->all, 5);
    EXPECT_EQ(plan->baseline, 1);
    EXPECT_EQ(plan->latest_pass, 1);
    EXPECT_EQ(plan->recording, 1);
    EXPECT_EQ(pruned({.unfinished = true}), "");
    forget_controllers();
    EXPECT_EQ(pruned({.unfinished = true}), "running ");
    EXPECT_EQ(pruned(everything), "running failed1 failed2 ");
}

TEST_F(UpkeepTest, DeletesARunWithAllThatIsItsAndNothingElse) {
    RunData data = fixture_run();
    data.run.run_id = "keep";
    ASSERT_TRUE(store_run(recorder_, data).has_value());
    data.run.run_id = "go";
    const auto go = store_run(recorder_, data);
    data.run.run_id = "late";
    const auto late = store_run(recorder_, data);
    ASSERT_TRUE(go && late);
    PrunePlan plan;
    plan.runs = {{*go, "go", ""}, {*late, "late", ""}, {999, "gone already", ""}};
    ASSERT_TRUE(recorder_.set_baseline("since", {*late}, 1, "").has_value());
    std::vector<std::string> deleted;
    const auto done = prune(path_, plan, true, [&](const PrunedRun& run) { deleted.push_back(run.run_id); });
    ASSERT_TRUE(done.has_value()) << done.error().to_line();
    EXPECT_THAT(deleted, ElementsAre("go"));
    EXPECT_EQ(sql(path_, "SELECT run_id FROM runs"), "keep\nlate\n");
    EXPECT_EQ(sql(path_, "SELECT count(*) FROM rank_iterations"), "480\n");
    EXPECT_TRUE(check_database(path_)->ok());
    RunData kept = fixture_run();
    kept.run.run_id = "keep";
    EXPECT_EQ(RunReader::open_readonly(path_)->load_run("keep")->run, kept.run);
}

TEST_F(UpkeepTest, ASuiteKeepsTheOutcomesOfRunsThatArePruned) {
    RunData passed = fixture_run();
    passed.verdicts = {{0, "run", "", "pass", "all 5 checks passed", {}, {}, {}}};
    const auto good = store_run(recorder_, passed);
    const std::int64_t failed = add("failed", "s", 2, "fail");
    const std::int64_t dead = add("dead", "s", 3, "");
    ASSERT_TRUE(good.has_value());
    SuiteRow suite;
    suite.suite_id = "nightly-1";
    std::vector<SuiteItemRow> items;
    for (const std::int64_t run : {*good, failed, dead}) {
        const auto place = static_cast<std::int32_t>(items.size());
        items.push_back({.item = place, .name = std::to_string(place), .state = "done", .run = run, .attempts = 1});
    }
    ASSERT_TRUE(recorder_.begin_suite(suite, items).has_value());
    const auto reader = RunReader::open_readonly(path_);
    const SuiteData before = *reader->load_suite("latest");
    const RunData whole = *reader->load_run(fixture_run().run.run_id);
    EXPECT_EQ(before.verdicts, (std::vector<std::string>{"pass", "fail", ""}));
    PrunePlan plan;
    plan.runs = {{*good, whole.run.run_id, "pass"}, {failed, "failed", "fail"}, {dead, "dead", ""}};
    ASSERT_TRUE(prune(path_, plan, false, [](const PrunedRun&) {}).has_value());

    const SuiteData after = *reader->load_suite("latest");
    EXPECT_EQ(after.verdicts, before.verdicts);
    EXPECT_EQ(after.reasons, before.reasons);
    EXPECT_THAT(after.run_ids, ElementsAre("", "", ""));
    const PrunedOutcome& kept = after.items[0].pruned;
    EXPECT_EQ(kept.run_id, whole.run.run_id);
    EXPECT_EQ(kept.started_realtime_ns, whole.run.started_realtime_ns);
    EXPECT_EQ(kept.finished_realtime_ns, whole.run.finished_realtime_ns);
    EXPECT_EQ(kept.figures_json, figures_json(phase_statistics(whole)));
    EXPECT_EQ(figures_json(parse_figures(kept.figures_json)), kept.figures_json) << "every digit";
    EXPECT_THAT(parse_figures("[{\"phase\":7,\"wrong\":\"x\"},3]"), ::testing::SizeIs(1));
    EXPECT_THAT(parse_figures("no json"), IsEmpty());
    EXPECT_EQ(sql(path_, "SELECT passed FROM v_suites; SELECT verdict, pruned_run_id FROM v_suite_items"),
              "1\npass|" + whole.run.run_id + "\nfail|failed\n|dead\n");
}

TEST_F(UpkeepTest, ExportsCsvThatKeepsEveryCharacter) {
    add("a", "half, \"rate\"", 1, "pass");
    const ExportOptions options{.tables = {"v_verdicts", "runs"}, .folder = folder_ / "out"};
    const auto tables = export_tables(path_, options);
    ASSERT_TRUE(tables.has_value()) << tables.error().to_line();
    ASSERT_EQ(tables->size(), 2U);
    EXPECT_EQ(tables->at(0).rows, 1);
    EXPECT_EQ(content(folder_ / "out/v_verdicts.csv"),
              "run_id,scope,subject,verdict,reason,measured,limit_min,limit_max\r\na,run,\"\",pass,why,,,\r\n");
    const std::string runs = content(folder_ / "out/runs.csv");
    EXPECT_THAT(runs, HasSubstr("\r\n1,a,\"half, \"\"rate\"\"\",\"version: 1\nname: half-rate-nic\n\","));
    EXPECT_THAT(runs, HasSubstr(",18446744073709551615,lab,"));
}

TEST_F(UpkeepTest, NoTextOfACsvIsAFormula) {
    const std::int64_t run = add("a", "s", 1, "pass");
    std::int64_t at = -5;
    for (const std::string text : {"=1+1", "+1", "-2.5e3", "-2-3", "@SUM(1)", "\tx", "\r=1", "-inf", "a=1", "-"}) {
        ASSERT_TRUE(recorder_.add_event({run, at++, "info", "-s", "k", text, "{}"}));
    }
    const ExportOptions options{.tables = {"v_events"}, .folder = folder_ / "out"};
    ASSERT_TRUE(export_tables(path_, options).has_value());
    EXPECT_EQ(content(folder_ / "out/v_events.csv"), "run_id,at,level,source,kind,text\r\n"
                                                     "a,-5,info,'-s,k,'=1+1\r\n"
                                                     "a,-4,info,'-s,k,+1\r\n"
                                                     "a,-3,info,'-s,k,-2.5e3\r\n"
                                                     "a,-2,info,'-s,k,'-2-3\r\n"
                                                     "a,-1,info,'-s,k,'@SUM(1)\r\n"
                                                     "a,0,info,'-s,k,'\tx\r\n"
                                                     "a,1,info,'-s,k,\"'\r=1\"\r\n"
                                                     "a,2,info,'-s,k,'-inf\r\n"
                                                     "a,3,info,'-s,k,a=1\r\n"
                                                     "a,4,info,'-s,k,'-\r\n");
    const ExportOptions lines{.format = ExportFormat::kJsonLines, .tables = {"v_events"}, .folder = folder_ / "out"};
    ASSERT_TRUE(export_tables(path_, lines).has_value());
    EXPECT_THAT(content(folder_ / "out/v_events.jsonl"), HasSubstr("\"text\":\"=1+1\""));
}

TEST_F(UpkeepTest, ExportsOneRunAsJsonLines) {
    add("before", "s", 1, "pass");
    RunData data = fixture_run();
    data.artefacts = {{0, "log", "text/plain", std::string("a\xFF\0\n", 4)}};
    ASSERT_TRUE(store_run(recorder_, data).has_value());
    const ExportOptions options{.format = ExportFormat::kJsonLines, .run = data.run.run_id, .folder = folder_ / "out"};
    const auto tables = export_tables(path_, options);
    ASSERT_TRUE(tables.has_value()) << tables.error().to_line();
    EXPECT_EQ(tables->size(), 15U) << "all tables, no view";
    EXPECT_EQ(content(folder_ / "out/artefacts.jsonl"),
              "{\"run\":2,\"name\":\"log\",\"media_type\":\"text/plain\",\"content\":\"a\xEF\xBF\xBD\\u0000\\n\"}\n");
    std::istringstream bounds(content(folder_ / "out/bounds.jsonl"));
    std::string line;
    std::getline(bounds, line);
    EXPECT_EQ(line, "{\"run\":2,\"algorithm\":\"optcc\",\"phase\":\"degraded\",\"name\":\"Theorem 6\",\"model\":"
                    "\"exclusive\",\"branch\":\"spanning trees\",\"slowdown\":2,\"time_over_n\":2.25,"
                    "\"time_ns\":1263556016}");
    for (const ExportedTable& table : *tables) {
        if (table.table == "rank_iterations") {
            EXPECT_EQ(table.rows, 240);
        }
        if (table.table == "runs") {
            EXPECT_EQ(table.rows, 1);
        }
    }
}

TEST_F(UpkeepTest, EveryTableAndViewOfTheSchemaCanBeExported) {
    ASSERT_TRUE(store_run(recorder_, fixture_run()).has_value());
    std::vector<std::string> sorted(exportable_tables().begin(), exportable_tables().end());
    std::ranges::sort(sorted);
    std::string names;
    for (const std::string& name : sorted) {
        names += name + "\n";
    }
    EXPECT_EQ(names, sql(path_, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
                                "'sqlite%' ORDER BY name"))
        << "a new one belongs into the list, too";
    ExportOptions options{.run = "latest", .folder = folder_ / "out"};
    options.tables.assign(exportable_tables().begin(), exportable_tables().end());
    const auto tables = export_tables(path_, options);
    ASSERT_TRUE(tables.has_value()) << tables.error().to_line();
    EXPECT_EQ(tables->size(), exportable_tables().size());
}

TEST_F(UpkeepTest, SaysWhatCannotBeExported) {
    add("a", "s", 1, "pass");
    const auto unknown = export_tables(path_, {.tables = {"nothing"}, .folder = folder_ / "out"});
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("there is no table \"nothing\""));
    EXPECT_THAT(unknown.error().to_line(), HasSubstr("rank_iterations"));
    EXPECT_THAT(export_tables(path_, {.run = "x", .folder = folder_ / "out"}).error().to_line(),
                HasSubstr("there is no run \"x\""));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
    std::ofstream(folder_ / "file").flush();
    EXPECT_EQ(export_tables(path_, {.folder = folder_ / "file"}).error().kind(), ErrorKind::kInput);
    EXPECT_THAT(parse_export_format("parquet").error().to_line(), HasSubstr("Debian packages no library"));
    EXPECT_THAT(parse_export_format("xls").error().to_line(), HasSubstr("give csv or jsonl"));
}

} // namespace
} // namespace railbreak::record
