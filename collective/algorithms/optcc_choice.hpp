// Which OptCC plan, with how many segments, and which of the slow ranks are its stragglers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/optcc_cost.hpp"

namespace railbreak::collective {

/// A server that is noticeably slow.
struct SlowServer {
    Rank server = 0;
    Rational slowdown{1}; ///< the larger of both directions
};

/// What to choose from. `cluster` without its stragglers and ring slowdown.
struct OptccQuestion {
    OptccCluster cluster;
    std::int64_t elements = 0;
    std::int32_t nics_per_server = 1;
    std::vector<SlowServer> slow;         ///< at least one, the slowest first
    std::optional<OptccPlan> plan;        ///< forced
    std::optional<std::int64_t> segments; ///< forced
    std::optional<bool> late_first_link;  ///< forced
};

/// The answer.
struct OptccChoice {
    OptccParameters parameters;
    double predicted_ns = 0; ///< for the slowdowns as measured
};

inline constexpr std::int64_t kMostSegments = 64;

/// The plan that loses least against the best one of all candidates, whether the slowdowns are as measured or
/// kSlowdownMargin times as large: measurements err, and a plan for exactly the measured slowdown may lose much when it
/// is a little larger. Candidates: for each number m' of stragglers (the m' slowest; the others stay in the ring and
/// slow it down), U, BS and LAG, for m' = 1 also ramp, the last two sized for either slowdown, with 1..kMostSegments
/// segments. Of equally good ones the one with fewer stragglers, then fewer segments. With several stragglers BS is
/// taken into account only up to the slowdown that its k covers, and U has a late first link if one of them is slower
/// than half speed. Plans for one straggler only and star plans beyond h stragglers leave the others in the ring.
/// Nothing is chosen when fewer than two healthy servers would be left or when a forced k suits no plan.
[[nodiscard]] std::optional<OptccChoice> choose_optcc(const OptccQuestion& question);

} // namespace railbreak::collective
