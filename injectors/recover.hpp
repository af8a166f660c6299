// Undo of what dead runs left behind, from their journals.
#pragma once

#include <string>
#include <vector>

#include "injectors/host_ops.hpp"

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
};

/// What a recovery did.
struct RecoverReport {
    std::vector<RecoveredFault> faults;
    std::vector<std::string> busy;    ///< journals of runs that are alive; untouched
    std::vector<std::string> damaged; ///< journals whose tail was no record and was cut
    /// True when every open entry of every dead run is closed.
    [[nodiscard]] bool complete() const;
};

/// Undoes every open entry of every journal in `folder` whose run is dead, each in its own network namespace, verifies,
/// closes the entry, and deletes a journal once all its entries are closed. Idempotent, and safe beside other
/// recoveries. `ops` is used for files and for the present namespace. An Error only when the folder cannot be read.
[[nodiscard]] Result<RecoverReport> recover_folder(HostOps& ops, const std::string& folder);

} // namespace railbreak::injectors
