// How long the plans take when every flow costs something: the figures by which a plan is chosen.
//
// A flow of x vector fractions occupies both port sides for its transfer time plus an overhead o, and its data can be
// used a latency L after its end. A phase of a plan with h healthy ranks, c ring streams of section time x and
// straggler flows of section time z takes the largest of
//   the work of a healthy link      (h-1) c (x+o) + (l z + o)     with two lanes (h-1) c (x+o) + z
//   the work of the straggler       h (l z + o)
//   the dependency round the ring   (h-1) (x + o + L).
// Exact for L = 0 and one lane; measured against event-by-event evaluation it is within some per cent otherwise.
#pragma once

#include <cstdint>
#include <optional>

#include "collective/algorithms/optcc.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// What the costs depend on. Times in nanoseconds.
struct CostInput {
    Rank ranks = 0;
    double slowdown = 1;    ///< of the straggler, the larger of its two directions
    double vector_ns = 0;   ///< time of a healthy port for the whole vector, one direction
    double overhead_ns = 0; ///< o
    double latency_ns = 0;  ///< L
    bool shared = false;    ///< two lanes (fluid model)
};

/// The plain ring with the straggler in it.
[[nodiscard]] double ring_cost_ns(const CostInput& input);
/// An OptCC plan with k = segments >= 1; ranks >= 3. Star chunks are taken to fill their pauses.
[[nodiscard]] double optcc_cost_ns(const CostInput& input, OptccPlan plan, std::int64_t segments);

/// A plan and its number of segments.
struct PlanChoice {
    OptccPlan plan = OptccPlan::kBalanced;
    std::int64_t segments = 1;
};

inline constexpr std::int64_t kMostSegments = 64;
/// A measured slowdown below this is noise: the rank counts as healthy.
inline constexpr double kNoticeableSlowdown = 1.03;
/// Plans are chosen for this much more than the measured slowdown. A plan for too small a slowdown loses far more than
/// one for too large a slowdown, and measurements err.
inline constexpr double kSlowdownMargin = 1.2;

/// The cheapest plan for kSlowdownMargin times input.slowdown with 1..kMostSegments segments: balanced or uniform,
/// unless `plan` or `segments` is given. Of equally cheap ones the one with fewer segments.
[[nodiscard]] PlanChoice cheapest_plan(const CostInput& input, std::optional<OptccPlan> plan,
                                       std::optional<std::int64_t> segments);

} // namespace railbreak::collective
