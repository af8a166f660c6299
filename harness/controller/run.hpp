// One run of one scenario, from the file to the verdict:
//
//     load -> expand -> record -> build the cluster -> probe every port ->
//     for each algorithm: warm-up, steady iterations, faults on, degraded iterations, faults off, recovered iterations
//     -> tear down -> bounds and verdicts -> report
//
// There is one way out, and it reverts: an error, a signal and the normal end all pass through the same teardown. What
// was measured before is in the database by then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "harness/controller/progress.hpp"
#include "scenarios/model.hpp"
#include "scenarios/policy.hpp"

namespace railbreak::controller {

/// What the command line says about a run.
struct RunOptions {
    std::string executable; ///< absolute path of the railbreak binary
    std::filesystem::path database;
    std::uint64_t seed = 0;
    std::vector<scenarios::SitePolicy> policies{}; ///< all of them hold
    bool no_faults = false; ///< measure only: no fault is applied, degraded iterations are left out
    std::string command_line;
    /// Told the run's RunRow::id as soon as it has one: nothing of its cluster exists by then. An Error ends the run
    /// there.
    std::function<Result<void>(std::int64_t run)> on_recorded{};
};

/// A finished run, whatever its verdict.
struct RunResult {
    std::string run_id;
    int exit_code = 0;
    std::string reason;  ///< one line
    std::string verdict; ///< of scope "run", as stored
    /// The harness or the user ended it early, whatever its verdict: nothing further may run.
    bool broken_off = false;
    bool interrupted = false; ///< by a signal
};

/// Runs a scenario. An Error means that no run came into being (bad input, database or privileges); everything that
/// happens later is a verdict in the database and in the RunResult.
[[nodiscard]] Result<RunResult> run_scenario(const scenarios::Scenario& scenario, const RunOptions& options,
                                             Progress& progress);

} // namespace railbreak::controller
