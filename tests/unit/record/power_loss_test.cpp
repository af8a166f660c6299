// The power fails, the disk fills up or breaks at any write of a short run: whatever was reported is there afterwards.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "harness/record/schema.hpp"
#include "tests/unit/record/faulty_disk.hpp"
#include "tests/unit/record/plain_sql.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// What the recorder reported as stored, and when (FaultyDisk::now() at that time).
struct Acknowledged {
    std::size_t at;
    std::string what; // as inventory() names it
};

/// Everything of interest in a database, one name each.
std::vector<std::string> inventory(const std::filesystem::path& path) {
    std::vector<std::string> names;
    const auto reader = RunReader::open_readonly(path);
    if (!reader) {
        return names;
    }
    const auto data = reader->load_run("latest");
    if (data) {
        names.push_back("run");
        for (const IterationRow& row : data->iterations) {
            names.push_back("iteration " + std::to_string(row.iteration));
        }
        EXPECT_EQ(data->rank_iterations.size(), data->iterations.size() * 8) << "each with all of its ranks";
        for (const EventRow& row : data->events) {
            names.push_back("event " + row.text);
        }
        for (const InjectionRow& row : data->injections) {
            names.push_back(row.restored_at != 0 ? "injection restored" : "injection ordered");
            if (row.restored_at != 0) {
                names.push_back("injection ordered");
            }
        }
        for (const ArtefactRow& row : data->artefacts) {
            names.push_back("artefact " + std::to_string(row.content.size()));
        }
        if (!data->verdicts.empty()) {
            names.push_back("verdict " + data->verdicts[0].verdict);
        }
    }
    if (const auto baselines = reader->list_baselines(); baselines && !baselines->empty()) {
        names.push_back("baseline");
    }
    if (const auto suite = reader->load_suite("latest"); suite) {
        names.push_back("suite");
        names.push_back("item " + suite->items.at(0).state);
    }
    return names;
}

