// StragglAR schedules: AllReduce while one rank is late.
//
// The vector is cut into p-1 chunks. While rank S is late the others reduce-scatter the chunks among themselves: member
// i ends with chunk i summed over all but S. Then, in rounds in which every rank sends at most one chunk and receives
// at most one, S exchanges chunk r with member r in round r, after which both have its sum, and all other ranks spread
// the finished chunks. For powers of two this takes p - 2 + log2 p rounds.
//
// The exchange crosses two halves and copies them back (see flow_list.hpp); it keeps the ports of both ranks as busy as
// if each had sent its whole part at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// A finished chunk on its way from one role to another. Roles 0..p-2 are the members, role p-1 is S.
struct ChunkCopy {
    Rank from = 0;
    Rank to = 0;
    Rank chunk = 0;
    bool operator==(const ChunkCopy&) const = default;
};

/// The copies of each round; S's exchange with member r in round r <= p-2 goes without saying.
using SpreadRounds = std::vector<std::vector<ChunkCopy>>;

/// Rounds for `ranks` >= 3 ranks. A power of two from 4 on follows a fixed rule. Any other number is matched round by
/// round, oldest unfinished chunk first; `seed` breaks ties, and the shortest of several attempts is taken.
[[nodiscard]] SpreadRounds stragglar_rounds(Rank ranks, std::uint64_t seed);

/// Everything that determines a StragglAR schedule.
struct StragglarParameters {
    Rank ranks = 0;            ///< >= 3
    Rank straggler = 0;        ///< S
    std::int64_t elements = 0; ///< of the vector, >= 1
};

/// The schedule, one lane. `rounds` is what stragglar_rounds() gives for the same ranks. A table of about 3p^2 flows.
[[nodiscard]] std::unique_ptr<const Schedule> make_stragglar(const StragglarParameters& parameters,
                                                             const SpreadRounds& rounds);

} // namespace railbreak::collective
