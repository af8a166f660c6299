// Where something was run: for the record, and for comparing like with like.
#pragma once

#include <string>

namespace railbreak::controller {

/// Facts about the machine and every variable that steers a collective library, as JSON; never the rest of the
/// environment, which may hold secrets. Ask before the process enters a user namespace, which hides the user.
[[nodiscard]] std::string environment_json();

/// The lab as a cluster of its own on each machine: only runs of one are compared with each other.
[[nodiscard]] std::string cluster_name();

} // namespace railbreak::controller
