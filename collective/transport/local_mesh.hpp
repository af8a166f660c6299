// Transports for ranks that are threads of one process, over pairs of connected Unix sockets and, inside a host,
// through the same shared memory as between processes: for tests and dry runs.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// One transport per rank, with a link of NIC 0 from every rank to every other on each lane. Uses
/// 2 * ranks * (ranks-1) * lanes descriptors. Error (kHarness) when the kernel gives fewer. The transports do not know
/// each other and may be used from different threads.
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>> make_local_mesh(Rank ranks, Lane lanes);

/// One transport per rank with exactly the links of the lists, one list a rank (see links_of() in
/// collective/execute/links.hpp); `local_rate` limits every rank's intra-host port (zero: no limit). The outgoing links
/// of one rank must be the incoming ones of its peers. Error (kHarness).
[[nodiscard]] Result<std::vector<std::unique_ptr<Transport>>>
make_local_mesh(const std::vector<std::vector<LinkSpec>>& links, BitRate local_rate = {});

} // namespace railbreak::collective
