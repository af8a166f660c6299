#include "injectors/guard.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/restore.hpp"
#include "injectors/state_folder.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

constexpr int kAttempts = 10;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(500);
constexpr auto kFirstLease = std::chrono::seconds(10); ///< until the agent's first word
constexpr auto kSendBudget = std::chrono::seconds(1);
constexpr int kRestored = 0;
constexpr int kNotRestored = 5;
constexpr int kBadUsage = 64;

void write_word(const char* path, std::string_view text) {
    const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
    if (fd.valid()) {
        // Best effort: none of these is ours to insist on.
        [[maybe_unused]] const ssize_t put = write(fd.get(), text.data(), text.size());
    }
}

/// Makes the process hard to kill by accident. Every step is best effort; what is not permitted is left out.
void harden() {
    prctl(PR_SET_NAME, kGuardName);
    for (const int ignored : {SIGHUP, SIGINT, SIGPIPE, SIGQUIT}) {
        struct sigaction action {};
        action.sa_handler = SIG_IGN;
        sigaction(ignored, &action, nullptr);
    }
    if (geteuid() == 0) {
        // A batch system kills everything in the job's cgroup at its end.
        write_word("/sys/fs/cgroup/cgroup.procs", "0");
        write_word("/sys/fs/cgroup/unified/cgroup.procs", "0");
        write_word("/sys/fs/cgroup/freezer/cgroup.procs", "0");
    }
    write_word("/proc/self/oom_score_adj", "-1000");
    // Only what is mapped now: with a small limit, locking later mappings too would make allocations fail.
    mlockall(MCL_CURRENT);
}

/// The guard's own copy of an entry. Restored entries are kept: see run_guard about a stalled agent.
struct Held {
    JournalEntry entry;
    bool open = true;
};

class GuardProcess {
public:
    GuardProcess(std::unique_ptr<HostOps> ops, UniqueFd socket, UniqueFd journal)
        : ops_(std::move(ops)), channel_(std::move(socket)), journal_(std::move(journal)),
          lease_end_(ops_->boottime() + kFirstLease) {}

    int run();

private:
    enum class Next : std::uint8_t { kGoOn, kDisarmed, kUndo };
    bool prepare();
    void set_timer();
    Next hear();
    Next obey(std::string_view message);
    void acknowledge(std::uint32_t sequence);
    void expire();
    bool restore_all(bool closed_too);
    bool try_restore(Held& held);

    std::unique_ptr<HostOps> ops_;
    GuardChannel channel_;
    UniqueFd journal_;
    UniqueFd signals_;
    UniqueFd timer_;
    Nanoseconds lease_end_;
    bool expired_ = false;
    std::vector<Held> held_;
};

bool GuardProcess::prepare() {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    if (sigprocmask(SIG_SETMASK, &mask, nullptr) != 0) {
        return false;
    }
    signals_.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    timer_.reset(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!signals_.valid() || !timer_.valid()) {
        return false;
    }
    set_timer();
    Encoder out;
    out.put(static_cast<std::uint8_t>(GuardWord::kArmed));
    out.put(static_cast<std::int32_t>(getpid()));
    return channel_.send(out.take(), Deadline::after(kSendBudget)).has_value();
}

