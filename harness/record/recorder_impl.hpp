// What is behind a Recorder, for the files that define its functions. Internal to harness/record.
#pragma once

#include <filesystem>
#include <memory>
#include <type_traits>

#include "harness/record/database.hpp"
#include "harness/record/recorder.hpp"

namespace railbreak::record {

struct Recorder::Impl {
    std::filesystem::path path;
    std::unique_ptr<SQLite::Database> database;
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
