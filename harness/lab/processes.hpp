// Processes and network namespaces, identified in a way that survives the reuse of their numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::lab {

/// A process: its pid, and its start time in clock ticks since boot, which tells it from a later one of the same pid.
struct ProcessId {
    pid_t pid = 0; ///< 0: none
    std::uint64_t start_ticks = 0;
    bool operator==(const ProcessId&) const = default;
};

/// The process that has this pid now; pid 0 when there is none or only a zombie.
[[nodiscard]] ProcessId identify_process(pid_t pid);
/// True while that very process runs (a zombie does not).
[[nodiscard]] bool is_alive(const ProcessId& process);
/// A pidfd of that very process, or an invalid descriptor when it is gone.
[[nodiscard]] UniqueFd open_process(const ProcessId& process);
/// Waits until the process behind the pidfd has ended; false at the deadline.
[[nodiscard]] bool wait_for_end(int pidfd, const Deadline& deadline);
/// Sends a signal through a pidfd; a process that is gone is no error.
void send_signal(int pidfd, int signal);

/// A network namespace: its inode number in nsfs, which the kernel reuses soon, and its cookie, which it never reuses
/// (SO_NETNS_COOKIE; 0 on kernels before 5.14).
struct NamespaceId {
    std::uint64_t inode = 0;
    std::uint64_t cookie = 0;
    bool operator==(const NamespaceId&) const = default;
};
/// Inode of the namespace (or other file) behind a descriptor; 0 on failure.
[[nodiscard]] std::uint64_t inode_of(int fd);
/// Cookie of the network namespace that the calling thread is in; 0 when the kernel cannot tell.
[[nodiscard]] std::uint64_t current_netns_cookie();

/// How a process found inside a namespace is known to be in *that* namespace and not in a later one of the same number.
enum class NamespaceProof : std::uint8_t {
    kInode,  ///< enough while the caller holds the namespaces
    kCookie, ///< otherwise
    kDoubt,  ///< where the cookie of a namespace of that number may not be read, it may be that one: counts as inside
};
/// Every process, but this one, whose main thread is in one of the namespaces.
[[nodiscard]] std::vector<ProcessId> processes_inside(std::span<const NamespaceId> namespaces, NamespaceProof proof);
/// Ends them: SIGTERM (`grace` to comply), then SIGKILL until none is left. kTeardown with their pids at the deadline.
[[nodiscard]] Result<void> end_processes_inside(std::span<const NamespaceId> namespaces, NamespaceProof proof,
                                                Nanoseconds grace, const Deadline& deadline);

} // namespace railbreak::lab
