// What is behind a RunReader, for the files that define its functions. Internal to harness/record.
#pragma once

#include <filesystem>
#include <memory>

#include "harness/record/database.hpp"
#include "harness/record/reader.hpp"

namespace railbreak::record {

struct RunReader::Impl {
    std::filesystem::path path;
    std::unique_ptr<SQLite::Database> database;

    /// A file that nobody has written to since an older schema is read as it is.
    [[nodiscard]] std::int32_t schema() const { return database->execAndGet("PRAGMA user_version").getInt(); }
};

/// Schema that brought RunRow::cluster, suites and baselines.
inline constexpr std::int32_t kSchemaOfManyRuns = 3;
/// Schema that brought SuiteItemRow::pruned.
inline constexpr std::int32_t kSchemaOfPrunedItems = 4;

/// Everything of the run of that id (RunRow::id), which there must be. Throws as SQLite does; call it inside a
/// transaction, so that all tables are seen as of one moment.
[[nodiscard]] RunData read_whole_run(SQLite::Database& database, std::int32_t schema, std::int64_t id);

} // namespace railbreak::record
