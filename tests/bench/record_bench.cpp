// What a large database costs: fills one with runs of 125 iterations on 8 ranks (10 000 of them have 10 million rows of
// single ranks), then times what commands do with it. Every figure is of a fresh connection; the file is in the page
// cache after the filling, as far as memory allows.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sqlite3.h>

#include "harness/record/check.hpp"
#include "harness/record/export.hpp"
#include "harness/record/prune.hpp"
#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/record/store_run.hpp"

namespace railbreak::record {
namespace {

constexpr std::int32_t kIterations = 125;
constexpr std::int32_t kRanks = 8;

double milliseconds(const std::function<void()>& action) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "record_bench: %s\n", why.c_str());
    std::exit(1);
}

template <class T> T value_of(Result<T> result) {
    if (!result) {
        give_up(result.error().to_line());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

void sql(sqlite3* database, const std::string& statements) {
    char* error = nullptr;
    if (sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error) != SQLITE_OK) {
        give_up(error);
    }
}

/// The run that all others are copies of.
RunData pattern() {
    RunData data = fixture_run();
    data.run.scenario_text.assign(1500, 's');
    data.run.plan_json = fmt::format(R"({{"plan":"{}"}})", std::string(4000, 'p'));
    const IterationRow iteration = data.iterations.at(2);
    const std::vector<RankIterationRow> ranks(data.rank_iterations.begin(), data.rank_iterations.begin() + kRanks);
    const std::vector<std::string> algorithms{"ring", "optcc", "optcc-shared"};
    for (auto count = static_cast<std::int32_t>(data.iterations.size()); count < kIterations; ++count) {
        IterationRow row = iteration;
        row.id = count + 1;
        row.algorithm = algorithms[static_cast<std::size_t>(count % 3)];
        row.iteration = 100 + count;
        row.duration_ns += count * 1000;
        data.iterations.push_back(row);
        for (RankIterationRow rank : ranks) {
            rank.iteration = row.id;
            data.rank_iterations.push_back(rank);
        }
    }
    for (int i = 0; i < 40; ++i) {
        data.events.push_back(data.events.front());
    }
    data.verdicts = {{0, "run", "", "pass", "all checks passed", {}, {}, {}}};
    for (const char* scope : {"teardown", "correctness", "fault", "bound", "expectation"}) {
        data.verdicts.push_back({0, scope, "ring/steady", "pass", "as it should be", 1.0, {}, 2.0});
    }
    data.artefacts = {{0, "schedule", "image/svg+xml", std::string(8000, 'x')}};
    return data;
}

/// SQL that copies the first run's rows of a table, with the run's number and the rows' own ids moved on.
std::string copy_rows(const std::string& table, const std::string& columns, const std::string& values) {
    return fmt::format("INSERT INTO {}({}) SELECT {} FROM {} WHERE run = 1;", table, columns, values, table);
}

void fill(const std::filesystem::path& path, std::int64_t runs) {
    {
        Recorder recorder = value_of(Recorder::open(path));
        value_of(store_run(recorder, pattern()));
    }
    sqlite3* database = nullptr;
    sqlite3_open(path.c_str(), &database);
    sql(database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000; BEGIN");
    for (std::int64_t n = 1; n < runs; ++n) {
        const std::string run = fmt::format("run + {}", n);
        std::string statements = fmt::format(
            "INSERT INTO runs SELECT id + {0}, run_id || '-{0}', CASE {0} % 5 WHEN 0 THEN scenario_name ELSE 'other-' "
            "|| "
            "({0} % 5) END, scenario_text, plan_json, plan_hash, seed, backend, version, command_line, "
            "environment_json, started_realtime_ns + {0} * 60000000000, finished_realtime_ns + {0} * 60000000000, "
            "hosts, bytes, dtype, rate_bits_per_s, cluster, controller FROM runs WHERE id = 1;",
            n);
        statements += copy_rows("hosts", "run, host, name, boot_id, netns, clock_offset_ns, clock_error_ns",
                                run + ", host, name, boot_id, netns, clock_offset_ns, clock_error_ns");
        const std::string nic = "host, nic, name, mac, address, line_rate_bits_per_s, send_goodput_bits_per_s, "
                                "receive_goodput_bits_per_s";
        statements += copy_rows("nics", "run, " + nic, run + ", " + nic);
        statements += copy_rows("ranks", "run, rank, host, pid", run + ", rank, host, pid");
        const std::string injection =
            "fault, name, kind, algorithm, host, nic, direction, wanted_rate_bits_per_s, ordered_at, applied_at, "
            "observed_at, reverted_at, restored_at, mechanism, realism, data_path, observation_json, "
            "measured_send_bits_per_s, measured_receive_bits_per_s, error, rank, params_json, collateral_json";
        statements += copy_rows("injections", "run, " + injection, run + ", " + injection);
        const std::string event = "at, level, source, kind, text, facts_json";
        statements += copy_rows("events", "run, " + event, run + ", " + event);
        const std::string iteration = "algorithm, phase, iteration, schedule, started_at, duration_ns, "
                                      "expected_digest, correct, error";
        statements += copy_rows("iterations", "id, run, " + iteration,
                                fmt::format("id + {}, {}, {}", n * kIterations, run, iteration));
        statements += fmt::format("INSERT INTO rank_iterations SELECT iteration + {}, rank, started_at, ended_at, "
                                  "bytes_sent, bytes_received, digest FROM rank_iterations WHERE iteration <= {};",
                                  n * kIterations, kIterations);
        const std::string counter = "host, nic, at, source, name, value";
        statements += copy_rows("counters", "run, " + counter, run + ", " + counter);
        const std::string bound = "algorithm, phase, name, model, branch, slowdown, time_over_n, time_ns";
        statements += copy_rows("bounds", "run, " + bound, run + ", " + bound);
        const std::string verdict = "scope, subject, verdict, reason, measured, limit_min, limit_max";
        statements += copy_rows("verdicts", "run, " + verdict, run + ", " + verdict);
        statements += copy_rows("artefacts", "run, name, media_type, content", run + ", name, media_type, content");
        sql(database, statements);
    }
    sql(database, "COMMIT; PRAGMA journal_mode = WAL");
    sqlite3_close(database);
}

/// Times `action` five times and prints the median and the longest.
void measure(const char* name, double limit_ms, const std::function<void()>& action) {
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) {
        times.push_back(milliseconds(action));
    }
    std::ranges::sort(times);
    fmt::print("{:<44} {:>10.1f} ms median {:>10.1f} ms longest{}\n", name, times[2], times[4],
               limit_ms > 0 ? fmt::format("   (wanted: below {:.0f} ms)", limit_ms) : std::string());
    std::fflush(stdout);
}

void once(const char* name, const std::function<void()>& action) {
    fmt::print("{:<44} {:>10.1f} ms once\n", name, milliseconds(action));
    std::fflush(stdout);
}

void measure_all(const std::filesystem::path& path, std::int64_t runs) {
    std::size_t written = 0; // by reports, so that none is made for nothing
    const auto reader = [&] { return value_of(RunReader::open_readonly(path)); };
    const std::string middle = fmt::format("{}-{}", fixture_run().run.run_id, runs / 2);
    measure("load a run by name", 0, [&] { value_of(reader().load_run(middle)); });
    measure("report a run as a table", 1000,
            [&] { written += reports::run_table(value_of(reader().load_run(middle))).size(); });
    measure("report a run as JSON", 1000,
            [&] { written += reports::run_json(value_of(reader().load_run(middle))).size(); });
    measure("report the latest run", 1000,
            [&] { written += reports::run_table(value_of(reader().load_run("latest"))).size(); });
    measure("list 100 runs", 200, [&] { written += reports::list_table(value_of(reader().list_runs(100))).size(); });
    measure("list all runs", 0, [&] { value_of(reader().list_runs(1'000'000)); });
    const RunRow like = fixture_run().run;
    measure("find 100 earlier runs of a plan", 200,
            [&] { value_of(reader().find_runs(like.scenario_name, like.plan_hash, like.cluster, 100)); });
    measure("refuse an unknown name", 0, [&] {
        if (reader().load_run("nobody")) {
            give_up("there is a run of a name that nobody has");
        }
    });
    measure("set and read a baseline of 20 runs", 0, [&] {
        std::vector<std::int64_t> tagged;
        for (std::int64_t id = 1; id <= std::min<std::int64_t>(20, runs); ++id) {
            tagged.push_back(id);
        }
        value_of(value_of(Recorder::open(path)).set_baseline("bench", tagged, 1, ""));
        value_of(reader().baseline("bench"));
    });
    const Retention half{.keep = static_cast<std::int32_t>(std::max<std::int64_t>(1, runs / 10))};
    measure("find what to prune", 0, [&] { value_of(plan_prune(path, half)); });
    once("prune 10 runs", [&] {
        PrunePlan plan = value_of(plan_prune(path, half));
        plan.runs.resize(std::min<std::size_t>(plan.runs.size(), 10));
        value_of(prune(path, plan, false, [](const PrunedRun&) {}));
    });
    const std::filesystem::path folder = path.string() + ".export";
    measure("export one run, all tables", 0,
            [&] { value_of(export_tables(path, {.run = "latest", .folder = folder})); });
    once("check the whole file", [&] { value_of(check_database(path)); });
    once("export rank_iterations as CSV",
         [&] { value_of(export_tables(path, {.tables = {"rank_iterations"}, .folder = folder})); });
    std::filesystem::remove_all(folder);
    fmt::print("{} bytes of reports\n", written);
}

} // namespace
} // namespace railbreak::record

int main(int argc, char** argv) {
    CLI::App app{"Times the database."};
    std::int64_t runs = 1000;
    std::filesystem::path path;
    app.add_option("--runs", runs, "How many runs; 1000 rows of single ranks each")->check(CLI::Range(20, 1'000'000));
    app.add_option("--db", path, "File to make; it is removed at the end")->required();
    CLI11_PARSE(app, argc, argv);
    if (std::filesystem::exists(path)) {
        railbreak::record::give_up(path.string() + " is there already");
    }
    const double filled = railbreak::record::milliseconds([&] { railbreak::record::fill(path, runs); });
    fmt::print("{} runs, {} rows of single ranks, {} MiB, filled in {:.0f} s\n", runs, runs * 1000,
               std::filesystem::file_size(path) >> 20, filled / 1000);
    railbreak::record::measure_all(path, runs);
    for (const char* suffix : {"", "-wal", "-shm"}) {
        std::filesystem::remove(path.string() + suffix);
    }
    return 0;
}
