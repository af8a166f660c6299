// Undo of what dead runs left behind, from their journals.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "injectors/host_ops.hpp"
#include "injectors/in_child.hpp"

namespace railbreak::injectors {

/// A pid namespace, in which the pids of its processes count.
struct PidNamespace {
    std::uint64_t inode = 0;
    bool operator==(const PidNamespace&) const = default;
};

/// What a fault's target lives in: a NIC in a network namespace, a process in a pid namespace.
using FaultNamespace = std::variant<NetnsIdentity, PidNamespace>;

/// Whether this process can prove that the namespace is gone: nothing has its number, or a network namespace has it
/// whose cookie is another one, or no process is in the pid namespace (a process that is in it, or below, needs its
/// first one to be alive). False when it is there, and when this process may not look everywhere.
[[nodiscard]] bool is_proven_gone(const FaultNamespace& space);

/// One entry that was open and is closed now, or could not be.
struct RecoveredFault {
    std::string run_id;
    std::string host_name;
    std::int32_t id = 0;
    FaultKind kind = FaultKind::kCap;
    std::string target;             ///< "eth1", "process 4711 (railbreak)", ...
    std::vector<std::string> notes; ///< what was found gone or changed by others
    std::string error;              ///< empty: restored and verified
    /// The namespace of the fault, when it may still be there but could not be found or entered. It is another one than
    /// the present.
    std::optional<FaultNamespace> out_of_reach;
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
    std::vector<FaultNamespace> gone; ///< namespaces that are proven to be gone
    Progress progress;                ///< called after each fault
};

/// Undoes every open entry of every journal in `folder` whose run is dead, each in its own network namespace, verifies,
/// closes the entry, and deletes a journal once all its entries are closed. Idempotent, and safe beside other
/// recoveries. An entry stays open when its namespace may still be there and cannot be entered. `ops` is used for files
/// and for the present namespace. An Error only when the folder cannot be read.
[[nodiscard]] Result<RecoverReport> recover_folder(HostOps& ops, const std::string& folder,
                                                   const RecoverOrder& order = {});

} // namespace railbreak::injectors
