// How long a plain ring takes when every flow costs something, and what all choices of a plan have in common.
//
// A flow occupies both port sides for its transfer time plus an overhead o, and its data can be used a latency L after
// its end. The costs of OptCC plans are in algorithms/optcc_cost.hpp.
#pragma once

#include "collective/schedule.hpp"

namespace railbreak::collective {

/// What the costs depend on. Times in nanoseconds.
struct CostInput {
    Rank ranks = 0;
    double slowdown = 1;    ///< of the slowest rank, the larger of its two directions
    double vector_ns = 0;   ///< time of a healthy port for the whole vector, one direction
    double overhead_ns = 0; ///< o
    double latency_ns = 0;  ///< L
};

/// The plain ring with the straggler in it: 2(p-1) hops of max{l x + o, x + o + L} for a section time x.
[[nodiscard]] double ring_cost_ns(const CostInput& input);

/// A measured slowdown below this is noise: the rank counts as healthy.
inline constexpr double kNoticeableSlowdown = 1.03;
/// Plans are chosen for this much more than the measured slowdown. A plan for too small a slowdown loses far more than
/// one for too large a slowdown, and measurements err.
inline constexpr double kSlowdownMargin = 1.2;

} // namespace railbreak::collective
