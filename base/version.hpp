// What this binary was built from.
#pragma once

#include <string_view>

namespace railbreak {

/// Facts fixed at build time.
struct BuildInfo {
    std::string_view version;    ///< "0.1.0"
    std::string_view commit;     ///< abbreviated commit, "-dirty" when the tree had changes
    std::string_view compiler;   ///< "GNU 12.2.0"
    std::string_view build_type; ///< "RelWithDebInfo"
};

[[nodiscard]] BuildInfo build_info();

} // namespace railbreak