/// A short run, step by step, over several checkpoints of the log. Calls `report` for what was stored; what fails is
/// passed over, as it is here the disk that is under test.
void record_short_run(const std::filesystem::path& path, const std::function<void(const std::string&)>& report,
                      const std::function<void(const Error&)>& failure) {
    const auto note = [&](const auto& stored, const std::string& what) {
        stored ? report(what) : failure(stored.error());
        return stored.has_value();
    };
    const auto checkpoint = [&] { // what SQLite does every thousand pages
        sqlite3* other = nullptr;
        sqlite3_open(path.c_str(), &other);
        sqlite3_exec(other, "PRAGMA wal_checkpoint(RESTART)", nullptr, nullptr, nullptr);
        sqlite3_close(other);
    };
    auto recorder = Recorder::open(path);
    if (!recorder) {
        failure(recorder.error());
        return;
    }
    const RunData data = fixture_run();
    const auto run = recorder->begin_run(data.run);
    if (!note(run, "run")) {
        return;
    }
    const std::vector<RankIterationRow> ranks(data.rank_iterations.begin(), data.rank_iterations.begin() + 8);
    InjectionRow injection = data.injections[0];
    injection.run = *run;
    injection.restored_at = 0;
    const auto ordered = recorder->add_injection(injection);
    note(ordered, "injection ordered");
    for (std::int32_t i = 1; i <= 6; ++i) {
        IterationRow row = data.iterations[0];
        row.run = *run;
        row.iteration = i;
        note(recorder->add_iteration(row, ranks), "iteration " + std::to_string(i));
        EventRow event = data.events[0];
        event.run = *run;
        event.text = std::to_string(i);
        note(recorder->add_event(event), "event " + event.text);
        if (i % 2 == 0) {
            checkpoint();
        }
    }
    if (ordered) {
        injection.id = *ordered;
        injection.restored_at = 7;
        note(recorder->update_injection(injection), "injection restored");
    }
    note(recorder->add_artefact({*run, "log", "text/plain", std::string(20'000, 'x')}), "artefact 20000");
    checkpoint();
    SuiteItemRow item;
    item.state = "waiting";
    SuiteRow suite;
    suite.suite_id = "s";
    const auto begun = recorder->begin_suite(suite, {item});
    note(begun, "suite");
    if (begun) {
        item.suite = *begun;
        item.state = "done";
        item.run = *run;
        note(recorder->update_suite_item(item), "item done");
    }
    note(recorder->set_baseline("main", {*run}, 1, ""), "baseline");
    note(recorder->finish_run(*run, 9, {{0, "run", "", "pass", "", {}, {}, {}}}), "verdict pass");
}

/// Reads a database that a crash left, and writes to it: it is whole, of use, and has what was reported before `at`.
/// Gives how many reported things it lacks.
std::size_t lost_after(const std::filesystem::path& path, const std::vector<Acknowledged>& reported, std::size_t at) {
    const auto wanted = std::ranges::count_if(reported, [&](const Acknowledged& one) { return one.at <= at; });
    const std::vector<std::string> there = inventory(path);
    if (std::filesystem::exists(path) && std::filesystem::file_size(path) > 0) {
        EXPECT_EQ(sql(path, "PRAGMA integrity_check; PRAGMA foreign_key_check"), "ok\n");
    }
    const auto lost = std::ranges::count_if(reported, [&](const Acknowledged& one) {
        return one.at <= at && std::ranges::find(there, one.what) == there.end();
    });
    EXPECT_LE(lost, wanted);
    auto recorder = Recorder::open(path);
    EXPECT_TRUE(recorder.has_value()) << recorder.error().to_line();
    if (recorder) {
        RunRow next = fixture_run().run;
        next.run_id = "next";
        const auto begun = recorder->begin_run(next);
        EXPECT_TRUE(begun.has_value()) << begun.error().to_line();
    }
    return static_cast<std::size_t>(lost);
}

TEST(PowerLoss, AtAnyWriteTakesNothingThatWasReported) {
    const TemporaryFolder folder;
    const auto crashed = folder / "crashed";
    std::vector<Acknowledged> reported;
    std::mt19937 random(20260131);
    FaultyDisk disk;
    record_short_run(
        folder / "runs.db",
        [&](const std::string& what) {
            reported.push_back({disk.now(), what});
        },
        [](const Error& error) { ADD_FAILURE() << error.to_line(); });
    const std::size_t end = disk.now();
    ASSERT_GT(end, 100U);
    ASSERT_EQ(reported.size(), 20U);
    for (std::size_t at = 0; at <= end; ++at) {
        for (const Unsynced rest : {Unsynced::kLost, Unsynced::kKept, Unsynced::kTorn}) {
            disk.power_loss(at, rest, random, crashed);
            ASSERT_EQ(lost_after(crashed / "runs.db", reported, at), 0U)
                << "after operation " << at << " of " << end << ", what was not synced: " << static_cast<int>(rest);
            ASSERT_FALSE(::testing::Test::HasFailure()) << "after operation " << at;
        }
    }
}

TEST(PowerLoss, IsSeenByThisTestWhenADiskLiesAboutSyncs) {
    const TemporaryFolder folder;
    std::vector<Acknowledged> reported;
    std::mt19937 random(1);
    FaultyDisk disk(true);
    record_short_run(
        folder / "runs.db",
        [&](const std::string& what) {
            reported.push_back({disk.now(), what});
        },
        [](const Error& error) { ADD_FAILURE() << error.to_line(); });
    const std::size_t middle = reported.at(8).at;
    disk.power_loss(middle, Unsynced::kLost, random, folder / "crashed");
    EXPECT_GT(lost_after(folder / "crashed" / "runs.db", reported, middle), 0U);
}

TEST(PowerLoss, WhileAnOldDatabaseIsLiftedLeavesTheOldOrTheNewOne) {
    const TemporaryFolder folder;
    const auto crashed = folder / "crashed" / "runs.db";
    std::mt19937 random(2);
    FaultyDisk disk;
    sql(folder / "runs.db", std::string(migration_to(1)) +
                                "INSERT INTO runs VALUES(1,'r','s','','{}','h','1','lab','v','','{}',1,2,2,4,'f',8);"
                                "PRAGMA application_id = 1380010316; PRAGMA user_version = 1;");
    disk.settle();
    const std::size_t old = disk.now();
    ASSERT_TRUE(Recorder::open(folder / "runs.db").has_value());
    const std::size_t end = disk.now(); // what happens to the copies below is none of its operations
    ASSERT_GT(end, old + 20);
    for (std::size_t at = old; at <= end; ++at) {
        for (const Unsynced rest : {Unsynced::kLost, Unsynced::kKept, Unsynced::kTorn}) {
            disk.power_loss(at, rest, random, folder / "crashed");
            const auto reader = RunReader::open_readonly(crashed);
            ASSERT_TRUE(reader.has_value()) << reader.error().to_line();
            const auto data = reader->load_run("latest");
            ASSERT_TRUE(data.has_value()) << data.error().to_line();
            EXPECT_EQ(data->run.run_id, "r");
            ASSERT_THAT(sql(crashed, "PRAGMA integrity_check; PRAGMA user_version"), AnyOf("ok\n1\n", "ok\n4\n"));
            ASSERT_TRUE(Recorder::open(crashed).has_value());
            ASSERT_EQ(sql(crashed, "PRAGMA integrity_check; PRAGMA user_version"), "ok\n4\n");
        }
    }
}

/// Records the short run with a disk that fails from the n-th write (or sync) on, for every (or every `step`-th) n;
/// mends it, and looks.
void fail_at_every_place(DiskFault fault, std::string_view message, std::size_t step = 1) {
    for (std::size_t at = 0;; at += step) {
        const TemporaryFolder folder;
        const auto path = folder / "runs.db";
        std::vector<Acknowledged> reported;
        std::vector<std::string> errors;
        FaultyDisk disk;
        disk.fail_from(fault, at);
        record_short_run(
            path,
            [&](const std::string& what) {
                reported.push_back({0, what});
            },
            [&](const Error& error) { errors.push_back(error.to_line()); });
        const bool failed = disk.has_failed();
        disk.mend();
        for (const std::string& error : errors) {
            ASSERT_THAT(error, HasSubstr(path.string()));
            ASSERT_THAT(error, HasSubstr(message));
            ASSERT_EQ(error.find('\n'), std::string::npos);
        }
        ASSERT_EQ(lost_after(path, reported, 0), 0U) << "from operation " << at;
        ASSERT_FALSE(::testing::Test::HasFailure()) << "from operation " << at;
        if (!failed) {
            EXPECT_GT(at, 20U) << "the run has more writes than that";
            return;
        }
    }
}

TEST(FailingDisk, FullAtAnyWriteLosesNothingThatWasReported) {
    fail_at_every_place(DiskFault::kFull, "the disk is full");
}

TEST(FailingDisk, BrokenAtManyWritesLosesNothingThatWasReported) {
    fail_at_every_place(DiskFault::kBrokenWrite, "the disk does not work", 5);
}

TEST(FailingDisk, BrokenAtAnySyncLosesNothingThatWasReported) {
    fail_at_every_place(DiskFault::kBrokenSync, "the disk does not work");
}

TEST(FailingDisk, ARecorderWorksAgainOnceThereIsSpace) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    FaultyDisk disk;
    auto recorder = Recorder::open(path);
    ASSERT_TRUE(recorder.has_value());
    const auto run = recorder->begin_run(fixture_run().run);
    ASSERT_TRUE(run.has_value());
    disk.fail_from(DiskFault::kFull, 0);
    EventRow event = fixture_run().events[0];
    event.run = *run;
    const auto refused = recorder->add_event(event);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kHarness);
    disk.mend();
    EXPECT_TRUE(recorder->add_event(event).has_value());
    EXPECT_EQ(RunReader::open_readonly(path)->load_run("latest")->events.size(), 1U);
}

} // namespace
} // namespace railbreak::record
