#include "harness/record/reader.hpp"

#include <charconv>

#include <fmt/format.h>

#include "harness/record/database.hpp"

namespace railbreak::record {

struct RunReader::Impl {
    std::filesystem::path path;
    std::unique_ptr<SQLite::Database> database;
};

namespace {

// Walks over the columns of the present row, so that a row is read in the order of its SELECT.
class Columns {
public:
    explicit Columns(SQLite::Statement& statement) : statement_(statement) {}

    std::int64_t int64() { return statement_.getColumn(next_++).getInt64(); }
    std::int32_t int32() { return statement_.getColumn(next_++).getInt(); }
    double real() { return statement_.getColumn(next_++).getDouble(); }
    bool boolean() { return int32() != 0; }
    std::string text() { return statement_.getColumn(next_++).getString(); }
    std::uint64_t unsigned_text() {
        const std::string digits = text();
        std::uint64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    }
    std::optional<double> optional_real() {
        const SQLite::Column column = statement_.getColumn(next_++);
        return column.isNull() ? std::nullopt : std::optional(column.getDouble());
    }

private:
    SQLite::Statement& statement_;
    int next_ = 0;
};

// All rows of `sql`, whose only parameter is the run, each made by `make`.
template <class Row, class Make>
std::vector<Row> rows_of(SQLite::Database& database, const char* sql, std::int64_t run, Make make) {
    SQLite::Statement statement(database, sql);
    bind_all(statement, run);
    std::vector<Row> rows;
    while (statement.executeStep()) {
        Columns columns(statement);
        rows.push_back(make(columns));
    }
    return rows;
}

RunRow read_run(SQLite::Database& database, std::int64_t id) {
    const char* sql = "SELECT id, run_id, scenario_name, scenario_text, plan_json, plan_hash, seed, backend, version, "
                      "command_line, environment_json, started_realtime_ns, finished_realtime_ns, hosts, bytes, dtype, "
                      "rate_bits_per_s FROM runs WHERE id = ?";
    return rows_of<RunRow>(database, sql, id,
                           [](Columns& c) {
                               // Braced initialisers are evaluated left to right.
                               return RunRow{c.int64(),         c.text(),  c.text(),  c.text(), c.text(), c.text(),
                                             c.unsigned_text(), c.text(),  c.text(),  c.text(), c.text(), c.int64(),
                                             c.int64(),         c.int32(), c.int64(), c.text(), c.int64()};
                           })
        .at(0);
}

void read_cluster(SQLite::Database& database, std::int64_t id, RunData& data) {
    data.hosts =
        rows_of<HostRow>(database,
                         "SELECT run, host, name, boot_id, netns, clock_offset_ns, clock_error_ns FROM hosts WHERE run "
                         "= ? ORDER BY host",
                         id, [](Columns& c) {
                             return HostRow{c.int64(), c.int32(), c.text(), c.text(), c.text(), c.int64(), c.int64()};
                         });
    data.nics =
        rows_of<NicRow>(database,
                        "SELECT run, host, nic, name, mac, address, line_rate_bits_per_s, send_goodput_bits_per_s, "
                        "receive_goodput_bits_per_s FROM nics WHERE run = ? ORDER BY host, nic",
                        id, [](Columns& c) {
                            return NicRow{c.int64(), c.int32(), c.int32(), c.text(), c.text(),
                                          c.text(),  c.int64(), c.int64(), c.int64()};
                        });
    data.ranks = rows_of<RankRow>(database, "SELECT run, rank, host, pid FROM ranks WHERE run = ? ORDER BY rank", id,
                                  [](Columns& c) {
                                      return RankRow{c.int64(), c.int32(), c.int32(), c.int64()};
                                  });
}

void read_faults(SQLite::Database& database, std::int64_t id, RunData& data) {
    // A file that nobody has written to since the first schema is read as it is.
    const bool every_kind = database.execAndGet("PRAGMA user_version").getInt() >= 2;
    const std::string sql = fmt::format(
        "SELECT id, run, fault, name, kind, algorithm, host, nic, direction, wanted_rate_bits_per_s, ordered_at, "
        "applied_at, observed_at, reverted_at, restored_at, mechanism, realism, data_path, observation_json, "
        "measured_send_bits_per_s, measured_receive_bits_per_s, error, {} FROM injections WHERE run = ? ORDER BY id",
        every_kind ? "rank, params_json, collateral_json" : "-1, '{}', '[]'");
    data.injections = rows_of<InjectionRow>(database, sql.c_str(), id, [](Columns& c) {
        return InjectionRow{c.int64(), c.int64(), c.int32(), c.text(),  c.text(),  c.text(),  c.int32(),
                            c.int32(), c.text(),  c.int64(), c.int64(), c.int64(), c.int64(), c.int64(),
                            c.int64(), c.text(),  c.text(),  c.text(),  c.text(),  c.int64(), c.int64(),
                            c.text(),  c.int32(), c.text(),  c.text()};
    });
    data.events = rows_of<EventRow>(
        database, "SELECT run, at, level, source, kind, text, facts_json FROM events WHERE run = ? ORDER BY at, id", id,
        [](Columns& c) { return EventRow{c.int64(), c.int64(), c.text(), c.text(), c.text(), c.text(), c.text()}; });
}

void read_measurements(SQLite::Database& database, std::int64_t id, RunData& data) {
    data.iterations = rows_of<IterationRow>(
        database,
        "SELECT id, run, algorithm, phase, iteration, schedule, started_at, duration_ns, expected_digest, correct, "
        "error FROM iterations WHERE run = ? ORDER BY id",
        id, [](Columns& c) {
            return IterationRow{c.int64(), c.int64(), c.text(), c.text(),    c.int32(), c.text(),
                                c.int64(), c.int64(), c.text(), c.boolean(), c.text()};
        });
    data.rank_iterations = rows_of<RankIterationRow>(
        database,
        "SELECT k.iteration, k.rank, k.started_at, k.ended_at, k.bytes_sent, k.bytes_received, k.digest FROM "
        "rank_iterations k JOIN iterations i ON i.id = k.iteration WHERE i.run = ? ORDER BY k.iteration, k.rank",
        id, [](Columns& c) {
            return RankIterationRow{c.int64(), c.int32(), c.int64(), c.int64(), c.int64(), c.int64(), c.text()};
        });
    data.counters = rows_of<CounterRow>(
        database, "SELECT run, host, nic, at, source, name, value FROM counters WHERE run = ? ORDER BY id", id,
        [](Columns& c) {
            return CounterRow{c.int64(), c.int32(), c.int32(), c.int64(), c.text(), c.text(), c.int64()};
        });
}

void read_judgement(SQLite::Database& database, std::int64_t id, RunData& data) {
    data.bounds = rows_of<BoundRow>(
        database,
        "SELECT run, algorithm, phase, name, model, branch, slowdown, time_over_n, time_ns FROM bounds WHERE run = ? "
        "ORDER BY algorithm, phase, model, name",
        id, [](Columns& c) {
            return BoundRow{c.int64(), c.text(), c.text(), c.text(), c.text(), c.text(), c.real(), c.real(), c.int64()};
        });
    data.verdicts = rows_of<VerdictRow>(
        database,
        "SELECT run, scope, subject, verdict, reason, measured, limit_min, limit_max FROM verdicts WHERE run = ? "
        "ORDER BY id",
        id, [](Columns& c) {
            return VerdictRow{c.int64(), c.text(),          c.text(),          c.text(),
                              c.text(),  c.optional_real(), c.optional_real(), c.optional_real()};
        });
    data.artefacts = rows_of<ArtefactRow>(
        database, "SELECT run, name, media_type, content FROM artefacts WHERE run = ? ORDER BY name", id,
        [](Columns& c) {
            return ArtefactRow{c.int64(), c.text(), c.text(), c.text()};
        });
}

constexpr int kNamesInErrors = 5;

// The ids and names of runs whose name begins with `prefix` (all when empty), latest first, at most kNamesInErrors + 1.
std::vector<std::pair<std::int64_t, std::string>> runs_with(SQLite::Database& database, const std::string& prefix) {
    SQLite::Statement statement(database, "SELECT id, run_id FROM runs WHERE substr(run_id, 1, length(?1)) = ?1 "
                                          "ORDER BY started_realtime_ns DESC, id DESC LIMIT ?2");
    bind_all(statement, prefix, kNamesInErrors + 1);
    std::vector<std::pair<std::int64_t, std::string>> found;
    while (statement.executeStep()) {
        Columns columns(statement);
        const std::int64_t id = columns.int64();
        found.emplace_back(id, columns.text());
    }
    return found;
}

std::string names(const std::vector<std::pair<std::int64_t, std::string>>& runs) {
    std::string list;
    for (std::size_t i = 0; i < runs.size() && i < kNamesInErrors; ++i) {
        list += fmt::format("{}{}", i == 0 ? "" : ", ", runs[i].second);
    }
    return list + (runs.size() > kNamesInErrors ? ", ..." : "");
}

Result<std::int64_t> find_run(SQLite::Database& database, const std::filesystem::path& path, std::string_view which) {
    const auto all = runs_with(database, "");
    if (all.empty()) {
        return fail(ErrorKind::kInput, fmt::format("database {}: there is no run in it yet", path.string()));
    }
    if (which == "latest") {
        return all.front().first;
    }
    SQLite::Statement exact(database, "SELECT id FROM runs WHERE run_id = ?");
    bind_all(exact, std::string(which));
    if (exact.executeStep()) {
        return exact.getColumn(0).getInt64();
    }
    const auto found = which.empty() ? decltype(all){} : runs_with(database, std::string(which));
    if (found.empty()) {
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: there is no run \"{}\"", path.string(), which))
                        .advise(fmt::format("give latest or one of: {}", names(all))));
    }
    if (found.size() > 1) {
        return fail(Error(ErrorKind::kInput,
                          fmt::format("database {}: \"{}\" begins more than one run's name", path.string(), which))
                        .advise(fmt::format("give more of one of: {}", names(found))));
    }
    return found.front().first;
}

} // namespace

