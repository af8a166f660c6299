// How a run comes into being: its plan, its row in a database, its secret.
#pragma once

#include <cstdint>
#include <string>

#include "harness/controller/run.hpp"
#include "harness/record/recorder.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// A run that has a row and nothing else yet.
struct Run {
    scenarios::Plan plan;
    record::Recorder recorder;
    std::int64_t row_id;
    std::string run_id;
    std::string token_hex;
};

/// Expands the scenario, enters a user namespace where this user needs one to build a lab, opens the database and
/// records the run. Errors as run_scenario().
[[nodiscard]] Result<Run> begin_run(const scenarios::Scenario& scenario, const RunOptions& options);

} // namespace railbreak::controller
