// A schedule as JSON and back: schema "railbreak-schedule" version 1 (docs/schedule-format.md). The whole plan stands
// in the file, step by step, so that other programs can read it, and plans made elsewhere can be verified and
// simulated.
#pragma once

#include <iosfwd>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::planner {

inline constexpr std::string_view kScheduleSchema = "railbreak-schedule";
inline constexpr int kScheduleVersion = 1;

/// Writes the schedule step by step, a line each; nothing is kept in memory. The same schedule gives the same bytes.
/// Error (kInput): `out` took no more.
[[nodiscard]] Result<void> write_schedule_json(const collective::Schedule& schedule, std::ostream& out);

/// Reads a schedule. Strict: an unknown, missing or repeated key, a number out of range, a peer that does not exist or
/// a step that waits for more than the other queue has is an Error (kInput) that names the place. What is read is safe
/// to walk, but may be wrong as an AllReduce: verify() tells. Memory: the steps, not the text.
[[nodiscard]] Result<std::unique_ptr<const collective::Schedule>> read_schedule_json(std::istream& in);

} // namespace railbreak::planner
