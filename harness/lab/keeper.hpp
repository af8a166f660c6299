// The keeper: a small process that holds a lab's namespaces, so that the lab can be found, entered and tidied up.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "harness/lab/state.hpp"

namespace railbreak::lab {

/// Descriptor numbers inside a keeper: its record (a sealed memfd), the switch's namespace, then the hosts' in order.
inline constexpr int kKeeperRecordFd = 3;
inline constexpr int kKeeperSwitchFd = 4;
inline constexpr int kKeeperFirstHostFd = 5;

/// Forks the keeper of a lab. It holds `namespaces` (the switch, then the hosts), ends what runs inside and goes when
/// it gets SIGTERM or, unless the lab is kept, when this process ends (even if it was stopped meanwhile); it waits
/// until the ports are gone and removes the lab's record. The keeper of a kept lab is no child of this process. Gives
/// its identity; nothing runs on failure.
[[nodiscard]] Result<ProcessId> start_keeper(const LabRecord& record, std::span<const int> namespaces);

/// The record that a keeper of this user carries, its own identity filled in; nullopt when `pid` is no such keeper.
[[nodiscard]] std::optional<LabRecord> read_keeper(pid_t pid);
/// Records of all keepers of this user that run now.
[[nodiscard]] std::vector<LabRecord> find_keepers();

/// Opens one of a running keeper's descriptors (kKeeperSwitchFd, ...).
[[nodiscard]] Result<UniqueFd> open_keeper_fd(const ProcessId& keeper, int number);

/// Ends a keeper: SIGTERM, then SIGKILL at half of the time. True when it went by itself (or was gone), with everything
/// tidied up; false when it had to be killed. kTeardown when it is still there at the deadline.
[[nodiscard]] Result<bool> end_keeper(const ProcessId& keeper, const Deadline& deadline);

} // namespace railbreak::lab
