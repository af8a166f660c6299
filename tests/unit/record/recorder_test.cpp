#include "harness/record/recorder.hpp"

#include <fcntl.h>
#include <fstream>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/schema.hpp"
#include "tests/unit/record/plain_sql.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/store_run.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::HasSubstr;

Recorder opened(const std::filesystem::path& path) {
    auto recorder = Recorder::open(path);
    EXPECT_TRUE(recorder.has_value()) << recorder.error().to_line();
    return std::move(*recorder);
}

TEST(Recorder, GivesBackEveryColumnOfEveryTable) {
    const TemporaryFolder folder;
    RunData wanted = fixture_run();
    wanted.verdicts = {{1, "run", "", "fail", "because", 1.25, std::nullopt, 1.1},
                       {1, "teardown", "", "pass", "", std::nullopt, std::nullopt, std::nullopt}};
    wanted.artefacts = {{1, "log", "text/plain", std::string("a\0b \xC3\xA9", 6)}};
    Recorder recorder = opened(folder / "runs.db");
    const auto id = store_run(recorder, wanted);
    ASSERT_TRUE(id.has_value()) << id.error().to_line();

    const auto reader = RunReader::open_readonly(folder / "runs.db");
    ASSERT_TRUE(reader.has_value()) << reader.error().to_line();
    const auto got = reader->load_run("latest");
    ASSERT_TRUE(got.has_value()) << got.error().to_line();

    EXPECT_EQ(got->run, wanted.run);
    EXPECT_EQ(got->hosts, wanted.hosts);
    EXPECT_EQ(got->nics, wanted.nics);
    EXPECT_EQ(got->ranks, wanted.ranks);
    EXPECT_EQ(got->injections, wanted.injections);
    EXPECT_EQ(got->events, wanted.events);
    EXPECT_EQ(got->iterations, wanted.iterations);
    EXPECT_EQ(got->rank_iterations, wanted.rank_iterations);
    EXPECT_EQ(got->counters, wanted.counters);
    EXPECT_THAT(got->bounds, ::testing::UnorderedElementsAreArray(wanted.bounds));
    EXPECT_EQ(got->verdicts, wanted.verdicts);
    EXPECT_EQ(got->artefacts, wanted.artefacts);
}

TEST(Recorder, SetsWhatProtectsTheData) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    {
        const Recorder recorder = opened(path);
        EXPECT_EQ(sql(path, "PRAGMA journal_mode"), "wal\n");
    }
    EXPECT_EQ(sql(path, "PRAGMA application_id"), "1380010316\n");
    EXPECT_EQ(sql(path, "PRAGMA user_version"), "4\n");
    EXPECT_EQ(sql(path, "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND "
                        "name NOT LIKE 'sqlite%' AND NOT strict"),
              "0\n");
}

// A run as an older schema held it, made by the migrations up to it.
void make_version(const std::filesystem::path& path, std::int32_t version) {
    std::string script;
    for (std::int32_t step = 1; step <= version; ++step) {
        script += migration_to(step);
    }
    sql(path, script + fmt::format("INSERT INTO runs(id, run_id, scenario_name, scenario_text, plan_json, plan_hash, "
                                   "seed, backend, version, command_line, environment_json, started_realtime_ns, "
                                   "finished_realtime_ns, hosts, bytes, dtype, rate_bits_per_s) "
                                   "VALUES(1,'r','s','','{{}}','h','1','sim','v','','{{}}',1,2,2,4,'float32',8);"
                                   "INSERT INTO injections(id, run, fault, name, kind, algorithm, host, nic, "
                                   "direction, wanted_rate_bits_per_s, ordered_at, applied_at, observed_at, "
                                   "reverted_at, restored_at, mechanism, realism, data_path, observation_json, "
                                   "measured_send_bits_per_s, measured_receive_bits_per_s, error) "
                                   "VALUES(1,1,0,'f','cap','ring',1,0,'both',9,1,2,3,4,5,'m','port','p','{{}}',7,8,'');"
                                   "PRAGMA application_id = 1380010316; PRAGMA user_version = {};",
                                   version));
}

