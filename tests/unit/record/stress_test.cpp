// What a database meets in use: a full disk, readers that stay, clocks that are set, several controllers.
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <set>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "harness/record/check.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/plain_sql.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/store_run.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

using ::testing::HasSubstr;

/// Runs `action` in a child and gives its exit status.
template <class Action> int in_child(Action action) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(action());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void write_text(const char* path, const std::string& text) {
    std::ofstream(path) << text;
}

constexpr int kNoNamespaces = 77;

/// Mounts a file system in memory of `pages` on `folder`, seen by this process alone.
bool mount_small_disk(const std::filesystem::path& folder, int pages) {
    const uid_t user = ::getuid();
    const gid_t group = ::getgid();
    if (user != 0) {
        if (::unshare(CLONE_NEWUSER) != 0) {
            return false;
        }
        write_text("/proc/self/setgroups", "deny");
        write_text("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
        write_text("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
    }
    const std::string size = "size=" + std::to_string(pages * 4096);
    return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("small", folder.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

void fill(const std::filesystem::path& file) {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const std::string block(4096, 'x');
    while (::write(fd, block.data(), block.size()) > 0) {
    }
    ::close(fd);
}

/// Records on a disk of so many pages until it is full, frees some space, records on. Exit status: 0 as it should be.
int fill_a_disk(const std::filesystem::path& folder, int pages) {
    if (!mount_small_disk(folder, pages)) {
        return kNoNamespaces;
    }
    const auto path = folder / "runs.db";
    fill(folder / "reserve"); // all of it; all but a part is given back, so that there is something to free later
    if (::truncate((folder / "reserve").c_str(), 64 * 4096) != 0) {
        return 2;
    }
    std::int32_t stored = 0;
    std::int32_t refused = 0;
    {
        auto recorder = Recorder::open(path);
        const Result<std::int64_t> run =
            recorder ? recorder->begin_run(fixture_run().run) : Result<std::int64_t>(tl::unexpected(recorder.error()));
        if (!run) {
            const std::string line = run.error().to_line();
            if (line.find("the disk is full") == std::string::npos) {
                ::dprintf(2, "%d pages: %s\n", pages, line.c_str());
                return 3;
            }
        }
        for (int i = 0; run && i < 2000 && refused < 3; ++i) {
            EventRow event = fixture_run().events[0];
            event.run = *run;
            event.text = std::string(3000, 'e');
            const auto added = recorder->add_event(event);
            added ? ++stored : ++refused;
            if (!added && added.error().to_line().find("the disk is full") == std::string::npos) {
                ::dprintf(2, "%d pages: %s\n", pages, added.error().to_line().c_str());
                return 4;
            }
        }
    }
    ::unlink((folder / "reserve").c_str());
    auto recorder = Recorder::open(path);
    RunRow next = fixture_run().run;
    next.run_id = "next";
    if (!recorder || !recorder->begin_run(next)) {
        return 5;
    }
    const auto check = check_database(path);
    const std::string events = sql(path, "SELECT count(*) FROM events; PRAGMA integrity_check");
    return check && events == std::to_string(stored) + "\nok\n" ? 0 : 6;
}

TEST(FullDisk, LosesNothingThatWasReported) {
    const TemporaryFolder folder;
    // The smaller ones are full while the tables are made, the others in the middle of a run.
    for (const int pages : {66, 68, 72, 80, 100, 130, 160, 190, 240, 300, 400}) {
        const int status = in_child([&] { return fill_a_disk(folder.path(), pages); });
        if (status == kNoNamespaces) {
            GTEST_SKIP() << "mount namespaces are not permitted here";
        }
        EXPECT_EQ(status, 0) << pages << " pages";
    }
}

TEST(LongReader, HoldsUpNobodyAndIsNamedWhenTheLogGrows) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    auto recorder = Recorder::open(path, std::chrono::milliseconds(50));
    ASSERT_TRUE(recorder.has_value());
    const auto run = recorder->begin_run(fixture_run().run);
    ASSERT_TRUE(run.has_value());
    sqlite3* reader = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &reader), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM events", nullptr, nullptr, nullptr), SQLITE_OK);
    const auto add = [&](int megabytes) {
        for (int i = 0; i < megabytes; ++i) {
            const auto stored = recorder->add_artefact(
                {*run, "log" + std::to_string(i), "text/plain", std::string(std::size_t{1} << 20, 'x')});
            ASSERT_TRUE(stored.has_value()) << stored.error().to_line();
        }
    };
    add(66);
    auto check = check_database(path);
    ASSERT_TRUE(check.has_value()) << check.error().to_line();
    EXPECT_FALSE(check->ok());
    EXPECT_GT(check->log_bytes, 64 << 20);
    ASSERT_EQ(check->findings.size(), 1U) << check->findings.back().text;
    EXPECT_EQ(check->findings[0].kind, "log_size");
    sqlite3_close(reader);
    // The log is emptied by the next writer that finds it whole in the database, and taken away with the last user.
    add(1);
    recorder = Recorder::open(path);
    sql(path, "PRAGMA wal_checkpoint(TRUNCATE)");
    check = check_database(path);
    ASSERT_TRUE(check.has_value());
    EXPECT_TRUE(check->ok()) << check->findings[0].text;
}

TEST(Clock, ThatIsSetBackOrForwardKeepsNamesApartAndTheOrderOfRecording) {
    const TemporaryFolder folder;
    auto recorder = Recorder::open(folder / "runs.db");
    ASSERT_TRUE(recorder.has_value());
    std::vector<std::string> names;
    constexpr std::int64_t kSecond = 1'000'000'000;
    for (const std::int64_t second : std::initializer_list<std::int64_t>{1'769'862'896, 1'769'862'896, 0, 4'102'444'800,
                                                                         1'769'862'896, 1'769'862'895}) {
        RunRow run = fixture_run().run;
        run.started_realtime_ns = second * kSecond;
        run.finished_realtime_ns = run.started_realtime_ns - kSecond; // set back while it ran
        run.run_id.clear();
        ASSERT_TRUE(recorder->begin_new_run(run, 7).has_value());
        names.insert(names.begin(), run.run_id);
    }
    EXPECT_EQ(names.front(), "20260131T123455Z-half-rate-nic-0007");
    EXPECT_EQ(names[1], "20260131T123456Z-half-rate-nic-0009") << "7 and 8 are taken";
    EXPECT_EQ(names[3], "19700101T000000Z-half-rate-nic-0007");
    const auto reader = RunReader::open_readonly(folder / "runs.db");
    ASSERT_TRUE(reader.has_value());
    std::vector<std::string> listed;
    const auto runs = reader->list_runs(10);
    ASSERT_TRUE(runs.has_value());
    for (const RunSummary& run : *runs) {
        listed.push_back(run.run_id);
    }
    EXPECT_EQ(listed, names);
    EXPECT_EQ(reader->load_run("latest")->run.run_id, names.front());
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
}

TEST(RunNames, ATakenOneIsRefusedByName) {
    const TemporaryFolder folder;
    auto recorder = Recorder::open(folder / "runs.db");
    ASSERT_TRUE(recorder.has_value());
    ASSERT_TRUE(recorder->begin_run(fixture_run().run).has_value());
    const auto again = recorder->begin_run(fixture_run().run);
    ASSERT_FALSE(again.has_value());
    EXPECT_THAT(again.error().to_line(), HasSubstr("cannot add a run: there is one of that name already"));
}

TEST(Controllers, SeveralAtOnceGetDifferentNamesAndLoseNoRow) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    constexpr int kControllers = 4;
    constexpr int kRows = 40;
    std::vector<pid_t> children;
    for (int i = 0; i < kControllers; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto recorder = Recorder::open(path, std::chrono::seconds(60));
            RunRow run = fixture_run().run; // the same second, the same scenario and the same salt
            const auto id =
                recorder ? recorder->begin_new_run(run, 1) : Result<std::int64_t>(tl::unexpected(recorder.error()));
            EventRow event = fixture_run().events[0];
            bool good = id.has_value();
            for (int row = 0; good && row < kRows; ++row) {
                event.run = *id;
                good = recorder->add_event(event).has_value();
            }
            ::_exit(good && recorder->finish_run(*id, 9, {{0, "run", "", "pass", "", {}, {}, {}}}) ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(sql(path, "SELECT count(DISTINCT run_id) FROM runs; SELECT DISTINCT count(*) FROM events GROUP BY run; "
                        "SELECT count(*) FROM verdicts"),
              "4\n40\n4\n");
}

TEST(MovedFile, IsNoticedAndNothingGoesIntoTheVoid) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    auto recorder = Recorder::open(path);
    ASSERT_TRUE(recorder.has_value());
    const auto run = recorder->begin_run(fixture_run().run);
    ASSERT_TRUE(run.has_value());
    std::filesystem::rename(path, folder / "elsewhere.db");
    EventRow event = fixture_run().events[0];
    event.run = *run;
    const auto stored = recorder->add_event(event);
    ASSERT_FALSE(stored.has_value());
    EXPECT_THAT(stored.error().to_line(), HasSubstr("moved or deleted while it was in use"));
}

} // namespace
} // namespace railbreak::record
