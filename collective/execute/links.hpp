// Which links a rank needs to run a schedule.
#pragma once

#include <vector>

#include "collective/schedule.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// The link of one step of `rank`: its ports are those of the lane at both ends.
[[nodiscard]] LinkSpec link_of(const Schedule& schedule, Rank rank, Direction direction, Rank peer, Lane lane);

/// Every link over which `rank` sends or receives a non-empty step, each once, sorted. Walks the rank's queues.
[[nodiscard]] std::vector<LinkSpec> links_of(const Schedule& schedule, Rank rank);

} // namespace railbreak::collective
