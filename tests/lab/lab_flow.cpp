#include "tests/lab/lab_flow.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/lab/processes.hpp"

namespace railbreak::lab {
namespace {

constexpr auto kConnectBudget = std::chrono::seconds(5);
constexpr auto kChildBudget = std::chrono::seconds(30);

UniqueFd socket_in(int netns) {
    UniqueFd fd;
    std::thread([&fd, netns] {
        if (::setns(netns, CLONE_NEWNET) == 0) {
            fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        }
    }).join();
    return fd;
}

bool wait_ready(int fd, short events, const Deadline& deadline) {
    pollfd waiter{fd, events, 0};
    return ::poll(&waiter, 1, deadline.poll_timeout_ms()) > 0;
}

} // namespace

std::optional<Flow> connect_flow(int sender_netns, int receiver_netns, const std::string& address) {
    const auto deadline = Deadline::after(kConnectBudget);
    const UniqueFd listener = socket_in(receiver_netns);
    Flow flow{socket_in(sender_netns), {}};
    sockaddr_in where{};
    where.sin_family = AF_INET;
    ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
    socklen_t size = sizeof where;
    auto* raw = reinterpret_cast<sockaddr*>(&where);
    if (::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), raw, &size) != 0) {
        return std::nullopt;
    }
    if (::connect(flow.sender.get(), raw, size) != 0 && errno != EINPROGRESS) {
        return std::nullopt;
    }
    if (!wait_ready(listener.get(), POLLIN, deadline)) {
        return std::nullopt;
    }
    flow.receiver.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!flow.receiver.valid() || !wait_ready(flow.sender.get(), POLLOUT, deadline)) {
        return std::nullopt;
    }
    return flow;
}

std::string congestion_control_of(int socket) {
    std::array<char, 17> name{};
    socklen_t size = name.size() - 1;
    return ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0 ? std::string(name.data())
                                                                                      : std::string();
}

double measure_goodput(const Flow& flow, Nanoseconds skip, Nanoseconds duration) {
    const auto end = Deadline::after(duration);
    std::thread sender([&flow, &end] {
        const std::vector<char> block(1 << 18);
        while (!end.passed() && wait_ready(flow.sender.get(), POLLOUT, end)) {
            if (::send(flow.sender.get(), block.data(), block.size(), MSG_NOSIGNAL) < 0 && errno != EAGAIN) {
                return;
            }
        }
    });
    std::vector<char> block(1 << 20);
    const auto from = monotonic_now() + skip;
    std::uint64_t bytes = 0;
    Nanoseconds first{0};
    Nanoseconds last{0};
    while (!end.passed() && wait_ready(flow.receiver.get(), POLLIN, end)) {
        const ssize_t got = ::recv(flow.receiver.get(), block.data(), block.size(), 0);
        const auto now = monotonic_now();
        if (got <= 0) {
            continue;
        }
        if (first.count() != 0) { // the first arrival only starts the clock
            bytes += static_cast<std::uint64_t>(got);
            last = now;
        } else if (now >= from) {
            first = now;
        }
    }
    sender.join();
    return last > first ? static_cast<double>(bytes) * 8e9 / static_cast<double>((last - first).count()) : 0.0;
}

pid_t start_child(uid_t user, const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child != 0) {
        return child;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (user != 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(user, user, user) != 0 ||
                      ::setresuid(user, user, user) != 0 || ::prctl(PR_SET_DUMPABLE, 1) != 0)) {
        ::_exit(125);
    }
    ::_exit(body());
}

int finish_child(pid_t child) {
    if (child <= 0) {
        return -1;
    }
    const UniqueFd pidfd = open_process(identify_process(child));
    if (pidfd.valid() && !wait_for_end(pidfd.get(), Deadline::after(kChildBudget))) {
        ::kill(child, SIGKILL);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int run_in_child(uid_t user, const std::function<int()>& body) {
    return finish_child(start_child(user, body));
}

} // namespace railbreak::lab
