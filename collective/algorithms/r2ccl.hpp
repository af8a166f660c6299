// R2CCL's AllReduce for one degraded rank A: A takes part in a ring for the first part of the vector only ("main"); the
// rest ("tail") is summed by the healthy ranks H beside it; then, chunk by chunk, A's own tail is added at a helper h
// of H and the result broadcast to everybody.
//
//   stage 1a  ring over all on main, at A's pace; on one lane or on several, each with an equal part
//   stage 1b  tail reduced along the chain of H to h, on what 1a leaves of the healthy ports; on the last lane
//   stage 2   A's tail chunk i to h, which adds; chunk i from h down the chain of H and on to A; on the last lane
//
// A starts stage 2 when its part of 1a is over; at everybody else the order of the queues keeps 1b before stage 2.
//
// 1a needs the share 1/l of a healthy port. Flows that meet on a port share it evenly, so the lanes of 1a decide the
// share: M lanes beside the one of 1b have M/(M+1) at least, which is enough from M = 1/(l-1) on.
//
// The original sums the tail by a whole AllReduce over H although only h uses the result. Here only h gets it, because
// a plan copies complete sums only. That takes less of the healthy ports, Y n instead of 2(p-2)/(p-1) Y n in each
// direction; the degraded port carries the same, and so the closed form of the time is the same as long as 1b is hidden
// behind 1a, which both choices of Y see to.
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
    Lane main_lanes = 1;            ///< M, 1..kMaxLanes-1
};

/// The schedule, all lanes on one NIC. The helper is the lowest healthy rank; the chain goes up the healthy ranks.
/// Every step in O(1).
[[nodiscard]] std::unique_ptr<const Schedule> make_r2ccl(const R2cclParameters& parameters);

/// The least M for which 1a gets what it needs where flows share ports evenly: 1/(l-1) rounded up; but at most
/// kMaxLanes-1, which is too few for l < 4/3: 1a is then slowed down while 1b lasts. slowdown > 1.
[[nodiscard]] Lane r2ccl_main_lanes(const Rational& slowdown);
/// Y = X = 1 - 1/l, the choice of the authors: stage 1a takes as long as a healthy ring.
[[nodiscard]] Rational r2ccl_share(const Rational& slowdown);
/// The Y that makes stage 1a and the original's stage 1b, an AllReduce with the share X of the healthy ports, equally
/// long: aX/(1-X+aX), a = (p-1)^2/(p(p-2)); p >= 3. The best choice for the original with many chunks.
[[nodiscard]] Rational r2ccl_best_share(Rank ranks, const Rational& slowdown);

} // namespace railbreak::collective
