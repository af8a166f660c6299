// A writer that is killed at any moment: whatever it reported is in the database afterwards.
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/fd.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/temporary_folder.hpp"

namespace railbreak::record {
namespace {

struct Report {
    std::int64_t iteration_id = 0;
    std::int64_t duration_ns = 0;
};

// Records iterations for ever and writes a Report for each one that the recorder called stored.
[[noreturn]] void write_until_killed(const std::filesystem::path& path, int round, int pipe) {
    auto recorder = Recorder::open(path);
    if (!recorder) {
        ::_exit(1);
    }
    const RunData data = fixture_run();
    RunRow run = data.run;
    run.run_id += std::to_string(round);
    run.started_realtime_ns += round;
    const auto id = recorder->begin_run(run);
    if (!id) {
        ::_exit(2);
    }
    const std::vector<RankIterationRow> ranks(data.rank_iterations.begin(), data.rank_iterations.begin() + 8);
    for (std::int32_t i = 1;; ++i) {
        IterationRow row = data.iterations[0];
        row.run = *id;
        row.iteration = i;
        row.duration_ns = i * 1000 + round;
        const auto stored = recorder->add_iteration(row, ranks);
        const Report report{stored ? *stored : -1, row.duration_ns};
        if (!stored || ::write(pipe, &report, sizeof report) != sizeof report) {
            ::_exit(3);
        }
    }
}

std::string integrity(const std::filesystem::path& path) {
    sqlite3* database = nullptr;
    std::string text;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    const auto append = [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) += values[0];
        return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, "PRAGMA integrity_check; PRAGMA foreign_key_check", append, &text, nullptr),
              SQLITE_OK);
    sqlite3_close(database);
    return text;
}

TEST(RecorderCrash, KillLosesNothingThatWasReported) {
    const TemporaryFolder folder;
    const auto path = folder / "runs.db";
    std::mt19937 random(20260131); // fixed: the moments are arbitrary, but the same in every run
    for (int round = 0; round < 12; ++round) {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        UniqueFd in(ends[0]);
        UniqueFd out(ends[1]);
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            write_until_killed(path, round, out.get());
        }
        out.reset();
        // The kill falls after a random number of reports, wherever the writer then is in the next iteration; a random
        // spin moves it within the iteration.
        const auto reports_wanted = 1 + random() % 20;
        std::vector<Report> reports;
        Report report;
        while (reports.size() < reports_wanted && ::read(in.get(), &report, sizeof report) == sizeof report) {
            reports.push_back(report);
        }
        for (auto spin = random() % 200'000; spin > 0; --spin) {
            std::atomic_signal_fence(std::memory_order_seq_cst); // keeps the loop
        }
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself with status " << status;
        while (::read(in.get(), &report, sizeof report) == sizeof report) {
            reports.push_back(report);
        }
        ASSERT_GE(reports.size(), reports_wanted);

        EXPECT_EQ(integrity(path), "ok");
        const auto data =
            RunReader::open_readonly(path).and_then([](const RunReader& r) { return r.load_run("latest"); });
        ASSERT_TRUE(data.has_value()) << data.error().to_line();
        ASSERT_GE(data->iterations.size(), reports.size());
        ASSERT_LE(data->iterations.size(), reports.size() + 1) << "at most one was stored and not yet reported";
        for (std::size_t i = 0; i < reports.size(); ++i) {
            EXPECT_EQ(data->iterations[i].id, reports[i].iteration_id);
            EXPECT_EQ(data->iterations[i].duration_ns, reports[i].duration_ns);
        }
        EXPECT_EQ(data->rank_iterations.size(), data->iterations.size() * 8) << "each with all of its ranks";
        EXPECT_EQ(data->run.finished_realtime_ns, fixture_run().run.finished_realtime_ns);
    }
}

} // namespace
} // namespace railbreak::record
