// Where the boxes of a schedule's picture lie: which ranks and ports are shown, and what each box says. Internal to
// harness/planner; gantt_svg.cpp draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::planner {

/// One side of a lane of a rank: a row of the picture.
struct GanttRow {
    collective::Rank rank = 0;
    collective::Lane lane = 0;
    bool sending = false;
    collective::Port port;
};

/// A flow as one of its two rows shows it, or neighbouring flows that are too narrow to be drawn apart.
struct GanttBox {
    std::size_t row = 0;
    Nanoseconds start{0};
    Nanoseconds end{0};
    collective::Stage stage = collective::Stage::kReduceScatter;
    bool mixed = false;     ///< stands for flows of different stages
    std::string label;      ///< "3→1": slice number and peer; empty for several flows
    std::string title;      ///< everything about it, in lines
    std::int64_t flows = 1; ///< how many flows it stands for
};

/// What the picture shows.
struct GanttLayout {
    std::vector<collective::Rank> ranks; ///< in order
    std::vector<GanttRow> rows;          ///< grouped by rank, in the order of `ranks`
    std::vector<GanttBox> boxes;         ///< by row, then time
    Nanoseconds horizon{1};              ///< right end of the time axis, > 0
    double width = 0;                    ///< of the time axis, in pixels
    std::int64_t whole_flows = 0;        ///< flows of which both ends are shown
};

/// How much a layout may show.
struct LayoutLimits {
    std::size_t ranks = 64;
    std::size_t boxes = 30000;
    double width = 6000; ///< pixels of the time axis, at least 1000
    double narrow = 1.5; ///< boxes below so many pixels may merge with their neighbours
};

/// The first `most` ranks, those of slow servers before others; in ascending order.
[[nodiscard]] std::vector<collective::Rank> choose_ranks(const collective::Topology& topology, std::size_t most);

/// Lays out the flows of a schedule, of slow servers first, and of still fewer ranks while there are more boxes than
/// allowed. `least_horizon` is a time that the axis has to reach.
[[nodiscard]] GanttLayout lay_out(const collective::Topology& topology,
                                  const std::vector<collective::SimulatedFlow>& flows, Nanoseconds least_horizon,
                                  const LayoutLimits& limits);

} // namespace railbreak::planner
