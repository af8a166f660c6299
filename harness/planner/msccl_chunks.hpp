// Equal chunks for a schedule's slices. Internal to harness/planner.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::planner {

/// Elements of the largest chunk that all slice borders and the vector's length are multiples of. Error (kInput) when
/// that makes more than `most_chunks` chunks; its advice names vector lengths that would do.
[[nodiscard]] Result<std::int64_t> common_chunk(const collective::Schedule& schedule, std::int64_t most_chunks);

} // namespace railbreak::planner
