// Undo of one journal entry, from the entry alone: what the guard, `railbreak recover` and the next agent do.
#pragma once

#include <string>
#include <vector>

#include "injectors/host_ops.hpp"
#include "injectors/link_state.hpp"

namespace railbreak::injectors {

/// Brings the entry's device back to its former state and reads that back. `ops` acts in the network namespace that has
/// the device's namespace's number. Idempotent: what is as before stays. Gives sentences about what was not ours to
/// change or is gone: after a reboot, or when the namespace or the device is gone, there is nothing to undo and that is
/// success. kTeardown when something of ours is still there.
[[nodiscard]] Result<std::vector<std::string>> restore_entry(HostOps& ops, const JournalEntry& entry);

/// The same for a target that the caller has proven to be gone: what it left elsewhere (a cgroup) is taken away.
[[nodiscard]] Result<std::vector<std::string>> restore_without_target(HostOps& ops, const JournalEntry& entry);

/// The link half of the undo: restores and compares until equal, for the kernel takes a moment to finish its own part.
[[nodiscard]] Result<std::vector<std::string>> restore_and_verify_link(HostOps& ops, std::int32_t ifindex,
                                                                       const LinkState& former);

/// Whether the target is still there (a zombie is not).
[[nodiscard]] Result<bool> target_exists(HostOps& ops, const FaultTarget& target);

/// The device with this identity in the namespace of `ops`, by interface index; empty when it is gone.
[[nodiscard]] Result<std::vector<LinkRecord>> find_device(HostOps& ops, const DeviceIdentity& device);

/// The device, when it is a NIC of hardware that sysfs shows by this name. kRefused when it is one of software, or when
/// sysfs is that of another namespace; kInput when it is gone.
[[nodiscard]] Result<LinkRecord> find_hardware(HostOps& ops, const DeviceIdentity& device);

} // namespace railbreak::injectors
