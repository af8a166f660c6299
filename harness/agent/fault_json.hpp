// Faults in control messages: orders that arrive, evidence that leaves.
#pragma once

#include "harness/launch/rpc.hpp"
#include "injectors/fault.hpp"

namespace railbreak::agent {

/// An order: {id, kind} and what its kind needs:
///   NIC faults         nic; direction where the kind has one
///   cap                rate_bits_per_s
///   cap, link_down     mechanism where it is not the usual one, as scenarios name it: "link_modes", "ib_port", ...
///   delay .. reorder   delay_ns, jitter_ns, probability_millionths, bursts {good_to_bad_millionths, ...}, as the plan
///                      names them
///   partition          peer_addresses
///   mtu, reroute       mtu_bytes, via_nic (its interface's name)
///   pause, kill, cpu   pid (the agent adds it), cpu_millionths
///   disk_full          folder, leave_bytes
/// Error (kHarness) when a member is missing or malformed, or the kind is unknown.
[[nodiscard]] Result<injectors::FaultRequest> fault_request_from_json(const launch::Json& json);

/// {id, applied_at, observed_at, reverted_at, restored_at, mechanism, realism, data_path, observation, error}.
[[nodiscard]] launch::Json to_json(const injectors::FaultEvidence& evidence);

} // namespace railbreak::agent
