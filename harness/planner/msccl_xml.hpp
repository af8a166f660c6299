// A schedule as an MSCCL program: the XML that the MSCCL runtimes of NCCL and RCCL read, and that collective compilers
// write. One <gpu> for each rank; its thread blocks ("tb") each own one connection to send on, one to receive on, or
// both, on a channel; a channel is a lane.
//
// A program has no clock and no rates: of a schedule that is paced by them only the order remains.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::planner {

/// Equal pieces that a program may cut the vector into.
inline constexpr std::int64_t kMostMscclChunks = 65536;

// What the runtimes take; a program beyond it is still a correct program.
inline constexpr std::int64_t kMscclStepsOfBlock = 256;   ///< steps of a thread block (64 in the later "executor")
inline constexpr std::int64_t kMscclBlocksOfChannel = 32; ///< thread blocks of a GPU on one channel
inline constexpr std::int64_t kMscclCount = 71;           ///< chunks of a step; longer messages are cut

/// Size of a program.
struct MscclSummary {
    std::int64_t chunks = 0;         ///< nchunksperloop
    std::int64_t chunk_elements = 0; ///< of each
    std::int64_t most_blocks = 0;    ///< thread blocks of the GPU and channel that has most
    std::int64_t most_steps = 0;     ///< steps of the longest thread block
    /// Whether the runtimes take it.
    [[nodiscard]] bool fits_runtime() const {
        return most_steps <= kMscclStepsOfBlock && most_blocks <= kMscclBlocksOfChannel;
    }
};

/// Writes the program, GPU by GPU. The schedule must be a proven one (verify()). Errors (kInput): the borders of its
/// slices have no common measure that gives at most kMostMscclChunks chunks (the advice tells which vector lengths
/// would do), the schedule deadlocks, it is far too large for any runtime, or `out` took no more.
[[nodiscard]] Result<MscclSummary> write_msccl_xml(const collective::Schedule& schedule, std::ostream& out);

} // namespace railbreak::planner
