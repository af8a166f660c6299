#include "collective/transport/tcp_socket.hpp"

#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace railbreak::collective {

namespace {

Result<void> set_option(int socket, int level, int name, int value, std::string_view what) {
    if (::setsockopt(socket, level, name, &value, sizeof value) != 0) {
        return fail_errno(ErrorKind::kHarness, fmt::format("set {} = {} on a data-plane socket", what, value), errno);
    }
    return {};
}

/// Zero means: leave the kernel's choice.
Result<void> set_unless_zero(int socket, int level, int name, std::int64_t value, std::string_view what) {
    return value == 0 ? Result<void>{} : set_option(socket, level, name, static_cast<int>(value), what);
}

} // namespace

Result<sockaddr_in> to_sockaddr(const std::string& address, std::uint16_t port) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(port);
    if (::inet_pton(AF_INET, address.c_str(), &made.sin_addr) != 1) {
        return fail(ErrorKind::kInput, fmt::format("\"{}\" is not an IPv4 address", address));
    }
    return made;
}

std::string to_string(const sockaddr_in& address) {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.sin_port));
}

Result<void> tune_tcp_socket(int socket, const TcpTuning& tuning) {
    if (!tuning.congestion.empty()) {
        // Refused to a process without the privilege for a restricted algorithm; see TcpTuning::congestion.
        ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, tuning.congestion.data(),
                     static_cast<socklen_t>(tuning.congestion.size()));
    }
    const auto keepalive = tuning.keepalive.count();
    return set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY")
        .and_then([&] {
            return set_unless_zero(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tuning.notsent_lowat_bytes,
                                   "TCP_NOTSENT_LOWAT");
        })
        .and_then([&] {
            return set_unless_zero(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, tuning.user_timeout.count(),
                                   "TCP_USER_TIMEOUT");
        })
        .and_then(
            [&] { return set_unless_zero(socket, SOL_SOCKET, SO_KEEPALIVE, keepalive > 0 ? 1 : 0, "SO_KEEPALIVE"); })
        .and_then([&] { return set_unless_zero(socket, IPPROTO_TCP, TCP_KEEPIDLE, keepalive, "TCP_KEEPIDLE"); })
        .and_then([&] { return set_unless_zero(socket, IPPROTO_TCP, TCP_KEEPINTVL, keepalive, "TCP_KEEPINTVL"); })
        .and_then(
            [&] { return set_unless_zero(socket, IPPROTO_TCP, TCP_KEEPCNT, keepalive > 0 ? 2 : 0, "TCP_KEEPCNT"); });
}

Result<UniqueFd> make_tcp_socket(const TcpTuning& tuning, const sockaddr_in& local) {
    UniqueFd made(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.valid()) {
        return fail_errno(ErrorKind::kHarness, "make a TCP socket", errno);
    }
    const int socket = made.get();
    Result<void> ready =
        set_unless_zero(socket, SOL_SOCKET, SO_SNDBUF, tuning.send_buffer_bytes, "SO_SNDBUF")
            .and_then([&] {
                return set_unless_zero(socket, SOL_SOCKET, SO_RCVBUF, tuning.receive_buffer_bytes, "SO_RCVBUF");
            })
            .and_then([&] { return set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); })
            .and_then([&] { return tune_tcp_socket(socket, tuning); });
    if (!ready) {
        return tl::unexpected<Error>(ready.error());
    }
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0) {
        return fail_errno(ErrorKind::kHarness, fmt::format("bind a data-plane socket to {}", to_string(local)), errno);
    }
    return made;
}

} // namespace railbreak::collective
