// What this process may do to hardware.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// Privileges that the mechanisms ask for.
struct Privileges {
    bool net_admin = false;              ///< CAP_NET_ADMIN is effective
    bool initial_user_namespace = false; ///< DCB and devlink ask for the capability there
    bool root_files = false;             ///< root in the initial user namespace: writes root's files in sysfs
    std::uint64_t first_netns_inode = 0; ///< of the network namespace where hardware appears; 0: not to be seen
    bool operator==(const Privileges&) const = default;
};

/// Those of the calling thread.
[[nodiscard]] Privileges read_privileges();

/// kRefused unless it holds CAP_NET_ADMIN in the first user namespace, which `what` asks for.
[[nodiscard]] Result<void> check_net_admin(const Privileges& privileges, std::string_view what);

} // namespace railbreak::injectors::hardware
