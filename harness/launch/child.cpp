#include "harness/launch/child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace railbreak::launch {

namespace {

struct Pipe {
    UniqueFd read_end;
    UniqueFd write_end;
};

Result<Pipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail_errno(ErrorKind::kHarness, "make a pipe", errno);
    }
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What the child says through the status pipe when it could not become the program.
struct SpawnFailure {
    int step; ///< index into kSteps
    int errno_value;
};
constexpr std::array kSteps{"enter the network namespace", "connect the standard streams", "execute the program"};

struct ChildSide {
    int stdin_fd, stdout_fd, stderr_fd, status_fd, netns_fd;
    bool die_with_parent;
    pid_t parent;
    char* const* argv;
};

[[noreturn]] void give_up(const ChildSide& side, int step) {
    const SpawnFailure failure{step, errno};
    [[maybe_unused]] const ssize_t written = ::write(side.status_fd, &failure, sizeof failure);
    ::_exit(127);
}

/// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const ChildSide& side) {
    ::setsid();
    if (side.die_with_parent) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != side.parent) {
            ::_exit(127);
        }
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    if (side.netns_fd >= 0 && ::setns(side.netns_fd, CLONE_NEWNET) != 0) {
        give_up(side, 0);
    }
    if (::dup2(side.stdin_fd, STDIN_FILENO) < 0 || ::dup2(side.stdout_fd, STDOUT_FILENO) < 0 ||
        (side.stderr_fd >= 0 && ::dup2(side.stderr_fd, STDERR_FILENO) < 0)) {
        give_up(side, 1);
    }
    ::execv(side.argv[0], side.argv);
    give_up(side, 2);
}

Result<void> await_exec(int status_fd, const std::string& program) {
    SpawnFailure failure{};
    ssize_t count = 0;
    do {
        count = ::read(status_fd, &failure, sizeof failure); // ends by exec (close-on-exec) or by the child's death
    } while (count < 0 && errno == EINTR);
    if (count == 0) {
        return {};
    }
    const std::string what = fmt::format("{} ({})", kSteps.at(static_cast<std::size_t>(failure.step)), program);
    return fail_errno(ErrorKind::kHarness, what, failure.errno_value);
}

} // namespace

Result<Child> spawn(const SpawnOptions& options) {
    Result<Pipe> in = make_pipe();
    Result<Pipe> out = make_pipe();
    Result<Pipe> err = make_pipe();
    Result<Pipe> status = make_pipe();
    if (!in || !out || !err || !status) {
        return fail(std::move(!in ? in.error() : !out ? out.error() : !err ? err.error() : status.error()));
    }
    std::vector<char*> argv;
    for (const std::string& argument : options.argv) {
        argv.push_back(const_cast<char*>(argument.c_str())); // NOLINT: execv's signature; it does not write
    }
    argv.push_back(nullptr);
    const ChildSide side{in->read_end.get(),
                         out->write_end.get(),
                         options.inherit_stderr ? -1 : err->write_end.get(),
                         status->write_end.get(),
                         options.netns_fd,
                         options.die_with_parent,
                         ::getpid(),
                         argv.data()};
    const pid_t pid = ::fork();
    if (pid < 0) {
        return fail_errno(ErrorKind::kHarness, "fork", errno);
    }
    if (pid == 0) {
        become(side);
    }
    Child child;
    child.pid = pid;
    child.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    child.stdin_fd = std::move(in->write_end);
    child.stdout_fd = std::move(out->read_end);
    if (!options.inherit_stderr) {
        child.stderr_fd = std::move(err->read_end);
    }
    status->write_end.reset();
    if (Result<void> executed = await_exec(status->read_end.get(), options.argv.front()); !executed) {
        (void)wait_for(child, Deadline::after(std::chrono::seconds(5)));
        return fail(std::move(executed.error()));
    }
    return child;
}

std::string ExitStatus::describe() const {
    if (!signalled) {
        return fmt::format("exit code {}", code);
    }
    const char* name = ::sigabbrev_np(code);
    return fmt::format("killed by signal {} (SIG{})", code, name != nullptr ? name : "?");
}

std::optional<ExitStatus> wait_for(const Child& child, Deadline deadline) {
    for (;;) {
        int status = 0;
        const pid_t reaped = ::waitpid(child.pid, &status, WNOHANG);
        if (reaped == child.pid) {
            return WIFSIGNALED(status) ? ExitStatus{true, WTERMSIG(status)} : ExitStatus{false, WEXITSTATUS(status)};
        }
        if (reaped < 0 && errno != EINTR) {
            return ExitStatus{}; // not ours, or reaped before: it is gone
        }
        if (deadline.passed()) {
            return std::nullopt;
        }
        pollfd ended{child.pidfd.get(), POLLIN, 0};
        (void)::poll(&ended, 1, deadline.poll_timeout_ms());
    }
}

void send_signal(const Child& child, int signal) {
    (void)::syscall(SYS_pidfd_send_signal, child.pidfd.get(), signal, nullptr, 0);
}

Result<std::string> own_executable() {
    std::array<char, 4096> path{};
    const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
    if (length <= 0) {
        return fail_errno(ErrorKind::kHarness, "read /proc/self/exe", errno);
    }
    return std::string(path.data(), static_cast<std::size_t>(length));
}

} // namespace railbreak::launch