void GuardProcess::set_timer() {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(lease_end_);
    itimerspec when{};
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (lease_end_ - seconds).count();
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void GuardProcess::acknowledge(std::uint32_t sequence) {
    Encoder out;
    out.put(static_cast<std::uint8_t>(GuardWord::kAck));
    out.put(sequence);
    // An agent that is gone shows as end of file.
    (void)channel_.send(out.take(), Deadline::after(kSendBudget));
}

GuardProcess::Next GuardProcess::obey(std::string_view message) {
    Decoder in(message);
    const auto kind = static_cast<GuardWord>(in.get<std::uint8_t>());
    if (kind == GuardWord::kLease) {
        const auto end = Nanoseconds(in.get<std::int64_t>());
        if (in.finished() && !expired_) {
            lease_end_ = end;
            set_timer();
        }
        return Next::kGoOn;
    }
    const auto sequence = in.get<std::uint32_t>();
    if (kind == GuardWord::kEntrust) {
        auto entry = decode_entry(in.get_string());
        if (entry && !expired_) {
            held_.push_back({std::move(*entry), true});
            acknowledge(sequence);
        }
    } else if (kind == GuardWord::kRelease) {
        const auto id = in.get<std::int32_t>();
        std::erase_if(held_, [&](const Held& each) { return each.entry.request.id == id; });
        acknowledge(sequence);
    } else if (kind == GuardWord::kDisarm && held_.empty()) {
        acknowledge(sequence);
        return Next::kDisarmed;
    }
    return Next::kGoOn;
}

GuardProcess::Next GuardProcess::hear() {
    const auto open = channel_.fill();
    for (;;) {
        const auto message = channel_.take();
        if (!message) {
            return Next::kUndo; // an agent that sends nonsense cannot be trusted to undo
        }
        if (!*message) {
            break;
        }
        if (const Next next = obey(**message); next != Next::kGoOn) {
            return next;
        }
    }
    return open && *open ? Next::kGoOn : Next::kUndo;
}

bool GuardProcess::try_restore(Held& held) {
    const auto done = restore_entry(*ops_, held.entry);
    if (!done) {
        return false;
    }
    held.open = false;
    // The host is as before whether or not the journal can say so; if it cannot, the next recovery looks again.
    const Nanoseconds now = ops_->boottime();
    const std::string marks = mark_frame(JournalMark::kReverted, held.entry.request.id, now) +
                              mark_frame(JournalMark::kRestored, held.entry.request.id, now);
    if (ops_->append(journal_.get(), marks)) {
        (void)ops_->sync_file(journal_.get());
    }
    return true;
}

bool GuardProcess::restore_all(bool closed_too) {
    if (closed_too) {
        std::for_each(held_.begin(), held_.end(), [](Held& each) { each.open = true; });
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        bool all = true;
        for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
            if (held->open && !try_restore(*held)) {
                all = false;
            }
        }
        if (all) {
            return true;
        }
        (void)ops_->wait_event(Deadline::after(kBetweenAttempts));
    }
    return false;
}

void GuardProcess::expire() {
    expired_ = true;
    restore_all(false);
    Encoder out;
    out.put(static_cast<std::uint8_t>(GuardWord::kExpired));
    (void)channel_.send(out.take(), Deadline::after(kSendBudget));
    timer_.reset();
}

int GuardProcess::run() {
    if (!prepare()) {
        return kBadUsage;
    }
    for (;;) {
        // No timeout of its own: the lease's timer bounds the wait, and after it the agent's life.
        std::array<pollfd, 3> waiters{pollfd{channel_.fd(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                      pollfd{timer_.get(), POLLIN, 0}};
        if (poll(waiters.data(), waiters.size(), -1) < 0 && errno != EINTR) {
            return restore_all(true) ? kRestored : kNotRestored;
        }
        const Next next = waiters[0].revents != 0 ? hear() : Next::kGoOn;
        if (next == Next::kDisarmed) {
            return kRestored;
        }
        if (next == Next::kUndo || waiters[1].revents != 0) {
            return restore_all(true) ? kRestored : kNotRestored;
        }
        // A renewal may have come together with the alarm.
        if (!expired_ && ops_->boottime() >= lease_end_) {
            expire();
        }
    }
}

} // namespace

int run_guard(UniqueFd socket, UniqueFd journal) {
    auto ops = open_host_ops();
    if (!ops) {
        return kBadUsage;
    }
    harden();
    GuardProcess process(std::move(*ops), std::move(socket), std::move(journal));
    return process.run();
}

int guard_main(std::span<const std::string> args) {
    std::array<int, 2> descriptors{-1, -1};
    if (args.size() != 4 || args[0] != "--socket" || args[2] != "--journal") {
        return kBadUsage;
    }
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
        const std::string& text = args[2 * i + 1];
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), descriptors[i]);
        if (code != std::errc() || end != text.data() + text.size() || fcntl(descriptors[i], F_GETFD) < 0) {
            return kBadUsage;
        }
    }
    for (const int fd : descriptors) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return run_guard(UniqueFd(descriptors[0]), UniqueFd(descriptors[1]));
}

} // namespace railbreak::injectors
