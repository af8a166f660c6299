// The picture of a schedule that ran, kept with its run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "collective/schedule.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/record/recorder.hpp"

namespace railbreak::controller {

/// A picture is drawn coarser until it is no larger: a database holds thousands of runs.
inline constexpr std::size_t kLargestGantt = std::size_t{160} * 1024;

/// Simulates the schedule and stores its Gantt chart, with the lower bound of that port model, as the artefact
/// "gantt/LABEL.svg". Nothing is stored of a schedule
/// that cannot be simulated, or of more than 256 ranks: the picture is no result. Error: the database takes no more.
[[nodiscard]] Result<void> store_gantt(record::Recorder& recorder, std::int64_t run, const std::string& label,
                                       const collective::Schedule& schedule,
                                       const collective::SimulationOptions& simulation);

} // namespace railbreak::controller