TEST(Recorder, ReadsOlderSchemasAsTheyAreAndLiftsThem) {
    for (const std::int32_t version : {1, 2, 3}) {
        const TemporaryFolder folder;
        const auto path = folder / "runs.db";
        make_version(path, version);
        for (const bool lifted : {false, true}) {
            const auto reader = RunReader::open_readonly(path);
            ASSERT_TRUE(reader.has_value()) << reader.error().to_line();
            const auto data = reader->load_run("latest");
            ASSERT_TRUE(data.has_value()) << data.error().to_line();
            EXPECT_EQ(data->run.cluster, lifted && version < 3 ? "sim" : "");
            ASSERT_EQ(data->injections.size(), 1U);
            EXPECT_EQ(data->injections[0].measured_receive_bits_per_s, 8);
            EXPECT_EQ(data->injections[0].rank, -1);
            EXPECT_EQ(data->injections[0].params_json, "{}");
            EXPECT_EQ(data->injections[0].collateral_json, "[]");
            EXPECT_EQ(reader->list_runs(10)->size(), 1U);
            EXPECT_EQ(reader->find_runs("s", "h", "", 10)->size(), 1U);
            EXPECT_EQ(reader->find_runs("s", "h", "sim", 10)->size(), lifted && version < 3 ? 1U : 0U);
            EXPECT_TRUE(reader->list_suites(10)->empty());
            EXPECT_TRUE(reader->list_baselines()->empty());
            EXPECT_THAT(reader->load_suite("latest").error().to_line(), HasSubstr("no suite in it yet"));
            EXPECT_THAT(reader->baseline("t").error().to_line(), HasSubstr("no baseline \"t\""));
            EXPECT_EQ(sql(path, "PRAGMA user_version"), fmt::format("{}\n", lifted ? kSchemaVersion : version));
            opened(path); // lifts it
        }
        EXPECT_EQ(sql(path, "SELECT name, nic, rank FROM v_injections"), "f|0|\n");
        EXPECT_EQ(sql(path, "PRAGMA integrity_check; PRAGMA foreign_key_check"), "ok\n");
    }
}

TEST(Recorder, MakesMissingFoldersAndKeepsEarlierRuns) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "a" / "b" / "runs.db";
    for (int i = 0; i < 2; ++i) {
        Recorder recorder = opened(path);
        RunData data = fixture_run();
        data.run.run_id += std::to_string(i);
        ASSERT_TRUE(store_run(recorder, data).has_value());
    }
    EXPECT_EQ(sql(path, "SELECT count(*) FROM runs"), "2\n");
}

TEST(Recorder, FillsInWhatIsMeasuredLater) {
    const TemporaryFolder folder;
    Recorder recorder = opened(folder / "runs.db");
    RunData data = fixture_run();
    const auto run = store_run(recorder, data);
    ASSERT_TRUE(run.has_value());
    NicRow nic = data.nics[2];
    nic.run = *run;
    nic.send_goodput_bits_per_s = 42;
    ASSERT_TRUE(recorder.add_nic(nic).has_value());
    InjectionRow injection = data.injections[0];
    injection.run = *run;
    injection.observed_at = 0;
    const auto id = recorder.add_injection(injection);
    ASSERT_TRUE(id.has_value());
    injection.id = *id;
    injection.observed_at = 99;
    injection.error = "late";
    ASSERT_TRUE(recorder.update_injection(injection).has_value());

    const auto got = RunReader::open_readonly(folder / "runs.db")->load_run("latest");
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(got->nics.size(), data.nics.size());
    EXPECT_EQ(got->nics[2], nic);
    EXPECT_EQ(got->injections.back(), injection);
}

