#include "tests/lab/stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "injectors/netns_scope.hpp"
#include "tests/lab/injector_bench.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kStreamPatience = std::chrono::seconds(20);

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    explicit SocketAddress(const std::string& text) {
        sockaddr_in ip4{};
        sockaddr_in6 ip6{};
        if (inet_pton(AF_INET, text.c_str(), &ip4.sin_addr) == 1) {
            ip4.sin_family = AF_INET;
            std::memcpy(&storage, &ip4, size = sizeof ip4);
        } else {
            EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &ip6.sin6_addr), 1) << text;
            ip6.sin6_family = AF_INET6;
            std::memcpy(&storage, &ip6, size = sizeof ip6);
        }
    }
    sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

UniqueFd bound_socket(int netns, SocketAddress& address) {
    UniqueFd fd;
    const auto entered = run_in_netns(
        netns, [&] { fd.reset(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); });
    EXPECT_TRUE(entered.has_value());
    EXPECT_EQ(bind(fd.get(), address.raw(), address.size), 0) << strerrordesc_np(errno);
    return fd;
}

} // namespace

Stream::Stream(int near_netns, const std::string& near, int far_netns, const std::string& far) {
    SocketAddress here(near);
    SocketAddress there(far);
    const UniqueFd listener = bound_socket(far_netns, there);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), there.raw(), &there.size), 0);
    near_ = bound_socket(near_netns, here);
    EXPECT_TRUE(connect(near_.get(), there.raw(), there.size) == 0 || errno == EINPROGRESS);
    EXPECT_TRUE(readable(listener.get(), kStreamPatience)) << "no connection from " << near << " to " << far;
    far_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    EXPECT_TRUE(far_.valid());
}

bool Stream::carry(std::size_t bytes) {
    const Deadline deadline = Deadline::after(kStreamPatience);
    std::array<char, 65536> buffer{};
    std::size_t sent = 0;
    std::size_t received = 0;
    while (received < bytes && !deadline.passed()) {
        const short wanted = sent < bytes ? POLLOUT : 0;
        std::array<pollfd, 2> waiters{{{near_.get(), wanted, 0}, {far_.get(), POLLIN, 0}}};
        if (poll(waiters.data(), waiters.size(), deadline.poll_timeout_ms()) < 0) {
            return false;
        }
        if ((waiters[0].revents & POLLOUT) != 0) {
            const ssize_t put = send(near_.get(), buffer.data(), std::min(buffer.size(), bytes - sent), MSG_NOSIGNAL);
            sent += put > 0 ? static_cast<std::size_t>(put) : 0;
        }
        const ssize_t got = recv(far_.get(), buffer.data(), buffer.size(), 0);
        received += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return received == bytes;
}

} // namespace railbreak::injectors
