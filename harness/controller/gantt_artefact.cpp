#include "harness/controller/gantt_artefact.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "collective/bounds.hpp"
#include "harness/planner/gantt_svg.hpp"

namespace railbreak::controller {

namespace {

constexpr std::int32_t kMostRanks = 256; // that are simulated for a picture
constexpr std::size_t kMostShownRanks = 16;
constexpr std::array kNarrow{1.5, 3.0, 6.0}; // pixels below which boxes may merge, the finest first
constexpr double kWidth = 1000;

/// The binding lower bound on what is simulated.
planner::BoundTime bound_of(const collective::Schedule& schedule, const collective::SimulationOptions& simulation) {
    const collective::Bound bound = collective::binding(collective::all_bounds(simulation.topology, simulation.model));
    const double bits = 8.0 * simulation.element_bytes * static_cast<double>(schedule.elements());
    const double vector_ns = bits * 1e9 / static_cast<double>(simulation.healthy_goodput.bits_per_s());
    return {Nanoseconds(std::llround(bound.time_over_n * vector_ns)), bound.name};
}

} // namespace

Result<void> store_gantt(record::Recorder& recorder, std::int64_t run, const std::string& label,
                         const collective::Schedule& schedule, const collective::SimulationOptions& simulation) {
    if (schedule.ranks() > kMostRanks) {
        return {};
    }
    planner::GanttLimits limits{.ranks = kMostShownRanks, .width = kWidth, .tooltips = false};
    const std::vector<collective::Rank> shown = planner::gantt_ranks(simulation.topology, limits);
    const auto is_shown = [&](collective::Rank rank) { return std::ranges::binary_search(shown, rank); };
    std::vector<collective::SimulatedFlow> flows;
    collective::SimulationOptions options = simulation;
    options.on_flow = [&](const collective::SimulatedFlow& flow) {
        if (is_shown(flow.from) || is_shown(flow.to)) {
            flows.push_back(flow);
        }
    };
    const Result<collective::SimulationResult> result = collective::simulate(schedule, options);
    if (!result) {
        return {};
    }
    const planner::BoundTime bound = bound_of(schedule, simulation);
    for (; limits.ranks >= 2; limits.ranks /= 2) {
        for (const double narrow : kNarrow) {
            limits.narrow = narrow;
            std::ostringstream out;
            const planner::GanttInput input{schedule, simulation, flows, result->flows, result->makespan, bound};
            if (Result<void> written = planner::write_gantt_svg(input, out, limits); !written) {
                return {};
            }
            if (std::string picture = std::move(out).str(); picture.size() <= kLargestGantt) {
                return recorder.add_artefact({.run = run,
                                              .name = fmt::format("gantt/{}.svg", label),
                                              .media_type = "image/svg+xml",
                                              .content = std::move(picture)});
            }
        }
    }
    return {};
}

} // namespace railbreak::controller
