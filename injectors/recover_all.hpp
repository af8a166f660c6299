// Undo for a whole machine: every journal of every folder, then what only its tags tell of; and the emergency stop that
// ends all runs first.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "injectors/host_lock.hpp"
#include "injectors/recover.hpp"
#include "injectors/state_folder.hpp"
#include "injectors/sweep.hpp"

namespace railbreak::injectors {

/// What was done in one folder.
struct FolderReport {
    JournalFolder folder;
    RecoverReport report;
    std::string error; ///< why the folder could not be worked on; empty otherwise
};

/// For root: recovers another user's journals in a process of that user, who has the fewest rights that the user's runs
/// had. A user cannot look everywhere: what was out of the user's reach this process looks for as well, and only to
/// tell whether it is gone; then the user's process closes the entry. Whatever is there is the user's to undo.
[[nodiscard]] Result<RecoverReport> recover_foreign(const JournalFolder& folder);

/// What recover_all() did.
struct RecoverAllReport {
    std::vector<FolderReport> folders;
    std::vector<TaggedObject> tagged;
    std::string not_swept; ///< what was not looked at for tags, and why; empty when all was
    /// Everything that is not a living run's is undone.
    [[nodiscard]] bool complete() const;
};

/// Recovers every known folder, then sweeps the present network namespace. Another user's journals are worked on by a
/// process of that user: what they say must never be done as root. While a run is alive in this namespace nothing is
/// swept, and while one is alive anywhere on the machine cgroups and ballast files are not. An Error only when there is
/// no state folder.
[[nodiscard]] Result<RecoverAllReport> recover_all(HostOps& ops);

/// One run that was told to end.
struct HaltedRun {
    HostOwner owner;
    bool agent_ended = false;
    bool guard_ended = false;
    std::string error; ///< why it was not told; empty otherwise
};

/// What halt() did.
struct HaltReport {
    std::vector<HaltedRun> runs;
    std::vector<std::string> halt_files;
    std::vector<std::string> problems;
    std::vector<FolderReport> folders; ///< what was still open and is undone now, or is not
    /// Every run has ended and every journal entry is closed.
    [[nodiscard]] bool complete() const;
};

/// Puts a halt file with `reason` into every known state folder, so that nothing new starts; sends SIGTERM to every
/// agent that has a host (it undoes its faults and ends) and, when an agent does not end within five seconds, to its
/// guard (which undoes them in its place); then recovers what is still open. Processes are told apart by their
/// start time and, in folders of other users, by their user.
[[nodiscard]] Result<HaltReport> halt(HostOps& ops, const std::string& reason, Nanoseconds patience);

/// Removes the halt files. Gives the paths.
[[nodiscard]] Result<std::vector<std::string>> release_halt(HostOps& ops);

} // namespace railbreak::injectors
