// The agent's side of the guard: starting it and talking to it.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/guard.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kAnswerBudget = std::chrono::seconds(5);
constexpr int kSocketFd = 3;
constexpr int kJournalFd = 4;

tl::unexpected<Error> guard_lost(std::string_view how) {
    return fail(Error(ErrorKind::kHarness, "the guard process " + std::string(how)).with("guard", "lost"));
}

/// Everything from here to exec runs in a forked child: async-signal-safe calls only. Gives the guard its two
/// descriptors at fixed numbers and nothing else.
bool arrange_descriptors(int socket, int journal) {
    const int high_socket = fcntl(socket, F_DUPFD, 16);
    const int high_journal = fcntl(journal, F_DUPFD, 16);
    const int null = open("/dev/null", O_RDWR);
    if (high_socket < 0 || high_journal < 0 || null < 0) {
        return false;
    }
    for (const int standard : {0, 1, 2}) {
        if (dup2(null, standard) < 0) {
            return false;
        }
    }
    return dup2(high_socket, kSocketFd) >= 0 && dup2(high_journal, kJournalFd) >= 0 && close_range(5, ~0U, 0) == 0;
}

[[noreturn]] void become_guard(const GuardLaunch& launch, int socket, int journal) {
    // Neither a signal of the agent's terminal nor its session's end may reach the guard.
    if (setsid() < 0) {
        _exit(70);
    }
    const pid_t grandchild = fork();
    if (grandchild != 0) {
        _exit(grandchild > 0 ? 0 : 70);
    }
    if (!arrange_descriptors(socket, journal)) {
        _exit(70);
    }
    if (launch.executable.empty()) {
        _exit(run_guard(UniqueFd(kSocketFd), UniqueFd(kJournalFd)));
    }
    std::array<const char*, 7> arguments{"railbreak", launch.command.c_str(), "--socket", "3", "--journal", "4",
                                         nullptr};
    execv(launch.executable.c_str(), const_cast<char* const*>(arguments.data()));
    _exit(70);
}

std::string word(GuardWord kind, std::uint32_t sequence, auto... rest) {
    Encoder out;
    out.put(static_cast<std::uint8_t>(kind));
    out.put(sequence);
    (out.put(rest), ...);
    return out.take();
}

} // namespace

Result<Guard> Guard::launch(const GuardLaunch& launch, int journal_fd, Nanoseconds lease_end_boottime) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail_errno(ErrorKind::kHarness, "make the guard's socket", errno);
    }
    Guard guard{UniqueFd(ends[0])};
    UniqueFd theirs(ends[1]);
    const pid_t child = fork();
    if (child < 0) {
        return fail_errno(ErrorKind::kHarness, "fork the guard", errno);
    }
    if (child == 0) {
        become_guard(launch, theirs.get(), journal_fd);
    }
    theirs.reset();
    // The middle process ends at once; only it is a child of ours. Someone else's reaper may have been quicker.
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (auto sent = guard.renew(lease_end_boottime); !sent) {
        return tl::unexpected(std::move(sent.error()).during("arming the guard"));
    }
    auto answer = guard.channel_.receive(Deadline::after(kAnswerBudget));
    if (!answer) {
        return tl::unexpected(std::move(answer.error()).during("arming the guard"));
    }
    if (!*answer) {
        return guard_lost("ended before it was armed");
    }
    Decoder in(**answer);
    if (in.get<std::uint8_t>() != static_cast<std::uint8_t>(GuardWord::kArmed)) {
        return guard_lost("did not say that it is armed");
    }
    guard.pid_ = in.get<std::int32_t>();
    return guard;
}

Result<void> Guard::ask(std::string payload, std::uint32_t sequence) {
    if (expired_) {
        return guard_lost("has undone everything because the lease ran out");
    }
    const Deadline deadline = Deadline::after(kAnswerBudget);
    if (auto sent = channel_.send(payload, deadline); !sent) {
        return sent;
    }
    for (;;) {
        auto answer = channel_.receive(deadline);
        if (!answer) {
            return tl::unexpected(answer.error());
        }
        if (!*answer) {
            return guard_lost("is dead");
        }
        Decoder in(**answer);
        const auto kind = in.get<std::uint8_t>();
        if (kind == static_cast<std::uint8_t>(GuardWord::kExpired)) {
            expired_ = true;
            return guard_lost("has undone everything because the lease ran out");
        }
        if (kind == static_cast<std::uint8_t>(GuardWord::kAck) && in.get<std::uint32_t>() == sequence) {
            return {};
        }
    }
}

Result<void> Guard::entrust(const JournalEntry& entry) {
    const std::uint32_t sequence = ++sequence_;
    Encoder out;
    out.put(static_cast<std::uint8_t>(GuardWord::kEntrust));
    out.put(sequence);
    out.put_string(encode_entry(entry));
    return ask(out.take(), sequence);
}

Result<void> Guard::release(std::int32_t id) {
    const std::uint32_t sequence = ++sequence_;
    return ask(word(GuardWord::kRelease, sequence, id), sequence);
}

Result<void> Guard::renew(Nanoseconds lease_end_boottime) {
    Encoder out;
    out.put(static_cast<std::uint8_t>(GuardWord::kLease));
    out.put(lease_end_boottime.count());
    return channel_.send(out.take(), Deadline::after(kAnswerBudget));
}

Result<void> Guard::disarm() {
    const std::uint32_t sequence = ++sequence_;
    return ask(word(GuardWord::kDisarm, sequence), sequence);
}

Result<void> Guard::check() {
    const auto open = channel_.fill();
    if (!open) {
        return tl::unexpected(open.error());
    }
    for (;;) {
        const auto message = channel_.take();
        if (!message) {
            return tl::unexpected(message.error());
        }
        if (!*message) {
            break;
        }
        if (!(*message)->empty() && (**message)[0] == static_cast<char>(GuardWord::kExpired)) {
            expired_ = true;
        }
    }
    if (expired_) {
        return guard_lost("has undone everything because the lease ran out");
    }
    return *open ? Result<void>() : guard_lost("is dead");
}

} // namespace railbreak::injectors
