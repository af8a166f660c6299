// Processes as /proc shows them, and signals that reach exactly the process that is meant.
#pragma once

#include <optional>
#include <string_view>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// The process; empty when there is none of that pid, or when it ends while it is looked at.
[[nodiscard]] Result<std::optional<ProcessRecord>> read_process(std::int32_t pid);

/// Sends a signal to this very process, a zombie included; signal 0 only asks whether that is permitted. A pid is given
/// again, so the start time is compared after a pidfd was opened: from then on the descriptor stands for the process
/// that was compared. errno ESRCH when that process is gone, also when another one has its pid now; EPERM.
[[nodiscard]] Result<void> send_signal(const ProcessIdentity& process, int signal);

/// What one line of /proc/PID/stat says (proc(5)). The name may hold anything, spaces and parentheses too. Fills
/// identity, parent, state and kernel_thread; kHarness when it is no such line.
[[nodiscard]] Result<ProcessRecord> parse_stat(std::string_view line);

} // namespace railbreak::injectors
