// A schedule as a picture: who sends what when. Time runs to the right; each rank has two rows for each of its lanes,
// the sending and the receiving side of the port, and each flow is a box in the row of its sender and in the row of its
// receiver, coloured by stage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/planner/facts.hpp"

namespace railbreak::planner {

/// Ranks and boxes that a picture has at most. Of a larger schedule the first ranks are drawn, those of slow servers
/// before others, and flows too narrow to be told apart become one box; the picture says so.
struct GanttLimits {
    std::size_t ranks = 64;
    std::size_t boxes = 30000; ///< does not go below two ranks
    double width = 6000;       ///< of the time axis, in pixels; at least 1000
    double narrow = 1.5;       ///< boxes below so many pixels may share one with their neighbours
    bool tooltips = true;      ///< false where nothing can be pointed at, as in an embedded image
};

/// What the picture is of.
struct GanttInput {
    const collective::Schedule& schedule;
    const collective::SimulationOptions& simulation; ///< what it was simulated on; the topology has all ranks
    /// The flows of at least the ranks that gantt_ranks() names, in any order.
    const std::vector<collective::SimulatedFlow>& flows;
    std::int64_t all_flows = 0; ///< of the whole schedule
    Nanoseconds makespan{0};
    std::optional<BoundTime> bound;
};

/// The ranks that a picture shows at most, in ascending order.
[[nodiscard]] std::vector<collective::Rank> gantt_ranks(const collective::Topology& topology,
                                                        const GanttLimits& limits = {});

/// Writes a self-contained SVG document (no script, nothing fetched), the same bytes for the same input. Boxes have
/// tooltips with elements, times and queue entries. Lower bound and makespan are vertical lines. Error (kInput): the
/// topology has not as many ranks as the schedule; or `out` took no more.
[[nodiscard]] Result<void> write_gantt_svg(const GanttInput& input, std::ostream& out, const GanttLimits& limits = {});

} // namespace railbreak::planner
