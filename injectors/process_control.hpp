// Processes as /proc shows them, and signals that reach exactly the process that is meant.
#pragma once

#include <optional>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// The process; empty when there is none of that pid.
[[nodiscard]] Result<std::optional<ProcessRecord>> read_process(std::int32_t pid);

/// Sends a signal by pidfd after comparing the start time. errno ESRCH when that process is gone.
[[nodiscard]] Result<void> send_signal(const ProcessIdentity& process, int signal);

} // namespace railbreak::injectors
