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

/// Time that all iterations would take if every algorithm were a ring: 2(p-1)/p vectors through the slowest port per
/// iteration, at the rate that TCP leaves of the line rate. Faults with a time of their own add their length, twice
/// for a link that is down (TCP waits up to as long again before it resends). Setting up and faults' own work not
/// counted.
[[nodiscard]] Nanoseconds estimate_run_time(const Scenario& scenario);

} // namespace railbreak::scenarios
