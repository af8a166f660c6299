// Doing one thing inside another network namespace, without leaving one's own.
#pragma once

#include <functional>

#include "base/error.hpp"

namespace railbreak::injectors {

/// Runs `body` on a thread that is in the network namespace of `netns_fd`: the calling thread where that is its own
/// (no privilege needed), a helper thread that enters it and ends otherwise. The caller never leaves its own namespace,
/// so there is no way back that could fail (a rootless process may not even be allowed to return to the namespace it
/// came from). kRefused when it may not enter.
[[nodiscard]] Result<void> run_in_netns(int netns_fd, const std::function<void()>& body);

} // namespace railbreak::injectors
