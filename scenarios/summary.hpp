// What was understood of a scenario, for people: `railbreak validate` prints it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// A scenario in words and numbers.
struct Summary {
    /// Label and text in the order of the file: {"cluster", "8 hosts, 1 NIC each, 500 Mbit/s, MTU 1500 bytes"} ...
    std::vector<std::pair<std::string, std::string>> lines;
    /// What is allowed but perhaps not meant, one sentence each.
    std::vector<std::string> notes;
    std::int64_t iterations = 0;       ///< of all algorithms and phases together
    Nanoseconds estimated_run_time{0}; ///< of the iterations alone, see estimate_run_time()
};

/// Describes a scenario that load_scenario accepted.
[[nodiscard]] Summary summarise(const Scenario& scenario);

/// The summary as text: one "label: text" line each, then the notes; ends in a newline.
[[nodiscard]] std::string to_text(const Summary& summary);

/// Time of a ring AllReduce of `bytes` on the cluster: 2(p-1)/p vectors of each rank, shared by as many NICs of a host
/// as its ranks drive, through ports of that rate, of which TCP leaves a little less for payload. 0 on a cluster
/// without ranks or rate; at most 285 years.
[[nodiscard]] Nanoseconds ring_time(const ClusterSpec& cluster, ByteCount bytes, BitRate rate);

/// An iteration that a run has ahead.
struct ExpectedIteration {
    std::string algorithm; ///< label
    Phase phase = Phase::kSteady;
    Nanoseconds time{0};
};

/// The iterations of a plan in order, and how long each would take if every algorithm were a ring: at the rate of the
/// slowest port where a fault holds for the phase; longer by a fault within it, by twice its length where it stops
/// traffic (TCP waits up to as long again before it resends). Where an error is expected the degraded phase ends with
/// it, and new ranks are warmed up.
[[nodiscard]] std::vector<ExpectedIteration> expected_iterations(const Plan& plan);

/// The sum of expected_iterations(). Setting up, measuring and faults' own work are not counted.
[[nodiscard]] Nanoseconds estimate_run_time(const Scenario& scenario);

} // namespace railbreak::scenarios
