#include "harness/lab/processes.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text_file.hpp"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace railbreak::lab {
namespace {

constexpr auto kKillRound = std::chrono::milliseconds(200);

/// Waits until all of them have ended; false at the deadline.
bool wait_for_all(const std::vector<UniqueFd>& pidfds, const Deadline& deadline) {
    return std::all_of(pidfds.begin(), pidfds.end(),
                       [&deadline](const UniqueFd& pidfd) { return wait_for_end(pidfd.get(), deadline); });
}

std::vector<UniqueFd> open_all(const std::vector<ProcessId>& processes) {
    std::vector<UniqueFd> pidfds;
    for (const auto& process : processes) {
        if (UniqueFd pidfd = open_process(process); pidfd.valid()) {
            pidfds.push_back(std::move(pidfd));
        }
    }
    return pidfds;
}

/// Cookie of the namespace behind a descriptor: a helper thread enters it. 0 when that is not possible.
std::uint64_t cookie_of(int netns_fd) {
    std::uint64_t cookie = 0;
    try {
        std::thread([&cookie, netns_fd] {
            if (::setns(netns_fd, CLONE_NEWNET) == 0) {
                cookie = current_netns_cookie();
            }
        }).join();
    } catch (const std::system_error&) {
        return 0;
    }
    return cookie;
}

bool is_inside(pid_t pid, std::span<const NamespaceId> namespaces, NamespaceProof proof) {
    const auto path = fmt::format("/proc/{}/ns/net", pid);
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) {
        return false;
    }
    const auto match = std::find_if(namespaces.begin(), namespaces.end(),
                                    [&facts](const NamespaceId& id) { return id.inode == facts.st_ino; });
    if (match == namespaces.end()) {
        return false;
    }
    if (proof == NamespaceProof::kInode) {
        return true;
    }
    const UniqueFd netns(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const std::uint64_t cookie = netns.valid() ? cookie_of(netns.get()) : 0;
    const bool unknown = cookie == 0 || match->cookie == 0;
    return unknown ? proof == NamespaceProof::kDoubt : cookie == match->cookie;
}

} // namespace

ProcessId identify_process(pid_t pid) {
    const std::string text = read_small_file(fmt::format("/proc/{}/stat", pid));
    // The second field is the name in brackets and may hold anything; the rest is counted from its last bracket.
    const auto bracket = text.rfind(')');
    if (pid <= 0 || bracket == std::string::npos) {
        return {};
    }
    std::istringstream rest(text.substr(bracket + 1));
    std::string state;
    rest >> state;
    std::string skipped;
    constexpr int kFieldsBeforeStart = 18; // fields 4 to 21; the start time is field 22
    for (int i = 0; i < kFieldsBeforeStart; ++i) {
        rest >> skipped;
    }
    std::uint64_t start = 0;
    if (!(rest >> start) || state == "Z" || state == "X") {
        return {};
    }
    return {pid, start};
}

bool is_alive(const ProcessId& process) {
    return process.pid > 0 && identify_process(process.pid) == process;
}

UniqueFd open_process(const ProcessId& process) {
    if (process.pid <= 0) {
        return {};
    }
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    // Checked after opening: from here on the descriptor names this process whatever happens to its number.
    return pidfd.valid() && is_alive(process) ? std::move(pidfd) : UniqueFd();
}

bool wait_for_end(int pidfd, const Deadline& deadline) {
    while (true) {
        pollfd waiter{pidfd, POLLIN, 0};
        const int ready = ::poll(&waiter, 1, deadline.poll_timeout_ms());
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR || deadline.passed()) {
            return false;
        }
    }
}

void send_signal(int pidfd, int signal) {
    static_cast<void>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

std::uint64_t inode_of(int fd) {
    struct stat facts {};
    return ::fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

std::uint64_t current_netns_cookie() {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    std::uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return socket.valid() && ::getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

std::vector<ProcessId> processes_inside(std::span<const NamespaceId> namespaces, NamespaceProof proof) {
    std::vector<ProcessId> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
    if (proc == nullptr || namespaces.empty()) {
        return found;
    }
    while (const dirent* entry = ::readdir(proc.get())) {
        pid_t pid = 0;
        const char* end = entry->d_name + std::strlen(entry->d_name);
        if (std::from_chars(entry->d_name, end, pid).ptr != end || pid == ::getpid()) {
            continue;
        }
        // Identified before the look inside: if the pid changes hands in between, the identity no longer holds.
        const ProcessId process = identify_process(pid);
        if (process.pid != 0 && is_inside(pid, namespaces, proof)) {
            found.push_back(process);
        }
    }
    return found;
}

Result<void> end_processes_inside(std::span<const NamespaceId> namespaces, NamespaceProof proof, Nanoseconds grace,
                                  const Deadline& deadline) {
    const auto first = open_all(processes_inside(namespaces, proof));
    for (const auto& pidfd : first) {
        send_signal(pidfd.get(), SIGTERM);
        send_signal(pidfd.get(), SIGCONT); // a stopped process could not obey
    }
    static_cast<void>(wait_for_all(first, Deadline::at(std::min(deadline.when(), Deadline::after(grace).when()))));
    while (true) {
        // Looked up again in each round: a dying process may have left children.
        const auto left = processes_inside(namespaces, proof);
        if (left.empty()) {
            return {};
        }
        if (deadline.passed()) {
            std::vector<pid_t> pids;
            std::transform(left.begin(), left.end(), std::back_inserter(pids), [](const auto& p) { return p.pid; });
            return fail(Error(ErrorKind::kTeardown, "processes inside the lab do not end")
                            .with("pids", fmt::format("{}", fmt::join(pids, ",")))
                            .advise("a process in an uninterruptible system call ends when that returns"));
        }
        const auto pidfds = open_all(left);
        for (const auto& pidfd : pidfds) {
            send_signal(pidfd.get(), SIGKILL);
        }
        const auto round = Deadline::after(kKillRound).when();
        static_cast<void>(wait_for_all(pidfds, Deadline::at(std::min(deadline.when(), round))));
    }
}

} // namespace railbreak::lab
