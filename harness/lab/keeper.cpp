#include "harness/lab/keeper.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text_file.hpp"
#include "harness/lab/fabric.hpp"

namespace railbreak::lab {
namespace {

constexpr std::string_view kCommPrefix = "rb-lab:";
constexpr std::string_view kMemfdName = "railbreak-lab";
constexpr auto kStartBudget = std::chrono::seconds(5);
constexpr auto kGraceForOrphans = std::chrono::seconds(2); ///< agents revert and end by themselves when the owner dies
constexpr auto kGraceOnRequest = std::chrono::milliseconds(500);
constexpr auto kTeardownBudget = std::chrono::seconds(10);
constexpr int kHighestDescriptor = 512; ///< above every number that a keeper uses itself

/// A sealed, readable file in memory with the lab's record, by which a keeper can be known without a record on disk.
Result<UniqueFd> make_record_file(const LabRecord& record) {
    UniqueFd file(::memfd_create(kMemfdName.data(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const std::string text = to_json(record);
    if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        return fail_errno(ErrorKind::kHarness, "make the keeper's record", errno);
    }
    return file;
}

/// Leaves the keeper with /dev/null as 0 to 2 and with `wanted` as 3, 4, ...; everything else is closed.
void arrange_descriptors(std::span<const int> wanted) {
    // First out of the way, so that no target number is still in use as a source.
    std::vector<int> high;
    for (const int fd : wanted) {
        high.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, kHighestDescriptor));
    }
    const int null = ::open("/dev/null", O_RDWR);
    for (int number = 0; number < kKeeperRecordFd; ++number) {
        ::dup2(null, number);
    }
    int next = kKeeperRecordFd;
    for (const int fd : high) {
        ::dup2(fd, next++);
    }
    ::close_range(static_cast<unsigned>(next), ~0U, 0);
}

/// What the forked child needs; everything is prepared before the fork.
struct KeeperPlan {
    const LabRecord* record = nullptr;
    std::vector<int> descriptors; ///< record, switch, hosts, then ready pipe, then the owner's pidfd unless kept
};

/// Removes the lab's record unless a newer lab has taken the name.
void forget_record(const LabRecord& mine) {
    auto folder = StateFolder::open();
    if (!folder || !folder->lock(Deadline::after(kStartBudget))) {
        return;
    }
    const auto there = folder->read(mine.spec.name);
    if (there && there->created_at == mine.created_at && there->owner == mine.owner) {
        folder->remove(mine.spec.name);
    }
}

/// Empties the lab and lets go of it.
void take_lab_down(const LabRecord& record, Nanoseconds grace) {
    const auto deadline = Deadline::after(kTeardownBudget);
    static_cast<void>(end_processes_inside(record.namespaces, NamespaceProof::kInode, grace, deadline));
    const auto hosts = static_cast<unsigned>(record.namespaces.size()) - 1;
    ::close_range(kKeeperFirstHostFd, kKeeperFirstHostFd + hosts - 1, 0);
    if (::setns(kKeeperSwitchFd, CLONE_NEWNET) == 0) {
        static_cast<void>(wait_until_ports_gone(deadline));
    }
    forget_record(record);
}

/// The keeper's whole life. It runs in a fork of a process that may have threads: glibc keeps malloc usable there, and
/// nothing else of the parent's is touched. Its one wait has no deadline, because holding the lab is its purpose.
[[noreturn]] void keep(const KeeperPlan& plan) {
    const LabRecord& record = *plan.record;
    const auto namespaces = static_cast<int>(record.namespaces.size());
    ::setsid(); // out of reach of the terminal's signals
    if (!record.kept) {
        // A keeper that is stopped could not see its owner's end: the kernel wakes it up then.
        ::prctl(PR_SET_PDEATHSIG, SIGCONT);
    }
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    static_cast<void>(!::chdir("/"));
    arrange_descriptors(plan.descriptors);
    ::prctl(PR_SET_NAME, fmt::format("{}{}", kCommPrefix, record.spec.name).c_str());
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    const int ready_pipe = kKeeperSwitchFd + namespaces;
    const int owner = record.kept ? -1 : ready_pipe + 1;
    const int signals = ::signalfd(-1, &term, SFD_CLOEXEC);
    const pid_t self = ::getpid();
    const bool told = ::write(ready_pipe, &self, sizeof self) == static_cast<ssize_t>(sizeof self);
    ::close(ready_pipe);
    if (signals < 0 || !told) {
        ::_exit(1);
    }
    std::array<pollfd, 2> waiters{{{signals, POLLIN, 0}, {owner, POLLIN, 0}}};
    while (::poll(waiters.data(), waiters.size(), -1) < 0) {
    }
    take_lab_down(record, waiters[0].revents != 0 ? kGraceOnRequest : kGraceForOrphans);
    ::_exit(0);
}

/// Reads the keeper's pid from the pipe by which it says that it is ready.
Result<ProcessId> await_keeper(int pipe) {
    const auto deadline = Deadline::after(kStartBudget);
    pollfd waiter{pipe, POLLIN, 0};
    int ready = 0;
    do {
        ready = ::poll(&waiter, 1, deadline.poll_timeout_ms());
    } while (ready < 0 && errno == EINTR && !deadline.passed());
    pid_t pid = 0;
    if (ready <= 0 || ::read(pipe, &pid, sizeof pid) != static_cast<ssize_t>(sizeof pid)) {
        return fail(ErrorKind::kHarness, "the lab's keeper did not start");
    }
    const ProcessId keeper = identify_process(pid);
    if (keeper.pid == 0) {
        return fail(ErrorKind::kHarness, "the lab's keeper ended at once");
    }
    return keeper;
}

} // namespace

Result<ProcessId> start_keeper(const LabRecord& record, std::span<const int> namespaces) {
    auto file = make_record_file(record);
    if (!file) {
        return fail(std::move(file.error()));
    }
    // Opened before the fork: it names this process even if it is killed before the child runs.
    const UniqueFd owner(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    std::array<int, 2> ends{};
    if (!owner.valid() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail_errno(ErrorKind::kHarness, "prepare the lab's keeper", errno);
    }
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    KeeperPlan plan;
    plan.record = &record;
    plan.descriptors.push_back(file->get());
    plan.descriptors.insert(plan.descriptors.end(), namespaces.begin(), namespaces.end());
    plan.descriptors.push_back(write_end.get());
    if (!record.kept) {
        plan.descriptors.push_back(owner.get());
    }
    const pid_t child = ::fork();
    if (child < 0) {
        return fail_errno(ErrorKind::kHarness, "start the lab's keeper", errno);
    }
    if (child == 0) {
        if (record.kept && ::fork() != 0) {
            ::_exit(0); // the grandchild goes on as an orphan, so that nobody has to reap it
        }
        keep(plan);
    }
    write_end.reset();
    if (record.kept) {
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
    }
    return await_keeper(read_end.get());
}

std::optional<LabRecord> read_keeper(pid_t pid) {
    std::ifstream comm_file(fmt::format("/proc/{}/comm", pid));
    std::string comm;
    std::getline(comm_file, comm);
    const ProcessId keeper = identify_process(pid);
    struct stat facts {};
    if (!comm.starts_with(kCommPrefix) || keeper.pid == 0 ||
        ::stat(fmt::format("/proc/{}", pid).c_str(), &facts) != 0 || facts.st_uid != ::geteuid()) {
        return std::nullopt;
    }
    const auto path = fmt::format("/proc/{}/fd/{}", pid, kKeeperRecordFd);
    std::array<char, 128> link{};
    const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
    if (length < 0 || !std::string_view(link.data(), static_cast<std::size_t>(length))
                           .starts_with(fmt::format("/memfd:{}", kMemfdName))) {
        return std::nullopt;
    }
    auto record = parse_record(read_small_file(path));
    if (record) {
        record->keeper = keeper;
    }
    return record;
}

std::vector<LabRecord> find_keepers() {
    std::vector<LabRecord> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
    while (const dirent* entry = proc != nullptr ? ::readdir(proc.get()) : nullptr) {
        pid_t pid = 0;
        const char* end = entry->d_name + std::strlen(entry->d_name);
        if (std::from_chars(entry->d_name, end, pid).ptr == end) {
            if (auto record = read_keeper(pid)) {
                found.push_back(std::move(*record));
            }
        }
    }
    return found;
}

Result<UniqueFd> open_keeper_fd(const ProcessId& keeper, int number) {
    UniqueFd fd(::open(fmt::format("/proc/{}/fd/{}", keeper.pid, number).c_str(), O_RDONLY | O_CLOEXEC));
    const int error = errno;
    if (!fd.valid() || !is_alive(keeper)) {
        return fail_errno(error == EACCES ? ErrorKind::kRefused : ErrorKind::kHarness, "open the lab's namespace",
                          fd.valid() ? ESRCH : error);
    }
    return fd;
}

Result<bool> end_keeper(const ProcessId& keeper, const Deadline& deadline) {
    const UniqueFd pidfd = open_process(keeper);
    if (!pidfd.valid()) {
        return true;
    }
    send_signal(pidfd.get(), SIGTERM);
    send_signal(pidfd.get(), SIGCONT);
    const bool obeyed = wait_for_end(pidfd.get(), Deadline::after(deadline.left() / 2));
    if (!obeyed) {
        send_signal(pidfd.get(), SIGKILL);
        if (!wait_for_end(pidfd.get(), deadline)) {
            return fail(Error(ErrorKind::kTeardown, "the lab's keeper does not end")
                            .with("keeper", std::to_string(keeper.pid)));
        }
    }
    // Reaped when it is our child; otherwise there is nothing to reap.
    static_cast<void>(::waitpid(keeper.pid, nullptr, WNOHANG));
    return obeyed;
}

} // namespace railbreak::lab
