// A scenario played in the simulator instead of on a cluster. It passes through the same phases as a run in the lab,
// plans with the same plans, tries the same forms, and leaves the same rows in the database, with the backend "sim";
// so every report works on it. Nothing is touched, no data moves: that a result would be right is proven from the
// schedule, and faults are recorded as pretended.
//
// Times in the database are those of the simulation's own clock, which begins at one second.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "collective/bounds.hpp"
#include "harness/controller/forms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::simulate {

/// The model, see collective/simulate/simulate.hpp, and what the command line says.
struct SimulateOptions {
    std::filesystem::path database;
    std::uint64_t seed = 0;
    std::string command_line;
    collective::PortModel model = collective::PortModel::kFluid;
    bool cut_through = true; ///< fluid model only
    Nanoseconds flow_overhead = controller::kFlowOverhead;
    Nanoseconds flow_latency = controller::kFlowLatency;
};

/// A finished simulation, whatever its verdict.
struct SimulatedRun {
    std::string run_id;
    int exit_code = 0;
    std::string reason; ///< one line, empty for a pass
};

/// Plays a scenario and judges it. An Error means that no run came into being (bad input, no database); what happens
/// later is a verdict in the database and in the SimulatedRun.
[[nodiscard]] Result<SimulatedRun> simulate_scenario(const scenarios::Scenario& scenario,
                                                     const SimulateOptions& options);

} // namespace railbreak::simulate
