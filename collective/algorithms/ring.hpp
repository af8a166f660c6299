// The plain ring over all ranks: the baseline that every degraded cluster is measured against.
//
// With several ranks a server a ring has one channel per rank of a server, each with an equal part of the vector.
// Channel c enters every server at its rank c, walks c, c+1, ..., c-1 through the intra-host port and leaves for rank c
// of the next server. The network hop of channel c uses NIC c (modulo the NICs) of both servers, as rails that are
// networks of their own require; so rank i receives through NIC i and sends through NIC i+1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Ring AllReduce (reduce-scatter, then allgather) of `elements` >= 1 elements over `ranks` >= 2 ranks, one lane.
/// Section d of the vector is [floor(d*n/p), floor((d+1)*n/p)); with fewer elements than ranks some are empty.
[[nodiscard]] std::unique_ptr<const Schedule> make_ring(Rank ranks, std::int64_t elements);

/// The same with 1..kMaxLanes channels: channel c is lane c of every rank, goes through NIC nics[c] and carries an
/// equal part of the vector.
[[nodiscard]] std::unique_ptr<const Schedule> make_channel_ring(Rank ranks, std::int64_t elements,
                                                                std::vector<std::int32_t> nics);

/// A ring over servers of several ranks.
struct ServerRingParameters {
    Rank servers = 0;           ///< >= 2
    Rank ranks_per_server = 0;  ///< g >= 2
    std::int64_t elements = 0;  ///< >= 1
    std::vector<Rank> channels; ///< which of the channels 0..g-1 there are, ascending, at least one
    /// NIC at both ends of the hop of channel c into server s, at s g + c.
    std::vector<std::int32_t> nics;
};

/// All g channels, every hop on its own rail.
[[nodiscard]] ServerRingParameters rail_aligned_ring(Rank servers, Rank ranks_per_server, std::int32_t nics_per_server,
                                                     std::int64_t elements);

/// Two lanes for NICs (three when g is odd) and as the last one the intra-host port. On a NIC lane a rank only sends or
/// only receives: the hop of channel c is on lane c mod 2, that of the last of an odd number on lane 2. The channels
/// take turns on the intra-host lane, one section each. Every step in O(1).
[[nodiscard]] std::unique_ptr<const Schedule> make_server_ring(ServerRingParameters parameters);

} // namespace railbreak::collective
