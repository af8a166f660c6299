#include "injectors/in_child.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

constexpr char kAtWork = '.'; ///< no frame begins with it

void write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = write(fd, bytes.data(), bytes.size());
        if (put <= 0 && errno != EINTR) {
            return;
        }
        bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
}

/// Everything until end of file, or until nothing has come for `patience`.
std::string read_until_end(int fd, Nanoseconds patience) {
    std::string bytes;
    std::array<char, 65536> part{};
    for (;;) {
        const Deadline deadline = Deadline::after(patience);
        pollfd waiter{fd, POLLIN, 0};
        int ready = 0;
        do {
            ready = poll(&waiter, 1, deadline.poll_timeout_ms());
        } while (ready < 0 && errno == EINTR && !deadline.passed());
        const ssize_t size = ready > 0 ? read(fd, part.data(), part.size()) : 0;
        if (size <= 0) {
            return bytes;
        }
        bytes.append(part.data(), static_cast<std::size_t>(size));
    }
}

} // namespace

Result<std::string> run_in_child(const std::function<std::string(const Progress&)>& body, Nanoseconds patience) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return fail_errno(ErrorKind::kHarness, "make a pipe", errno);
    }
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t child = fork();
    if (child < 0) {
        return fail_errno(ErrorKind::kHarness, "fork", errno);
    }
    if (child == 0) {
        signal(SIGPIPE, SIG_IGN); // what was begun is brought to its end, whoever listens
        try {
            write_all(theirs.get(), make_frame(body([&] { write_all(theirs.get(), {&kAtWork, 1}); })));
        } catch (...) {
            _exit(1); // nothing of the parent's may be unwound here; it sees that the report is missing
        }
        _exit(0);
    }
    theirs.reset();
    const std::string bytes = read_until_end(ours.get(), patience);
    kill(child, SIGKILL); // our own child, not reaped yet: nobody else has its number
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const std::size_t begin = std::min(bytes.find_first_not_of(kAtWork), bytes.size());
    const FrameView frame = read_frame(std::string_view(bytes).substr(begin));
    if (frame.status != FrameStatus::kWhole) {
        return fail(ErrorKind::kHarness, "a child process ended without its report");
    }
    return std::string(frame.payload);
}

} // namespace railbreak::injectors
