// Proof that a schedule is a correct AllReduce on any network: for every order of events and every speed.
//
// Five things are shown, each from the queues alone, in this order (a failure ends the proof, because the next part
// would build on sand):
//   ports      every server has equally many ranks; a rank has at most one lane on its intra-host port; the two ends of
//              a step have ports of the same kind; a step between intra-host ports stays within a server.
//   pairing    the k-th step that a sends to b on a lane and the k-th that b receives from a on it agree in slice,
//              stage and combine; slices lie in the vector; nobody is his own peer. A lane's side is one in-order
//              queue, so a port carries at most one flow a side and lane by construction.
//   deadlock   with unbuffered (rendezvous) messages, and a forwarder that always waits for whole messages, every
//              queue can be worked off. Buffers and cut-through only remove waits.
//   race       for every element and rank: of two accesses of which one changes it, one happens before the other in
//              every execution, cut-through included. Additions are the exception: two lanes may add to the same
//              range in either order. An executor must not lose one of them (one thread per rank applies data).
//   data       tracking whose values each element of each rank contains: an addition never counts a rank twice, a
//              copy puts what the sender has in the place of what the receiver had, and in the end every rank has
//              every rank's values everywhere, once. A copy may carry the sum of a few only (an AllReduce over some
//              ranks, to which others are added later).
//
// The race proof uses the messages that carry an element; an order that comes about only through messages that do not
// carry it is not seen and is reported as a race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// One reason why a schedule is wrong.
struct Violation {
    std::string rule; ///< "ports", "pairing", "deadlock", "race", "data"
    Rank rank = 0;    ///< whose queue
    Lane lane = 0;
    bool sending = false;   ///< send queue, otherwise receive queue
    std::int64_t index = 0; ///< entry of the queue; -1 when no single entry is to blame
    std::string message;    ///< what is wrong, for people
};

/// "race: rank 3 lane 0 receive 17: ...".
[[nodiscard]] std::string to_string(const Violation& violation);

/// All violations found, at most `limit`; empty means proven. Time and memory are about linear in the number of
/// steps (a million steps: about a second and 150 MB).
[[nodiscard]] std::vector<Violation> verify(const Schedule& schedule, std::size_t limit = 16);

} // namespace railbreak::collective
