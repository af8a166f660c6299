// The database's tables and views, as a list of migrations. A published migration is never edited: a change of the
// schema is a new entry at the end of the list.
#pragma once

#include <cstdint>
#include <string_view>

namespace railbreak::record {

/// SQLite's application_id of every railbreak database: the letters "RAIL".
inline constexpr std::int32_t kApplicationId = 0x5241494C;

/// Version of the schema that this build writes (SQLite's user_version).
inline constexpr std::int32_t kSchemaVersion = 4;

/// The SQL that lifts a database from `version - 1` to `version`, for version in 1..kSchemaVersion.
[[nodiscard]] std::string_view migration_to(std::int32_t version);

} // namespace railbreak::record
