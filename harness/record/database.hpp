// Opening of database files, and the border where SQLite's exceptions become values. Internal to harness/record: the
// only header that shows SQLiteCpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>

#include "base/error.hpp"

namespace railbreak::record {

/// How long a statement waits for another process's lock before it fails.
inline constexpr std::chrono::milliseconds kLockWait{5000};

/// What a failed SQLite call means for the user, with the file and SQLite's own message.
[[nodiscard]] Error describe(const SQLite::Exception& exception, const std::filesystem::path& path,
                             std::string_view what);

/// Calls `action` and turns SQLite's exceptions into Errors that name `path` and `what` ("add an iteration").
template <class Action> auto guarded(const std::filesystem::path& path, std::string_view what, Action action)
    -> Result<decltype(action())> {
    try {
        if constexpr (std::is_void_v<decltype(action())>) {
            action();
            return {};
        } else {
            return action();
        }
    } catch (const SQLite::Exception& exception) {
        return fail(describe(exception, path, what));
    }
}

/// The inner Result of an action under guarded() that can fail by itself.
template <class T> Result<T> flatten(Result<Result<T>>&& nested) {
    if (!nested) {
        return tl::unexpected(std::move(nested).error());
    }
    return std::move(*nested);
}

/// Opens for writing: makes missing folders and the file, checks that a file that is there is ours and not newer,
/// applies missing migrations, sets WAL, synchronous=FULL and foreign_keys.
[[nodiscard]] Result<std::unique_ptr<SQLite::Database>> open_for_writing(const std::filesystem::path& path,
                                                                         std::chrono::milliseconds lock_wait);
/// Opens an existing file for reading with the same checks.
[[nodiscard]] Result<std::unique_ptr<SQLite::Database>> open_for_reading(const std::filesystem::path& path);

/// Whether the file of an open database is no longer at its path.
[[nodiscard]] bool is_misplaced(SQLite::Database& database);

inline void bind_one(SQLite::Statement& statement, int index, std::int32_t value) {
    statement.bind(index, value);
}
inline void bind_one(SQLite::Statement& statement, int index, std::int64_t value) {
    statement.bind(index, value);
}
inline void bind_one(SQLite::Statement& statement, int index, double value) {
    statement.bind(index, value);
}
inline void bind_one(SQLite::Statement& statement, int index, bool value) {
    statement.bind(index, value ? 1 : 0);
}
inline void bind_one(SQLite::Statement& statement, int index, const std::string& value) {
    statement.bind(index, value);
}
inline void bind_one(SQLite::Statement& statement, int index, const std::optional<double>& value) {
    if (value) {
        statement.bind(index, *value);
    } else {
        statement.bind(index);
    }
}

inline void bind_one(SQLite::Statement& statement, int index, const std::optional<std::int64_t>& value) {
    if (value) {
        statement.bind(index, *value);
    } else {
        statement.bind(index);
    }
}

/// Binds all values in order to the statement's parameters.
template <class... Values> void bind_all(SQLite::Statement& statement, const Values&... values) {
    int index = 0;
    (bind_one(statement, ++index, values), ...);
}

/// Runs one statement without a result and returns the row id of the last insert.
template <class... Values> std::int64_t execute(SQLite::Database& database, const char* sql, const Values&... values) {
    SQLite::Statement statement(database, sql);
    bind_all(statement, values...);
    statement.exec();
    return database.getLastInsertRowid();
}

} // namespace railbreak::record
