// What must hold before a fault may touch a NIC. Nothing here changes anything.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "injectors/fault.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// kInput when a number of the request makes no sense by itself: a rate below 8 kbit/s, a probability above one, a
/// partition without peers.
[[nodiscard]] Result<void> check_request(const FaultRequest& request);

/// Finds what the request acts on and refuses what may not be touched (kRefused, with the reason). Of NICs: loopback
/// and all that protection.hpp protects, `protected_nics` among it; `under_fault` are interfaces that a fault acts on
/// now. The NIC that a reroute goes through counts too. Of processes: pid 1, this process and all that it descends
/// from, kernel threads. Of folders: the file system of "/" and that of `journal_folder`. A NIC that
/// this namespace does not have is kRefused too; an unknown process or folder is kInput.
[[nodiscard]] Result<FaultTarget> find_target(HostOps& ops, const FaultRequest& request,
                                              std::span<const std::string> protected_nics,
                                              const std::string& journal_folder,
                                              std::span<const std::int32_t> under_fault = {});

/// kRefused when the journal of another living run in `folder` has an open entry for the target.
[[nodiscard]] Result<void> check_other_runs(const std::string& folder, const std::string& own_journal,
                                            const FaultTarget& target);

} // namespace railbreak::injectors
