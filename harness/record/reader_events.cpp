// Watching a run: its events one after the other, and how far it is.
#include "harness/record/columns.hpp"
#include "harness/record/controller_mark.hpp"
#include "harness/record/reader_impl.hpp"

namespace railbreak::record {

namespace {

bool is_finished(SQLite::Database& database, std::int64_t run) {
    SQLite::Statement statement(database, "SELECT finished_realtime_ns <> 0 FROM runs WHERE id = ?");
    bind_all(statement, run);
    return statement.executeStep() && statement.getColumn(0).getInt() != 0;
}

// Before schema 3 nobody noted who records a run.
std::string controller_of(SQLite::Database& database, std::int32_t schema, std::int64_t run) {
    if (schema < kSchemaOfManyRuns) {
        return "";
    }
    SQLite::Statement statement(database, "SELECT controller FROM runs WHERE id = ?");
    bind_all(statement, run);
    return statement.executeStep() ? statement.getColumn(0).getString() : "";
}

std::int64_t origin_of(SQLite::Database& database, std::int64_t run) {
    SQLite::Statement statement(database,
                                "SELECT coalesce(min(at), 0) FROM (SELECT min(at) AS at FROM events WHERE run = ?1 AND "
                                "at > 0 UNION ALL SELECT min(ordered_at) FROM injections WHERE run = ?1 AND ordered_at "
                                "> 0 UNION ALL SELECT min(started_at) FROM iterations WHERE run = ?1 AND started_at > "
                                "0)");
    bind_all(statement, run);
    return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

} // namespace

Result<std::vector<StoredEvent>> RunReader::events_since(std::int64_t run, std::int64_t after,
                                                         std::int32_t limit) const {
    return guarded(impl_->path, "read the events of a run", [&] {
        // The index by run has each event's id behind the run: this begins where it was left, whatever stands before.
        SQLite::Statement statement(*impl_->database,
                                    "SELECT id, run, at, level, source, kind, text, facts_json FROM events WHERE run = "
                                    "? AND id > ? ORDER BY id LIMIT ?");
        bind_all(statement, run, after, limit);
        return all_rows<StoredEvent>(statement, [](Columns& c) {
            return StoredEvent{c.int64(), {c.int64(), c.int64(), c.text(), c.text(), c.text(), c.text(), c.text()}};
        });
    });
}

Result<RunState> RunReader::run_state(std::int64_t run) const {
    return guarded(impl_->path, "read how far a run is", [&] {
        SQLite::Database& database = *impl_->database;
        RunState state;
        state.finished = is_finished(database, run);
        if (!state.finished && !may_be_running(controller_of(database, impl_->schema(), run))) {
            // It may have ended properly since the look at the row.
            state.finished = is_finished(database, run);
            state.controller_gone = !state.finished;
        }
        SQLite::Statement name(database, "SELECT run_id FROM runs WHERE id = ?");
        bind_all(name, run);
        state.run_id = name.executeStep() ? name.getColumn(0).getString() : "";
        state.origin = origin_of(database, run);
        state.verdicts = rows_of<VerdictRow>(
            database,
            "SELECT run, scope, subject, verdict, reason, measured, limit_min, limit_max FROM verdicts WHERE run = ? "
            "ORDER BY id",
            run, [](Columns& c) {
                return VerdictRow{c.int64(), c.text(),          c.text(),          c.text(),
                                  c.text(),  c.optional_real(), c.optional_real(), c.optional_real()};
            });
        return state;
    });
}

} // namespace railbreak::record
