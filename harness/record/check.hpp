// Looks for what is wrong with a database, without changing it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace railbreak::record {

/// One thing that was found.
struct Finding {
    std::string kind;    ///< "damage", "foreign_key", "unfinished_run", "interrupted_suite", "log_size", "old_schema"
    std::string text;    ///< one sentence, with what to do where there is something
    bool problem = true; ///< false: worth knowing, and as it should be

    bool operator==(const Finding&) const = default;
};

/// The state of a database.
struct DatabaseCheck {
    std::int32_t schema_version = 0;
    std::int64_t runs = 0;
    std::int64_t suites = 0;
    std::int64_t file_bytes = 0;
    std::int64_t log_bytes = 0; ///< of the write-ahead log beside it
    std::vector<Finding> findings;

    /// Whether no finding is a problem.
    [[nodiscard]] bool ok() const;
};

/// Reads the whole file: SQLite's integrity check and foreign keys, runs and suites that are not finished though the
/// process that recorded them is gone, a write-ahead log that a reader keeps from being emptied. Damage is a finding.
/// Errors as RunReader::open_readonly(): a file that is no database of railbreak cannot be checked.
[[nodiscard]] Result<DatabaseCheck> check_database(const std::filesystem::path& path);

} // namespace railbreak::record
