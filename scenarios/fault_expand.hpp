// From a fault as written to the faults that will be made. Internal to scenarios.
#pragma once

#include <set>
#include <vector>

#include "scenarios/model.hpp"
#include "scenarios/random.hpp"

namespace railbreak::scenarios {

/// Whether the seed chooses the fault's host.
[[nodiscard]] bool is_random(const FaultSpec& fault);

/// The hosts that faults name: as their targets, and as peers of a partition.
[[nodiscard]] std::set<std::int32_t> named_hosts(const Scenario& scenario);

/// Appends what will be made of the fault on `host`: one fault, or one for each time that a flapping link goes down,
/// each a random part of its jitter later than its period begins.
void append_planned(const FaultSpec& fault, std::int32_t host, BitRate line_rate, SplitMix64& random,
                    std::vector<PlannedFault>& faults);

} // namespace railbreak::scenarios
