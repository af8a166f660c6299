// One rank's part of an MSCCL program: its thread blocks and their steps. Internal to harness/planner.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "collective/schedule.hpp"
#include "harness/planner/message_levels.hpp"

namespace railbreak::planner {

/// A step of a thread block.
struct MscclStep {
    enum class Type : std::uint8_t { kNop, kSend, kReceive, kReceiveReduce };
    Type type = Type::kNop;
    std::int64_t chunk = -1;      ///< first chunk, of sender and receiver alike
    std::int64_t count = 0;       ///< chunks
    std::int64_t wait_block = -1; ///< thread block of the same GPU to wait for; -1: none
    std::int64_t wait_step = -1;  ///< the step of it that must be complete
    bool awaited = false;         ///< another thread block waits for this step
};

/// Owns at most one connection in each direction.
struct MscclBlock {
    collective::Lane channel = 0;
    collective::Rank send_peer = -1;
    collective::Rank receive_peer = -1;
    std::vector<MscclStep> steps;
};

/// The thread blocks of `rank` in a schedule that `levels` was made of; `chunk` elements make a chunk, and a step has
/// at most `most_count` chunks. Error (kInput): too large to be laid out, far beyond any runtime.
[[nodiscard]] Result<std::vector<MscclBlock>> msccl_blocks(const collective::Schedule& schedule,
                                                           const MessageLevels& levels, collective::Rank rank,
                                                           std::int64_t chunk, std::int64_t most_count);

} // namespace railbreak::planner
