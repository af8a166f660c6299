// Undo of what dead runs left behind, from their journals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "injectors/host_ops.hpp"
#include "injectors/in_child.hpp"

namespace railbreak::injectors {

/// One entry that was open and is closed now, or could not be.
struct RecoveredFault {
    std::string run_id;
    std::string host_name;
    std::int32_t id = 0;
    FaultKind kind = FaultKind::kCap;
    std::string target;             ///< "eth1", "process 4711 (railbreak)", ...
    std::vector<std::string> notes; ///< what was found gone or changed by others
    std::string error;              ///< empty: restored and verified
    /// The network namespace of the fault, when it may still be there but could not be found or entered. It is another
    /// one than the present.
    std::optional<NetnsIdentity> out_of_reach;
};

/// What a recovery did.
struct RecoverReport {
    std::vector<RecoveredFault> faults;
    std::vector<std::string> busy;    ///< journals of runs that are alive; untouched
    std::vector<std::string> damaged; ///< journals whose tail was no record and was cut
    /// True when every open entry of every dead run is closed.
    [[nodiscard]] bool complete() const;
};

/// What whoever orders a recovery knows and wants to know.
struct RecoverOrder {
    std::vector<NetnsIdentity> gone; ///< network namespaces that are proven to be gone
    Progress progress;               ///< called after each fault
};

/// Undoes every open entry of every journal in `folder` whose run is dead, each in its own network namespace, verifies,
/// closes the entry, and deletes a journal once all its entries are closed. Idempotent, and safe beside other
/// recoveries. An entry stays open when its namespace may still be there and cannot be entered. `ops` is used for files
/// and for the present namespace. An Error only when the folder cannot be read.
[[nodiscard]] Result<RecoverReport> recover_folder(HostOps& ops, const std::string& folder,
                                                   const RecoverOrder& order = {});

} // namespace railbreak::injectors