RunReader::RunReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;
RunReader::~RunReader() = default;

Result<RunReader> RunReader::open_readonly(const std::filesystem::path& path) {
    auto database = open_for_reading(path);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    return RunReader(std::make_unique<Impl>(Impl{path, std::move(*database)}));
}

Result<RunData> RunReader::load_run(std::string_view which) const {
    auto loaded = guarded(impl_->path, "read a run", [&]() -> Result<RunData> {
        // One transaction, so that all tables are seen as of one moment.
        SQLite::Transaction transaction(*impl_->database);
        const Result<std::int64_t> id = find_run(*impl_->database, impl_->path, which);
        if (!id) {
            return tl::unexpected(id.error());
        }
        RunData data;
        data.run = read_run(*impl_->database, *id);
        read_cluster(*impl_->database, *id, data);
        read_faults(*impl_->database, *id, data);
        read_measurements(*impl_->database, *id, data);
        read_judgement(*impl_->database, *id, data);
        return data;
    });
    if (!loaded) {
        return tl::unexpected(std::move(loaded).error());
    }
    return std::move(*loaded);
}

Result<std::vector<RunSummary>> RunReader::list_runs(std::int32_t limit) const {
    return guarded(impl_->path, "list the runs", [&] {
        SQLite::Statement statement(
            *impl_->database,
            "SELECT r.run_id, r.scenario_name, r.backend, r.plan_hash, r.seed, r.hosts, r.started_realtime_ns, "
            "r.finished_realtime_ns, "
            "coalesce((SELECT verdict FROM verdicts WHERE run = r.id AND scope = 'run'), ''), "
            "coalesce((SELECT reason FROM verdicts WHERE run = r.id AND scope = 'run'), ''), "
            "coalesce((SELECT reason FROM verdicts WHERE run = r.id AND scope = 'teardown' AND verdict <> 'pass' "
            "ORDER BY id), '') "
            "FROM runs r ORDER BY r.started_realtime_ns DESC, r.id DESC LIMIT ?");
        bind_all(statement, limit);
        std::vector<RunSummary> runs;
        while (statement.executeStep()) {
            Columns c(statement);
            runs.push_back(RunSummary{c.text(), c.text(), c.text(), c.text(), c.unsigned_text(), c.int32(), c.int64(),
                                      c.int64(), c.text(), c.text(), c.text()});
        }
        return runs;
    });
}

} // namespace railbreak::record
