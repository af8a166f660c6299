#include "harness/record/check.hpp"

#include <algorithm>

#include <sqlite3.h>

#include <fmt/format.h>

#include "harness/record/columns.hpp"
#include "harness/record/controller_mark.hpp"
#include "harness/record/reader_impl.hpp"
#include "harness/record/schema.hpp"

namespace railbreak::record {

namespace {

/// A log is emptied at 4 MiB unless a reader holds a part of it.
constexpr std::int64_t kLargeLog = std::int64_t{64} << 20;
constexpr const char* kHowToMend =
    "move the file away, or save what can be read with railbreak db export or the sqlite3 shell's .recover";

std::int64_t size_of(const std::filesystem::path& path) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    return error ? 0 : static_cast<std::int64_t>(size);
}

void check_pages(SQLite::Database& database, std::vector<Finding>& findings) {
    SQLite::Statement statement(database, "PRAGMA integrity_check(20)");
    while (statement.executeStep()) {
        if (const std::string text = statement.getColumn(0).getString(); text != "ok") {
            findings.push_back({"damage", fmt::format("the file is damaged: {}; {}", text, kHowToMend)});
        }
    }
}

void check_references(SQLite::Database& database, std::vector<Finding>& findings) {
    SQLite::Statement statement(database, "SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check "
                                          "GROUP BY 1, 2 ORDER BY 1, 2");
    while (statement.executeStep()) {
        Columns c(statement);
        const std::string table = c.text();
        const std::string parent = c.text();
        findings.push_back({"foreign_key", fmt::format("{} rows of {} belong to no row of {}: another program has "
                                                       "changed the file",
                                                       c.int64(), table, parent)});
    }
}

void check_unfinished(SQLite::Database& database, bool marked, std::vector<Finding>& findings) {
    SQLite::Statement runs(database, fmt::format("SELECT run_id, {} FROM runs WHERE finished_realtime_ns = 0 ORDER BY "
                                                 "id",
                                                 marked ? "controller" : "''"));
    while (runs.executeStep()) {
        Columns c(runs);
        const std::string name = c.text();
        if (may_be_running(c.text())) {
            findings.push_back({"unfinished_run", fmt::format("run {} is being recorded", name), false});
        } else {
            findings.push_back({"unfinished_run", fmt::format("run {} never ended and its controller is gone: what it "
                                                              "measured is there, a verdict is not; railbreak db "
                                                              "prune --unfinished deletes it",
                                                              name)});
        }
    }
    if (!marked) {
        return;
    }
    SQLite::Statement suites(database,
                             "SELECT suite_id, controller, (SELECT count(*) FROM suite_items WHERE suite = s.id AND "
                             "state = 'done'), (SELECT count(*) FROM suite_items WHERE suite = s.id) FROM suites s "
                             "WHERE finished_realtime_ns = 0 ORDER BY id");
    while (suites.executeStep()) {
        Columns c(suites);
        const std::string name = c.text();
        const bool running = may_be_running(c.text());
        const std::int64_t done = c.int64();
        const std::int64_t items = c.int64();
        findings.push_back({"interrupted_suite",
                            running ? fmt::format("suite {} goes on: {} of {} items are done", name, done, items)
                                    : fmt::format("suite {} was interrupted with {} of {} items done: railbreak run "
                                                  "--resume takes it up",
                                                  name, done, items),
                            !running});
    }
}

void check_everything(SQLite::Database& database, DatabaseCheck& check) {
    SQLite::Transaction transaction(database);
    check.schema_version = database.execAndGet("PRAGMA user_version").getInt();
    const bool many_runs = check.schema_version >= kSchemaOfManyRuns;
    if (check.schema_version < kSchemaVersion) {
        check.findings.push_back({"old_schema",
                                  fmt::format("the schema is {}; the next run that is recorded lifts it to {}",
                                              check.schema_version, kSchemaVersion),
                                  false});
    }
    check_pages(database, check.findings);
    check_references(database, check.findings);
    check_unfinished(database, many_runs, check.findings);
    check.runs = database.execAndGet("SELECT count(*) FROM runs").getInt64();
    check.suites = many_runs ? database.execAndGet("SELECT count(*) FROM suites").getInt64() : 0;
}

} // namespace

bool DatabaseCheck::ok() const {
    return std::ranges::none_of(findings, &Finding::problem);
}

Result<DatabaseCheck> check_database(const std::filesystem::path& path) {
    DatabaseCheck check;
    check.file_bytes = size_of(path);
    check.log_bytes = size_of(path.string() + "-wal");
    auto database = open_for_reading(path);
    if (!database) {
        return tl::unexpected(std::move(database).error());
    }
    const Result<void> done = guarded(path, "check it", [&] {
        try {
            check_everything(**database, check);
        } catch (const SQLite::Exception& exception) {
            if (exception.getErrorCode() != SQLITE_CORRUPT) {
                throw;
            }
            check.findings.push_back(
                {"damage", fmt::format("the file is damaged: {}; {}", exception.what(), kHowToMend)});
        }
    });
    if (!done) {
        return tl::unexpected(done.error());
    }
    if (check.log_bytes > kLargeLog) {
        check.findings.push_back({"log_size", fmt::format("the write-ahead log has grown to {} MiB: a process has been "
                                                          "reading for long; it shrinks once that ends",
                                                          check.log_bytes >> 20)});
    }
    return check;
}

} // namespace railbreak::record
