// The agent's one door to fault injection: applies faults, undoes them, and sees to it that somebody undoes them.
//
//     auto ops = open_host_ops();
//     auto keeper = FaultKeeper::open({...}, **ops);     // leftovers of dead runs are undone first
//     keeper->apply({.id = 1, .kind = FaultKind::kCap, .nic = "eth1", .rate = ...});
//     ... poll keeper->guard_fd(); on readable: if (!keeper->check_guard()) keeper->revert_all();
//     ... keeper->renew_lease() at a third of the lease
//     keeper->revert(1);
//     keeper->close();
//
// One thread at a time. Everything is idempotent: agent, guard, recovery and the next start may each undo.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "injectors/facet.hpp"
#include "injectors/fault.hpp"
#include "injectors/fault_state.hpp"
#include "injectors/guard.hpp"
#include "injectors/host_ops.hpp"
#include "injectors/recover.hpp"

namespace railbreak::injectors {

/// What a keeper needs to know.
struct KeeperOptions {
    std::string run_id;
    std::string host_name;
    std::string journal_folder;              ///< empty: default_journal_folder()
    Nanoseconds lease{0};                    ///< every fault ends this long after the last renewal
    std::vector<std::string> protected_nics; ///< refused always: the control connection's interface
    GuardLaunch guard;
};

/// One fault that is not restored yet.
struct OpenFault {
    FaultRequest request;
    FaultState state = FaultState::kPlanned;
    FaultEvidence evidence;
};

/// What a fault would do: see FaultKeeper::preview().
struct FaultPreview {
    FaultTarget target;
    std::string mechanism;
    std::string realism;
    std::string data_path;
    Steps steps;
};

class FaultKeeper {
public:
    /// Undoes leftovers of dead runs (see leftovers()), creates the journal, arms the guard. kTeardown when a leftover
    /// could not be undone: no new fault may be put on such a host; one of another network namespace, which cannot be
    /// reached from here, stays in its journal. `ops` must outlive the keeper.
    [[nodiscard]] static Result<FaultKeeper> open(KeeperOptions options, HostOps& ops);

    /// Applies one fault and reads it back. kRefused when it is unsafe or foreign state is in the way (nothing was
    /// changed); any other Error after an undo of what was done so far; kTeardown when that undo failed: the fault is
    /// then still among open_faults() and revert() may be tried again.
    [[nodiscard]] Result<FaultEvidence> apply(const FaultRequest& request);
    /// Everything up to the journal entry: looks, checks and refuses as apply() does, then tells what would be changed
    /// and how it would be undone. Changes nothing.
    [[nodiscard]] Result<FaultPreview> preview(const FaultRequest& request);
    /// Undoes one fault and verifies. A fault that was undone already gives its evidence again.
    [[nodiscard]] Result<FaultEvidence> revert(std::int32_t id);
    /// Undoes all, newest first; goes on after a failure. The first failure is returned, with the fact "id".
    [[nodiscard]] Result<std::vector<FaultEvidence>> revert_all();

    /// Moves the lease's end to now + lease, here and in the guard. While apply() or revert() is at work a lease that
    /// would be shorter than that stands still: whoever calls cannot renew it then, and each has an end of its own
    /// (time_limits.hpp).
    [[nodiscard]] Result<void> renew_lease();
    [[nodiscard]] Nanoseconds lease_left() const;
    /// Readable when the guard died or has undone everything: call check_guard(), and on failure revert_all() at once.
    [[nodiscard]] int guard_fd() const;
    [[nodiscard]] std::int32_t guard_pid() const;
    [[nodiscard]] Result<void> check_guard();

    /// Faults that are not restored, in order of application.
    [[nodiscard]] std::vector<OpenFault> open_faults() const;
    /// What open() found and undid.
    [[nodiscard]] const RecoverReport& leftovers() const;
    [[nodiscard]] const std::string& journal_path() const;

    /// Reverts what is open, ends the guard, deletes the journal. Afterwards the keeper is of no further use.
    [[nodiscard]] Result<void> close();

    /// Undoes what dead runs left: `railbreak recover`. Empty folder: default_journal_folder().
    [[nodiscard]] static Result<RecoverReport> recover(HostOps& ops, const std::string& journal_folder);

    FaultKeeper(FaultKeeper&&) noexcept;
    FaultKeeper& operator=(FaultKeeper&&) noexcept;
    /// Without close(), open faults are left to the guard, which undoes them at once.
    ~FaultKeeper();

private:
    class Impl;
    explicit FaultKeeper(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace railbreak::injectors
