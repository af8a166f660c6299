// How long things may take, from the inside out. Whoever waits for somebody who waits must be the more patient one: a
// facet waits for a port or a process, a call of the keeper for its facets, the guard's lease and the controller for
// the call. So every one of these times follows from the ones before it.
#pragma once

#include "base/clock.hpp"
#include "injectors/fault.hpp"

namespace railbreak::injectors {

/// Until a port that has to train runs again; real ones take seconds.
inline constexpr Nanoseconds kTraining = std::chrono::seconds(10);
/// Until the subnet manager has made an InfiniBand port active that trains anew.
inline constexpr Nanoseconds kActivation = std::chrono::seconds(20);
/// Until a NIC is back on its bus and its driver has given it an interface.
inline constexpr Nanoseconds kRescan = std::chrono::seconds(10);
/// Until a port that was taken down has stopped.
inline constexpr Nanoseconds kStopping = std::chrono::seconds(5);
/// Until the kernel has done its own part of an undo, after the port runs.
inline constexpr Nanoseconds kSettling = std::chrono::seconds(3);
/// Until processes stand still, run again, are dead or have left a cgroup: a task in an uninterruptible sleep obeys
/// after it.
inline constexpr Nanoseconds kProcessWait = std::chrono::seconds(5);
/// For what a call does besides waiting, or a few that come together: the kernel asked and told, the journal synced.
inline constexpr Nanoseconds kOwnWork = std::chrono::seconds(5);

/// The longest wait from the order until a fault of that kind is seen to be in force, or known not to be.
[[nodiscard]] constexpr Nanoseconds injection_wait(FaultKind kind) {
    switch (kind) {
    case FaultKind::kPortSpeed:
    case FaultKind::kIbRate:
    case FaultKind::kIbDown: return kTraining;
    case FaultKind::kLinkDown: return kStopping;
    case FaultKind::kMtu: return kTraining + kSettling; // some drivers let the port train anew
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu: return kProcessWait;
    case FaultKind::kCap:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kReroute:
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kPcieSpeed:
    case FaultKind::kPciRemove:
    case FaultKind::kDiskFull: return Nanoseconds(0);
    }
    return Nanoseconds(0);
}

/// The longest wait within FaultKeeper::revert(), and within restore_entry() with a fault's journal entry.
[[nodiscard]] constexpr Nanoseconds undo_wait(FaultKind kind) {
    switch (kind) {
    case FaultKind::kPortSpeed:
    case FaultKind::kLinkDown:
    case FaultKind::kMtu: return kTraining + kSettling;
    case FaultKind::kIbRate:
    case FaultKind::kIbDown: return kActivation;
    case FaultKind::kPciRemove: return kRescan + kTraining + kSettling;
    case FaultKind::kPause:
    case FaultKind::kCpu: return kProcessWait;
    case FaultKind::kKill:
    case FaultKind::kCap:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kReroute:
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kPcieSpeed:
    case FaultKind::kDiskFull: return Nanoseconds(0);
    }
    return Nanoseconds(0);
}

/// The longest wait within FaultKeeper::apply(): a fault that is not seen is undone by the same call.
[[nodiscard]] constexpr Nanoseconds apply_wait(FaultKind kind) {
    return injection_wait(kind) + undo_wait(kind);
}

/// The longest that the undo of a fault of any kind takes.
inline constexpr Nanoseconds kLongestUndo = kOwnWork + kRescan + kTraining + kSettling;

} // namespace railbreak::injectors
