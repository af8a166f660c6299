// How large the segments of the plans with unequal segments are.
//
// A straggler at half speed or slower must be busy from begin to end, yet it can begin only when a segment is reduced,
// and the last segment is gathered after it has ended. Small segments at both ends keep that short, and growing ones in
// between keep their number down. How fast they may grow depends on what the ring has to do meanwhile.
#pragma once

#include <cstdint>
#include <vector>

namespace railbreak::collective {

/// Relative sizes n_0..n_{k-1} of a lagged plan. While slowdown <= 2 cos(pi/(k+1)) a sine, for which
/// l n_b <= n_{b-1} + n_{b+1} everywhere: the ring is never kept waiting. Above, a ramp n_{b+1} = l n_b - n_{b-1}, its
/// mirror image, and between them as many segments of the largest size as is best with `healthy` ranks: a large segment
/// costs time too, because the straggler's last flow on a link is as long as one. k >= 1. `late`: 0, or the slowdown of
/// another straggler that gets segments a phase late and whose time counts: its work is larger by the largest segment.
[[nodiscard]] std::vector<std::int64_t> lag_weights(double slowdown, std::int64_t segments, std::int64_t healthy,
                                                    double late = 0);

/// The same for a ramp plan, whose ring does nothing but reduce at first: sizes grow by the factor max(2, slowdown).
[[nodiscard]] std::vector<std::int64_t> ramp_weights(double slowdown, std::int64_t segments, std::int64_t healthy,
                                                     double late = 0);

/// Star chunks of a lagged plan, in the unit of its weights, that fit into what the straggler has left: one more than
/// there are segments.
[[nodiscard]] std::vector<std::int64_t> lag_star_weights(double slowdown, const std::vector<std::int64_t>& weights);

} // namespace railbreak::collective
