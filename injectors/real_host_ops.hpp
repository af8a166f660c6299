// HostOps on the running kernel and file system.
#pragma once

#include <memory>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Acts in the network namespace that the calling thread is in now, and stays there even if the thread moves on.
[[nodiscard]] Result<std::unique_ptr<HostOps>> open_host_ops();
/// Acts in the namespace that `netns_fd` refers to (needed only during the call).
[[nodiscard]] Result<std::unique_ptr<HostOps>> open_host_ops_in(int netns_fd);

} // namespace railbreak::injectors
