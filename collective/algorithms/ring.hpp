// The plain ring over all ranks: the baseline that every degraded cluster is measured against.
#pragma once

#include <memory>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Ring AllReduce (reduce-scatter, then allgather) of `elements` >= 1 elements over `ranks` >= 2 ranks, one lane.
/// Section d of the vector is [floor(d*n/p), floor((d+1)*n/p)); with fewer elements than ranks some are empty.
[[nodiscard]] std::unique_ptr<const Schedule> make_ring(Rank ranks, std::int64_t elements);

} // namespace railbreak::collective
