// What must hold before a fault may touch a NIC. Nothing here changes anything.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "injectors/fault.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// A NIC that may be touched.
struct CheckedNic {
    DeviceIdentity device;
    LinkRecord link;
};

/// Finds the request's NIC and refuses (kRefused, with the reason) loopback, a NIC in `protected_nics`, one that
/// carries a default route or sits below such an interface, and for kLinkDown a NIC that is down already. An unknown
/// NIC and a rate below 8 kbit/s are kInput. `already_down`: it is down by a fault of this run, which is no reason to
/// refuse.
[[nodiscard]] Result<CheckedNic> check_nic(HostOps& ops, const FaultRequest& request,
                                           std::span<const std::string> protected_nics, bool already_down);

/// kRefused when the journal of another living run in `folder` has an open entry for the device.
[[nodiscard]] Result<void> check_other_runs(const std::string& folder, const std::string& own_journal,
                                            const DeviceIdentity& device);

} // namespace railbreak::injectors
