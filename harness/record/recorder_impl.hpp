// What is behind a Recorder, for the files that define its functions. Internal to harness/record.
#pragma once

#include <filesystem>
#include <memory>
#include <type_traits>

#include <fmt/format.h>

#include "harness/record/database.hpp"
#include "harness/record/recorder.hpp"

namespace railbreak::record {

struct Recorder::Impl {
    std::filesystem::path path;
    std::unique_ptr<SQLite::Database> database;

    /// guarded() for an action that writes. SQLite goes on writing to a file that was moved or deleted, where nobody
    /// would find it again.
    template <class Action> auto write(std::string_view what, Action action) -> Result<decltype(action())> {
        if (is_misplaced(*database)) {
            return fail(Error(ErrorKind::kHarness,
                              fmt::format("database {}: cannot {}: the file was moved or deleted while it was in use",
                                          path.string(), what))
                            .advise("leave it in its place while a run is recorded"));
        }
        return guarded(path, what, action);
    }
};

/// Runs `action` as one transaction. All writes begin as IMMEDIATE: a transaction that reads first and writes later can
/// fail at once instead of waiting.
template <class Action> auto in_transaction(SQLite::Database& database, Action action) -> decltype(action()) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    if constexpr (std::is_void_v<decltype(action())>) {
        action();
        transaction.commit();
    } else {
        auto result = action();
        transaction.commit();
        return result;
    }
}

} // namespace railbreak::record
