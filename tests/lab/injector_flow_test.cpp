// Faults under a TCP flow, and with the guard as a program of its own.
#include <array>
#include <csignal>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/fault_keeper.hpp"
#include "tests/lab/injector_bench.hpp"

namespace railbreak::injectors {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

/// A connected pair of TCP sockets: one in the host's namespace, one in the peer's, over nic0.
struct Connection {
    UniqueFd host;
    UniqueFd peer;
};

class InjectorFlow : public InjectorBench {
protected:
    KeeperOptions options() const {
        KeeperOptions options;
        options.run_id = "flow";
        options.host_name = "host";
        options.journal_folder = folder_;
        options.lease = std::chrono::minutes(10);
        return options;
    }
    Connection connect_over_nic0();
    /// Pushes bytes from one socket to the other for a while and gives the goodput of the time after `settle`.
    static double goodput_mbit(int from, int to, Nanoseconds settle, Nanoseconds span);
};

Connection InjectorFlow::connect_over_nic0() {
    Connection pair;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, "10.9.0.2", &address.sin_addr);
    socklen_t size = sizeof address;
    EXPECT_EQ(setns(peer_netns_.get(), CLONE_NEWNET), 0);
    const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(setns(host_netns_.get(), CLONE_NEWNET), 0);
    pair.host.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(pair.host.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    pair.peer.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(pair.peer.valid());
    return pair;
}

double InjectorFlow::goodput_mbit(int from, int to, Nanoseconds settle, Nanoseconds span) {
    static constexpr std::size_t kChunk = 1 << 18;
    std::vector<char> chunk(kChunk);
    const Nanoseconds start = monotonic_now() + settle;
    const Deadline end = Deadline::at(start + span);
    std::uint64_t bytes = 0;
    while (!end.passed()) {
        std::array<pollfd, 2> waiters{pollfd{from, POLLOUT, 0}, pollfd{to, POLLIN, 0}};
        if (poll(waiters.data(), waiters.size(), end.poll_timeout_ms()) <= 0) {
            break;
        }
        if ((waiters[0].revents & POLLOUT) != 0) {
            (void)::send(from, chunk.data(), kChunk, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if ((waiters[1].revents & POLLIN) != 0) {
            const ssize_t got = recv(to, chunk.data(), kChunk, MSG_DONTWAIT);
            if (got > 0 && monotonic_now() >= start) {
                bytes += static_cast<std::uint64_t>(got);
            }
        }
    }
    return static_cast<double>(bytes) * 8e3 / static_cast<double>(span.count());
}

TEST_F(InjectorFlow, CapsARunningFlowInEachDirection) {
    const auto before = snapshot();
    auto keeper = FaultKeeper::open(options(), *ops_);
    ASSERT_TRUE(keeper.has_value()) << keeper.error().to_line();
    const Connection flow = connect_over_nic0();
    const auto measure = [&](bool sending) {
        return goodput_mbit(sending ? flow.host.get() : flow.peer.get(), sending ? flow.peer.get() : flow.host.get(),
                            std::chrono::milliseconds(500), std::chrono::milliseconds(1000));
    };
    const double free_send = measure(true);
    const double free_receive = measure(false);
    ASSERT_TRUE(
        keeper
            ->apply({.id = 1, .kind = FaultKind::kCap, .nic = "nic0", .direction = Direction::kSend, .rate = mbit(40)})
            .has_value());
    const double slow_send = measure(true);
    const double still_free = measure(false);
    ASSERT_TRUE(
        keeper
            ->apply({.id = 2, .kind = FaultKind::kCap, .nic = "nic0", .direction = Direction::kBoth, .rate = mbit(20)})
            .has_value());
    const double slower_send = measure(true);
    const double slow_receive = measure(false);
    std::printf("goodput in Mbit/s: free %.0f and %.0f; send capped at 40: %.1f and %.0f; both at 20: %.1f and %.1f\n",
                free_send, free_receive, slow_send, still_free, slower_send, slow_receive);
    // Wide bands: the machine may be busy. A cap can never be passed for long, though.
    EXPECT_GT(free_send, 80);
    EXPECT_GT(free_receive, 80);
    EXPECT_LT(slow_send, 44);
    EXPECT_GT(slow_send, 10);
    EXPECT_GT(still_free, 44);
    EXPECT_LT(slower_send, 22);
    EXPECT_LT(slow_receive, 22);
    EXPECT_GT(slow_receive, 5);
    ASSERT_TRUE(keeper->close().has_value());
    EXPECT_GT(measure(true), 44);
    EXPECT_EQ(snapshot(), before);
}

TEST_F(InjectorFlow, GuardAsAProgramRestoresWhenItsAgentIsKilled) {
    const auto before = snapshot();
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t agent = fork();
    if (agent == 0) {
        KeeperOptions with_program = options();
        with_program.guard.executable = RAILBREAK_INJECTOR_GUARD;
        auto keeper = FaultKeeper::open(with_program, *ops_);
        const bool applied =
            keeper &&
            keeper->apply(
                {.id = 1, .kind = FaultKind::kCap, .nic = "nic0", .direction = Direction::kBoth, .rate = mbit(20)}) &&
            keeper->apply({.id = 2, .kind = FaultKind::kLinkDown, .nic = "nic0"});
        const pid_t guard = applied ? keeper->guard_pid() : 0;
        (void)!write(theirs.get(), &guard, sizeof guard);
        kill(getpid(), SIGKILL);
    }
    theirs.reset();
    pid_t guard = 0;
    ASSERT_TRUE(readable(ours.get(), kPatience));
    ASSERT_EQ(read(ours.get(), &guard, sizeof guard), static_cast<ssize_t>(sizeof guard));
    ASSERT_GT(guard, 0) << "the faults were not applied";
    EXPECT_TRUE(WIFSIGNALED(wait_ended(agent, kPatience)));
    const Nanoseconds died = monotonic_now();
    EXPECT_EQ(wait_ended(guard, kPatience), 0);
    std::printf("restored %.1f ms after the agent's end\n",
                static_cast<double>((monotonic_now() - died).count()) / 1e6);
    EXPECT_EQ(snapshot(), before);
}

} // namespace
} // namespace railbreak::injectors
