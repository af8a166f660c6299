// Finds a run or a suite by what a user calls it. Internal to harness/record.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.hpp"
#include "harness/record/database.hpp"

namespace railbreak::record {

/// A table whose rows have names that sort by time.
struct NamedTable {
    std::string_view table;  ///< "runs"
    std::string_view column; ///< "run_id"
    std::string_view noun;   ///< "run"
};

inline constexpr NamedTable kRuns{"runs", "run_id", "run"};
inline constexpr NamedTable kSuites{"suites", "suite_id", "suite"};

/// The id of the row that `which` means: "latest" (recorded last, whatever the clock said), a name, or the beginning
/// of exactly one. kInput for all else, with the names that there are.
[[nodiscard]] Result<std::int64_t> find_named(SQLite::Database& database, const std::filesystem::path& path,
                                              const NamedTable& in, std::string_view which);

} // namespace railbreak::record
