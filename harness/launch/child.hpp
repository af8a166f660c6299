// Starting and ending child processes: argument vectors, never a shell; pidfds, never a reused pid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::launch {

/// How to start a child.
struct SpawnOptions {
    std::vector<std::string> argv; ///< argv[0] is the absolute path of the program
    int netns_fd = -1;             ///< network namespace to enter first; -1 keeps the present one
    bool die_with_parent = false;  ///< SIGKILL when the parent dies. Off for agents: they must see end of file and undo
    bool inherit_stderr = false;   ///< else a pipe
};

/// A running child and the parent's ends of its standard streams.
struct Child {
    pid_t pid = -1;
    UniqueFd pidfd;
    UniqueFd stdin_fd;  ///< write end
    UniqueFd stdout_fd; ///< read end
    UniqueFd stderr_fd; ///< read end; invalid with inherit_stderr
};

/// Starts a child in a session of its own (a terminal's Ctrl-C does not reach it) with default signal handling.
/// The program having been executed is part of success: exec errors come back as Errors.
[[nodiscard]] Result<Child> spawn(const SpawnOptions& options);

/// How a child ended.
struct ExitStatus {
    bool signalled = false;
    int code = 0; ///< exit code, or signal number
    /// "exit code 3" or "killed by signal 9 (SIGKILL)".
    [[nodiscard]] std::string describe() const;
};

/// Waits until the child has ended and reaps it; nothing when the deadline passes first.
[[nodiscard]] std::optional<ExitStatus> wait_for(const Child& child, Deadline deadline);
/// Sends a signal through the pidfd; a child that has already ended is not an error.
void send_signal(const Child& child, int signal);
/// Absolute path of the running executable.
[[nodiscard]] Result<std::string> own_executable();

} // namespace railbreak::launch
