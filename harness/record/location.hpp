// Where the database lies by default, and how runs are named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace railbreak::record {

/// The database used when no --db is given: $RAILBREAK_DB, else $XDG_STATE_HOME/railbreak/railbreak.db (the variable
/// counts only when it is absolute, as the XDG specification says), else $HOME/.local/state/railbreak/railbreak.db.
/// kUsage when none of the three variables is of use.
[[nodiscard]] Result<std::filesystem::path> default_database_path();

/// A run's name: "20260131T123456Z-half-rate-nic-3f9c". It sorts by time; letters other than a-z, 0-9 become dashes;
/// `salt` (any number that differs between runs) tells apart two runs of one second.
[[nodiscard]] std::string make_run_id(Nanoseconds started_realtime, std::string_view scenario_name, std::uint64_t salt);

} // namespace railbreak::record
