// Transports for ranks that are threads of one process, over pairs of connected Unix sockets: for tests and dry runs.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// One transport per rank, with a link from every rank to every other on each lane. Uses 2 * ranks * (ranks-1) * lanes
/// descriptors. Error (kHarness) when the kernel gives fewer. The transports do not know each other and may be used
/// from different threads.
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>> make_local_mesh(Rank ranks, Lane lanes);

} // namespace railbreak::collective
