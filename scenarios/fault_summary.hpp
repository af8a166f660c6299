// Faults in words. Internal to scenarios.
#pragma once

#include <string>
#include <vector>

#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// The rate that a cap leaves of the line rate; the line rate itself for every other kind.
[[nodiscard]] BitRate rate_of(const FaultSpec& fault, BitRate line_rate);

/// "cap on host 3, NIC 0, send at 250 Mbit/s, during all degraded iterations".
[[nodiscard]] std::string describe(const FaultSpec& fault, BitRate line_rate);

/// Appends what is allowed but perhaps not meant, one sentence each.
void append_notes(const FaultSpec& fault, const ClusterSpec& cluster, std::vector<std::string>& notes);

} // namespace railbreak::scenarios
