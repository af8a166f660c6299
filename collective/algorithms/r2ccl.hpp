// R2CCL's AllReduce for one degraded rank A: A takes part in a ring for the first part of the vector only ("main"); the
// rest ("tail") is summed by the healthy ranks H beside it; then, chunk by chunk, A's own tail is added at a helper h
// of H and the result broadcast to everybody.
//
//   stage 1a  ring over all on main, at A's pace; on one lane or on several, each with an equal part
//   stage 1b  ring over H on tail, on what 1a leaves of the healthy ports
//   stage 2   A's tail chunk i to h, which adds; chunk i from h down the chain of H and on to A
//
// 1b and stage 2 have lanes of their own, each of which does both for an equal part of every chunk.
//
// A starts stage 2 when its part of 1a is over; everybody else takes nothing of it in before all of his part of 1b has
// left: what is passed on in 1b are sums without A, and the results must not overtake them.
//
// 1a needs the share 1/l of a healthy port. Flows that meet on a port share it evenly, so the numbers of lanes decide
// the shares: M lanes of main beside T of tail have M/(M+T). Where 1b meets only the flows to or from A it has the rest
// of the port, X = 1 - 1/l, and that sets its pace. Between healthy ranks it has X on the average, and at every moment
// where M/(M+T) is 1/l; where that is more, 1b runs in bursts, which can hold it up a little.
//
// Chunks travel in pieces, and a chain passes on each piece at once, so that a chain costs one piece a member and not
// one chunk; A, which has nobody behind it, is at the end. But h sends no piece of a chunk before the last piece of the
// chunk from A is at least on its way: chunks are what the two halves of stage 2 overlap by, as in the original, which
// reduces and broadcasts whole chunks. (An executor that cuts through gains one piece on that.)
#pragma once

#include <cstdint>
#include <memory>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Everything that determines a schedule.
struct R2cclParameters {
    Rank ranks = 0;                 ///< p >= 3
    Rank straggler = 0;             ///< A
    std::int64_t elements = 0;      ///< n >= 1
    std::int64_t tail_elements = 0; ///< at the end of the vector, 0..n
    std::int64_t chunks = 4;        ///< K >= 1
    std::int64_t pieces = 1;        ///< of each chunk, >= 1
    Lane main_lanes = 1;            ///< M >= 1
    Lane tail_lanes = 1;            ///< T >= 1; the lanes after those of main; M + T <= kMaxLanes
};

/// The schedule, all lanes on one NIC. The helper is the lowest healthy rank; the chain goes up the healthy ranks.
/// Every step in O(1).
[[nodiscard]] std::unique_ptr<const Schedule> make_r2ccl(const R2cclParameters& parameters);

/// Lanes for main and for the tail.
struct R2cclLanes {
    Lane main = 1; ///< M
    Lane tail = 1; ///< T
    /// M/(M+T), what main has of a port beside the tail.
    [[nodiscard]] Rational main_share() const { return Rational(main, main + tail); }
    bool operator==(const R2cclLanes&) const = default;
};

/// The lanes that give 1a at least what it needs, 1/l, and as little more as can be with kMaxLanes. For l < 4/3 there
/// are too few: 1a has 3/4 only and is slowed down while 1b lasts. slowdown > 1.
[[nodiscard]] R2cclLanes r2ccl_lanes(const Rational& slowdown);
/// Y = X = 1 - 1/l, the choice of the authors: stage 1a takes as long as a healthy ring.
[[nodiscard]] Rational r2ccl_share(const Rational& slowdown);
/// The Y that makes stage 1a and stage 1b, with the share X of the healthy ports, equally long: aX/(1-X+aX),
/// a = (p-1)^2/(p(p-2)); p >= 3. The best choice for many chunks.
[[nodiscard]] Rational r2ccl_best_share(Rank ranks, const Rational& slowdown);

} // namespace railbreak::collective
