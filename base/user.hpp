// Who runs this process, also inside of a user namespace.
#pragma once

#include <sys/types.h>

namespace railbreak {

/// The effective user as seen from outside of a user namespace that maps one user to root, which is how a lab works
/// without privileges. Without such a namespace the effective user.
[[nodiscard]] uid_t outer_uid();

} // namespace railbreak
