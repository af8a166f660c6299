// Capabilities for building a lab: those of root, or those that a user namespace gives to a normal user.
#pragma once

#include "base/error.hpp"

namespace railbreak::lab {

/// True when the process may build and enter network namespaces (CAP_NET_ADMIN and CAP_SYS_ADMIN are effective).
[[nodiscard]] bool has_lab_capabilities();

/// Makes a lab possible for a normal user: enters a new user namespace in which this user is uid 0, and a mount
/// namespace with it. Does nothing when the capabilities are there already. Call it early, while the process has one
/// thread. kRefused, with the setting that forbids it and how to allow it, where user namespaces are not allowed.
[[nodiscard]] Result<void> become_namespace_root();

} // namespace railbreak::lab
