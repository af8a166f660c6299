// A planned fault as its agent is told it, and as the database holds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "harness/controller/session.hpp"
#include "harness/record/rows.hpp"
#include "scenarios/model.hpp"

namespace railbreak::controller {

/// The rank that a fault of a rank acts on, counted over all hosts.
[[nodiscard]] std::int32_t global_rank(const scenarios::PlannedFault& fault, const scenarios::ClusterSpec& cluster);

/// Address of a NIC on the data plane.
using AddressOf = std::function<std::string(std::int32_t host, std::int32_t nic)>;

/// Parameters of "fault.apply", see agent/fault_json.hpp. `folder` is that of the run's database.
[[nodiscard]] launch::Json fault_order(const scenarios::PlannedFault& fault, const AddressOf& address_of,
                                       const std::filesystem::path& folder);

/// What is known of an injection before it is ordered.
[[nodiscard]] record::InjectionRow injection_row(const scenarios::PlannedFault& fault,
                                                 const scenarios::ClusterSpec& cluster);

/// Adds one more iteration that a rank began late to the evidence: when it was told to begin, when it began, and by how
/// much later than the first of all ranks, which is the proof.
void note_lateness(record::InjectionRow& row, const scenarios::PlannedFault& fault, const RankOutcome& rank,
                   Nanoseconds lateness);

} // namespace railbreak::controller
