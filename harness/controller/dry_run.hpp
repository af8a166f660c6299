// A run up to the point where the first fault would be made: the cluster is built, every agent plans every fault with
// all its checks, and tells what it would change and how it would change that back. Nothing is changed and nothing is
// recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/controller/run.hpp"

namespace railbreak::controller {

/// One planned fault as its host sees it.
struct FaultForecast {
    std::string name;
    std::string kind;
    std::int32_t host = 0;
    std::string when; ///< "during the degraded phase", "at 200ms of degraded iteration 2, for 300ms"
    std::string target;
    std::string mechanism;
    std::string realism;
    std::string data_path;
    std::vector<std::string> changes; ///< in order
    std::vector<std::string> undo;    ///< in the order in which they would be undone
    std::string refusal;              ///< why the host would not make it; empty when it would
};

/// Everything that would happen.
struct Forecast {
    std::string scenario;
    std::string plan_hash;
    std::uint64_t seed = 0;
    std::int32_t hosts = 0;
    std::string lease;
    std::vector<FaultForecast> faults; ///< in the order of the plan
    /// True when no fault would be refused.
    [[nodiscard]] bool all_possible() const;
};

/// Builds the cluster, asks, and takes it down again. An Error when that is not possible; a fault that would be refused
/// is a part of the forecast. RunOptions::database is not used.
[[nodiscard]] Result<Forecast> dry_run_scenario(const scenarios::Scenario& scenario, const RunOptions& options,
                                                Progress& progress);

} // namespace railbreak::controller
