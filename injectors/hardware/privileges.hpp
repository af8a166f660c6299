// What this process may do to hardware.
#pragma once

namespace railbreak::injectors::hardware {

/// Privileges that the mechanisms ask for.
struct Privileges {
    bool net_admin = false;              ///< CAP_NET_ADMIN is effective
    bool initial_user_namespace = false; ///< DCB and devlink ask for the capability there
    bool root_files = false;             ///< root in the initial user namespace: writes root's files in sysfs
    bool operator==(const Privileges&) const = default;
};

/// Those of the calling thread.
[[nodiscard]] Privileges read_privileges();

} // namespace railbreak::injectors::hardware
