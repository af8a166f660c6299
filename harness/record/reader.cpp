#include "harness/record/reader.hpp"

#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/find_named.hpp"
#include "harness/record/reader_impl.hpp"

namespace railbreak::record {

namespace {

RunRow read_run(SQLite::Database& database, std::int32_t schema, std::int64_t id) {
    const std::string sql = fmt::format(
        "SELECT id, run_id, scenario_name, scenario_text, plan_json, plan_hash, seed, backend, version, command_line, "
        "environment_json, started_realtime_ns, finished_realtime_ns, hosts, bytes, dtype, rate_bits_per_s, {} FROM "
        "runs WHERE id = ?",
        schema >= kSchemaOfManyRuns ? "cluster" : "''");
    return rows_of<RunRow>(database, sql.c_str(), id,
                           [](Columns& c) {
                               // Braced initialisers are evaluated left to right.
                               return RunRow{c.int64(),         c.text(),  c.text(),  c.text(), c.text(),  c.text(),
                                             c.unsigned_text(), c.text(),  c.text(),  c.text(), c.text(),  c.int64(),
                                             c.int64(),         c.int32(), c.int64(), c.text(), c.int64(), c.text()};
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

void read_faults(SQLite::Database& database, std::int32_t schema, std::int64_t id, RunData& data) {
    constexpr std::int32_t kSchemaOfEveryKind = 2;
    const std::string sql = fmt::format(
        "SELECT id, run, fault, name, kind, algorithm, host, nic, direction, wanted_rate_bits_per_s, ordered_at, "
        "applied_at, observed_at, reverted_at, restored_at, mechanism, realism, data_path, observation_json, "
        "measured_send_bits_per_s, measured_receive_bits_per_s, error, {} FROM injections WHERE run = ? ORDER BY id",
        schema >= kSchemaOfEveryKind ? "rank, params_json, collateral_json" : "-1, '{}', '[]'");
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

} // namespace

RunData read_whole_run(SQLite::Database& database, std::int32_t schema, std::int64_t id) {
    RunData data;
    data.run = read_run(database, schema, id);
    read_cluster(database, id, data);
    read_faults(database, schema, id, data);
    read_measurements(database, id, data);
    read_judgement(database, id, data);
    return data;
}

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
    return flatten(guarded(impl_->path, "read a run", [&]() -> Result<RunData> {
        SQLite::Transaction transaction(*impl_->database);
        const Result<std::int64_t> id = find_named(*impl_->database, impl_->path, kRuns, which);
        if (!id) {
            return tl::unexpected(id.error());
        }
        return read_whole_run(*impl_->database, impl_->schema(), *id);
    }));
}

Result<std::int64_t> RunReader::find_run(std::string_view which) const {
    return flatten(
        guarded(impl_->path, "find a run", [&] { return find_named(*impl_->database, impl_->path, kRuns, which); }));
}

namespace {

// The beginning of a SELECT whose rows read_summary() reads.
constexpr std::string_view kSelectSummaries =
    "SELECT r.run_id, r.scenario_name, r.backend, r.plan_hash, r.seed, r.hosts, r.started_realtime_ns, "
    "r.finished_realtime_ns, "
    "coalesce((SELECT verdict FROM verdicts WHERE run = r.id AND scope = 'run'), ''), "
    "coalesce((SELECT reason FROM verdicts WHERE run = r.id AND scope = 'run'), ''), "
    "coalesce((SELECT reason FROM verdicts WHERE run = r.id AND scope = 'teardown' AND verdict <> 'pass' "
    "ORDER BY id), '') "
    "FROM runs r ";

RunSummary read_summary(Columns& c) {
    return {c.text(),  c.text(),  c.text(), c.text(), c.unsigned_text(), c.int32(),
            c.int64(), c.int64(), c.text(), c.text(), c.text()};
}

} // namespace

Result<std::vector<RunSummary>> RunReader::list_runs(std::int32_t limit) const {
    return guarded(impl_->path, "list the runs", [&] {
        SQLite::Statement statement(*impl_->database, std::string(kSelectSummaries) + "ORDER BY r.id DESC LIMIT ?");
        bind_all(statement, limit);
        return all_rows<RunSummary>(statement, read_summary);
    });
}

Result<std::vector<RunSummary>> RunReader::find_runs(std::string_view scenario_name, std::string_view plan_hash,
                                                     std::string_view cluster, std::int32_t limit) const {
    return guarded(impl_->path, "find earlier runs", [&] {
        // The inner query has all that it needs in one index; only the rows that it picks are read.
        const std::string sql = fmt::format(
            "{}WHERE r.id IN (SELECT id FROM runs WHERE scenario_name = ?1 AND (?2 = '' OR plan_hash = ?2) AND "
            "(?3 = '' OR {} = ?3) AND finished_realtime_ns <> 0 ORDER BY id DESC LIMIT ?4) ORDER BY r.id",
            kSelectSummaries, impl_->schema() >= kSchemaOfManyRuns ? "cluster" : "''");
        SQLite::Statement statement(*impl_->database, sql);
        bind_all(statement, std::string(scenario_name), std::string(plan_hash), std::string(cluster), limit);
        return all_rows<RunSummary>(statement, read_summary);
    });
}

Result<std::vector<std::string>> RunReader::artefact_names(std::int32_t limit) const {
    return guarded(impl_->path, "list the artefacts", [&] {
        SQLite::Statement statement(*impl_->database,
                                    "SELECT DISTINCT name FROM artefacts WHERE run IN (SELECT id FROM runs ORDER BY id "
                                    "DESC LIMIT ?) ORDER BY name");
        bind_all(statement, limit);
        return all_rows<std::string>(statement, [](Columns& c) { return c.text(); });
    });
}

} // namespace railbreak::record