TEST(Recorder, ReplacesVerdictsWhenARunIsJudgedAgain) {
    const TemporaryFolder folder;
    Recorder recorder = opened(folder / "runs.db");
    const auto run = store_run(recorder, fixture_run());
    ASSERT_TRUE(run.has_value());
    ASSERT_TRUE(recorder.finish_run(*run, 5, {{0, "run", "", "fail", "first", {}, {}, {}}}).has_value());
    ASSERT_TRUE(recorder.finish_run(*run, 6, {{0, "run", "", "pass", "", {}, {}, {}}}).has_value());
    const auto got = RunReader::open_readonly(folder / "runs.db")->load_run("latest");
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(got->verdicts.size(), 1U);
    EXPECT_EQ(got->verdicts[0].verdict, "pass");
    EXPECT_EQ(got->run.finished_realtime_ns, 6);
}

TEST(Recorder, RefusesRowsThatBelongToNothing) {
    const TemporaryFolder folder;
    Recorder recorder = opened(folder / "runs.db");
    const RunData data = fixture_run();
    EXPECT_FALSE(recorder.add_host(data.hosts[0]).has_value()) << "there is no run 1 yet";
    EXPECT_FALSE(recorder.add_iteration(data.iterations[0], {}).has_value());
    InjectionRow unknown;
    unknown.id = 77;
    const auto updated = recorder.update_injection(unknown);
    ASSERT_FALSE(updated.has_value());
    EXPECT_EQ(updated.error().kind(), ErrorKind::kInternal);
    EXPECT_FALSE(recorder.finish_run(77, 1, {}).has_value());
}

TEST(Recorder, StoresNothingOfAnIterationWithABadRank) {
    const TemporaryFolder folder;
    Recorder recorder = opened(folder / "runs.db");
    RunData data = fixture_run();
    data.iterations.clear();
    const auto run = store_run(recorder, data);
    ASSERT_TRUE(run.has_value());
    IterationRow row = fixture_run().iterations[0];
    row.run = *run;
    const RankIterationRow rank = data.rank_iterations[0];
    const auto stored = recorder.add_iteration(row, {rank, rank});
    ASSERT_FALSE(stored.has_value()) << "the same rank twice";
    EXPECT_EQ(sql(folder / "runs.db", "SELECT count(*) FROM iterations"), "0\n");
    EXPECT_EQ(sql(folder / "runs.db", "SELECT count(*) FROM rank_iterations"), "0\n");
}

TEST(Recorder, RefusesGarbageForeignAndNewerFilesAndLeavesThemAlone) {
    const TemporaryFolder folder;
    const std::string garbage(5000, 'x');
    std::ofstream(folder / "garbage.db") << garbage;
    sql(folder / "foreign.db", "CREATE TABLE notes(text)");
    { const Recorder recorder = opened(folder / "newer.db"); }
    sql(folder / "newer.db", "PRAGMA user_version = 9");

    const auto refusal = [&](const char* name) {
        const auto written = Recorder::open(folder / name);
        EXPECT_FALSE(written.has_value()) << name;
        const auto read = RunReader::open_readonly(folder / name);
        EXPECT_FALSE(read.has_value()) << name;
        EXPECT_EQ(written.error().kind(), ErrorKind::kInput);
        EXPECT_EQ(read.error().kind(), ErrorKind::kInput);
        EXPECT_THAT(written.error().message(), HasSubstr((folder / name).string()));
        return written.error().message();
    };
    EXPECT_THAT(refusal("garbage.db"), HasSubstr("not a database"));
    EXPECT_THAT(refusal("foreign.db"), HasSubstr("another program"));
    EXPECT_THAT(refusal("newer.db"), HasSubstr("written by a newer railbreak"));

    std::ifstream file(folder / "garbage.db");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), garbage);
    EXPECT_EQ(sql(folder / "foreign.db", "SELECT name FROM sqlite_master"), "notes\n");
    EXPECT_EQ(sql(folder / "foreign.db", "PRAGMA journal_mode"), "delete\n");
}

