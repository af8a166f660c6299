// The guard: a process that undoes every fault of its agent when the agent no longer can.
//
// It is armed before the first injection and holds its own copy of every journal entry, so that undoing needs no disk.
// It lives in a session of its own (and, as root, at the top of the cgroup tree), in the agent's network namespace.
// It undoes everything when the socket to the agent ends without "disarm" (the agent is dead), when the lease runs out,
// and when it is told to end (SIGTERM). After a lease that ran out it stays until the agent is gone and then undoes
// once more, because a stalled agent may still have made a change in between.
#pragma once

#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "injectors/fault.hpp"
#include "injectors/guard_channel.hpp"

namespace railbreak::injectors {

/// Entry point of the internal command `railbreak guard`: `args` after the command's name, as made by Guard::launch
/// ("--socket FD --journal FD"). Returns the process's exit code: 0 when nothing is left to undo, 5 when something
/// could not be restored, 64 for other arguments.
int guard_main(std::span<const std::string> args);

/// Runs the guard on these descriptors until its work is over. Returns as guard_main.
int run_guard(UniqueFd socket, UniqueFd journal);

/// How to start a guard.
struct GuardLaunch {
    /// Binary to execute, normally "/proc/self/exe". Empty: the guard runs in a forked copy of this process, which must
    /// then have one thread only.
    std::string executable;
    std::string command = "guard"; ///< its first argument
};

/// The agent's side.
class Guard {
public:
    /// Starts a guard and waits until it is armed. `journal_fd` is shared with it (and with it the journal's lock).
    [[nodiscard]] static Result<Guard> launch(const GuardLaunch& launch, int journal_fd,
                                              Nanoseconds lease_end_boottime);

    /// Hands over an entry; on return the guard has it.
    [[nodiscard]] Result<void> entrust(const JournalEntry& entry);
    /// Tells that an entry is verified as restored.
    [[nodiscard]] Result<void> release(std::int32_t id);
    /// Moves the end of the lease.
    [[nodiscard]] Result<void> renew(Nanoseconds lease_end_boottime);
    /// Ends the guard without an undo.
    [[nodiscard]] Result<void> disarm();
    /// Reads news without waiting. An Error when the guard is dead or has undone everything: revert at once.
    [[nodiscard]] Result<void> check();

    /// Readable when check() has news, at end of file too.
    [[nodiscard]] int fd() const { return channel_.fd(); }
    [[nodiscard]] std::int32_t pid() const { return pid_; }

private:
    explicit Guard(UniqueFd socket) : channel_(std::move(socket)) {}
    [[nodiscard]] Result<void> ask(std::string payload, std::uint32_t sequence);
    GuardChannel channel_;
    std::int32_t pid_ = 0;
    std::uint32_t sequence_ = 0;
    bool expired_ = false;
};

} // namespace railbreak::injectors