TEST(Recorder, NamesAFolderThatCannotBeMade) {
    const TemporaryFolder folder;
    std::ofstream(folder / "file") << "in the way";
    const auto opened = Recorder::open(folder.path() / "file" / "sub" / "runs.db");
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(opened.error().to_line(), HasSubstr("cannot make the folder"));
}

// Runs `action` in a child without root's power over file permissions; gives its exit status.
template <class Action> int as_ordinary_user(Action action) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) {
            ::_exit(99);
        }
        ::_exit(action());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Recorder, SaysThatAFileIsReadOnlyAndStillReadsIt) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    {
        Recorder recorder = opened(path);
        ASSERT_TRUE(store_run(recorder, fixture_run()).has_value());
    }
    std::filesystem::permissions(path, std::filesystem::perms(0444));
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
    const int written = as_ordinary_user([&] {
        const auto recorder = Recorder::open(path);
        return !recorder.has_value() && recorder.error().kind() == ErrorKind::kInput &&
                       recorder.error().to_line().find("read-only") != std::string::npos
                   ? 0
                   : 1;
    });
    EXPECT_EQ(written, 0);
    const int read = as_ordinary_user([&] {
        const auto reader = RunReader::open_readonly(path);
        return reader.has_value() && reader->load_run("latest").has_value() ? 0 : 1;
    });
    EXPECT_EQ(read, 0);
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(Recorder, WaitsForAnotherWritersLockOnlyUpToItsLimit) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    auto recorder = Recorder::open(path, std::chrono::milliseconds(50));
    ASSERT_TRUE(recorder.has_value());
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);

    const auto refused = recorder->begin_run(fixture_run().run);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kHarness);
    EXPECT_THAT(refused.error().to_line(), HasSubstr("another process keeps it locked"));
    EXPECT_THAT(refused.error().to_line(), HasSubstr(path.string()));

    ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
    EXPECT_TRUE(recorder->begin_run(fixture_run().run).has_value()) << "and works again once the lock is gone";
}

TEST(Recorder, SurvivesSeveralProcessesThatCreateOneFile) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    constexpr int kWriters = 6;
    std::vector<pid_t> children;
    for (int i = 0; i < kWriters; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto recorder = Recorder::open(path, std::chrono::seconds(20));
            if (!recorder) {
                ::dprintf(2, "%s\n", recorder.error().to_line().c_str());
                ::_exit(1);
            }
            RunRow run = fixture_run().run;
            run.run_id += std::to_string(i);
            ::_exit(recorder->begin_run(run).has_value() ? 0 : 2);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(sql(path, "SELECT count(*) FROM runs"), std::to_string(kWriters) + "\n");
}

TEST(Recorder, OffersViewsForPeopleWithTheShell) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    Recorder recorder = opened(path);
    RunData data = fixture_run();
    data.verdicts = {{1, "run", "", "fail", "because", {}, {}, {}}};
    ASSERT_TRUE(store_run(recorder, data).has_value());
    EXPECT_THAT(sql(path, "SELECT run_id, verdict, reason, took_s FROM v_runs"),
                HasSubstr("20260131T123456Z-half-rate-nic-3f9c|fail|because|41.877"));
    EXPECT_EQ(sql(path, "SELECT count(*), min(start_ms) FROM v_iterations"), "30|0.0\n");
    EXPECT_EQ(sql(path, "SELECT count(*), min(correct) FROM v_rank_iterations"), "240|1\n");
    EXPECT_THAT(sql(path, "SELECT name, observed_after_ms FROM v_injections"), HasSubstr("half|1.377\n"));
    EXPECT_EQ(sql(path, "SELECT count(*) FROM v_events"), "2\n");
    EXPECT_EQ(sql(path, "SELECT verdict FROM v_verdicts"), "fail\n");
    // Median of three iterations: the second, 1.01 bounds and 2 ms.
    EXPECT_EQ(sql(path, "SELECT n, vs_healthy, overhead_fluid FROM v_summary WHERE algorithm = 'ring' AND "
                        "phase = 'steady'"),
              "3|1.0|1.012\n");
}

} // namespace
} // namespace railbreak::record
