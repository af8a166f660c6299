#include "collective/transport/tcp_transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

constexpr std::size_t kMinTokenBytes = 16;
constexpr int kBacklog = 1024;

Result<void> watch(int epoll, int socket, std::uint32_t events, void* data) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = data;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) != 0) {
        return fail_errno(ErrorKind::kHarness, "watch a connection", errno);
    }
    return {};
}

Result<std::uint16_t> bound_port(int socket) {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
        return fail_errno(ErrorKind::kHarness, "read the port of the data-plane socket", errno);
    }
    return ntohs(bound.sin_port);
}

/// A handshake step's failed system call, or the end of the stream (0).
tl::unexpected<Error> broken(int errno_value) {
    return errno_value == 0
               ? fail(ErrorKind::kOutcome, "the other end closed the connection during the handshake (another token?)")
               : fail_errno(ErrorKind::kOutcome, "shake hands", errno_value);
}

} // namespace

TcpTransport::TcpTransport(TcpOptions options, UniqueFd epoll, UniqueFd handshakes, UniqueFd listener,
                           std::uint16_t port)
    : StreamTransport(options.self, std::move(epoll)), options_(std::move(options)), listener_(std::move(listener)),
      handshakes_(std::move(handshakes)), port_(port) {}

Result<std::unique_ptr<TcpTransport>> TcpTransport::listen(TcpOptions options) {
    if (options.token.size() < kMinTokenBytes) {
        return fail(ErrorKind::kInput, fmt::format("the run's token needs at least {} bytes", kMinTokenBytes));
    }
    Result<sockaddr_in> local = to_sockaddr(options.address, options.port);
    if (!local) {
        return tl::unexpected<Error>(local.error());
    }
    Result<UniqueFd> listener = make_tcp_socket(options.tuning, *local);
    if (!listener) {
        return tl::unexpected<Error>(listener.error());
    }
    if (::listen(listener->get(), kBacklog) != 0) {
        return fail_errno(ErrorKind::kHarness, fmt::format("listen on {}", options.address), errno);
    }
    Result<std::uint16_t> port = bound_port(listener->get());
    if (!port) {
        return tl::unexpected<Error>(port.error());
    }
    Result<UniqueFd> epoll = make_epoll();
    Result<UniqueFd> handshakes = make_epoll();
    if (!epoll || !handshakes) {
        return tl::unexpected<Error>(!epoll ? epoll.error() : handshakes.error());
    }
    if (Result<void> watched = watch(handshakes->get(), listener->get(), EPOLLIN, nullptr); !watched) {
        return tl::unexpected<Error>(watched.error());
    }
    return std::unique_ptr<TcpTransport>(
        new TcpTransport(std::move(options), std::move(*epoll), std::move(*handshakes), std::move(*listener), *port));
}

Result<void> TcpTransport::connect(const std::map<Rank, PeerAddress>& peers, std::span<const LinkSpec> links,
                                   Deadline deadline) {
    for (Unproven& early : unproven_) { // begun in an earlier call; nobody served it since
        early.deadline = Deadline::after(options_.handshake_budget);
    }
    for (const LinkSpec& link : links) {
        if (link.direction == Direction::kIncoming || find_link(link).has_value()) {
            continue;
        }
        const auto peer = peers.find(link.peer);
        RB_CHECK(peer != peers.end(), "an outgoing link's peer has no address");
        if (Result<void> begun = begin_connect(link, peer->second, deadline); !begun) {
            abandon_outgoing();
            return begun;
        }
    }
    Result<void> complete = await_links(links, deadline);
    if (!complete) {
        abandon_outgoing();
    }
    return complete;
}

void TcpTransport::abandon_outgoing() {
    unproven_.remove_if([](const Unproven& one) { return one.direction == Direction::kOutgoing; });
}

Result<void> TcpTransport::begin_connect(const LinkSpec& link, const PeerAddress& peer, Deadline deadline) {
    Result<sockaddr_in> remote = to_sockaddr(peer.address, peer.port);
    Result<sockaddr_in> local = to_sockaddr(options_.address, 0);
    if (!remote || !local) {
        return tl::unexpected<Error>(!remote ? remote.error() : local.error());
    }
    Result<Handshake> handshake = Handshake::connecting(options_.token, {options_.self, link.peer, link.lane});
    if (!handshake) {
        return tl::unexpected<Error>(handshake.error());
    }
    Result<UniqueFd> socket = make_tcp_socket(options_.tuning, *local);
    if (!socket) {
        return tl::unexpected<Error>(socket.error());
    }
    Unproven& added = unproven_.emplace_back(
        Unproven{std::move(*socket), std::move(*handshake), *remote, Direction::kOutgoing, deadline});
    if (::connect(added.socket.get(), reinterpret_cast<const sockaddr*>(&*remote), sizeof *remote) != 0 &&
        errno != EINPROGRESS) {
        return fail(connect_error(added, std::move(fail_errno(ErrorKind::kOutcome, "connect", errno).value())));
    }
    return watch(handshakes_.get(), added.socket.get(), EPOLLIN | EPOLLOUT | EPOLLET, &added);
}

Result<void> TcpTransport::accept_all() {
    for (;;) {
        sockaddr_in remote{};
        socklen_t size = sizeof remote;
        UniqueFd socket(
            ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&remote), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.valid()) {
            // Errors of the connection that just arrived are a stranger's problem, not ours.
            const bool ours = errno == EBADF || errno == EINVAL || errno == ENFILE || errno == EMFILE ||
                              errno == ENOMEM || errno == ENOBUFS;
            if (ours) {
                return fail_errno(ErrorKind::kHarness, "accept a data-plane connection", errno);
            }
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return {};
            }
            continue;
        }
        Result<Handshake> handshake = Handshake::accepting(options_.token, options_.self);
        if (!handshake) {
            return tl::unexpected<Error>(handshake.error());
        }
        if (!tune_tcp_socket(socket.get(), options_.tuning)) {
            continue; // it broke already
        }
        Unproven& added =
            unproven_.emplace_back(Unproven{std::move(socket), std::move(*handshake), remote, Direction::kIncoming,
                                            Deadline::after(options_.handshake_budget)});
        if (Result<void> watched = watch(handshakes_.get(), added.socket.get(), EPOLLIN | EPOLLOUT | EPOLLET, &added);
            !watched) {
            return watched;
        }
    }
}

void TcpTransport::drop_expired() {
    auto incoming = static_cast<std::size_t>(std::count_if(
        unproven_.begin(), unproven_.end(), [](const Unproven& one) { return one.direction == Direction::kIncoming; }));
    for (auto one = unproven_.begin(); one != unproven_.end();) {
        const bool drop =
            one->direction == Direction::kIncoming && (one->deadline.passed() || incoming > options_.max_unproven);
        if (drop) {
            one = unproven_.erase(one);
            --incoming;
            ++strangers_dropped_;
        } else {
            ++one;
        }
    }
}

Result<void> TcpTransport::await_links(std::span<const LinkSpec> links, Deadline deadline) {
    const auto complete = [&] {
        return std::all_of(links.begin(), links.end(), [&](const LinkSpec& l) { return find_link(l).has_value(); });
    };
    while (!complete()) {
        if (deadline.passed()) {
            return fail(missing_error(links));
        }
        drop_expired();
        Deadline next = deadline;
        for (const Unproven& one : unproven_) {
            next = one.deadline.when() < next.when() ? one.deadline : next;
        }
        // One event a call: handling one may drop the connection that another would be about.
        epoll_event event{};
        const int count = ::epoll_wait(handshakes_.get(), &event, 1, next.poll_timeout_ms());
        if (count < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "wait for data-plane connections", errno);
        }
        if (count <= 0) {
            continue;
        }
        if (event.data.ptr == nullptr) {
            if (Result<void> accepted = accept_all(); !accepted) {
                return accepted;
            }
            continue;
        }
        const auto connection = std::find_if(unproven_.begin(), unproven_.end(),
                                             [&](const Unproven& one) { return &one == event.data.ptr; });
        RB_CHECK(connection != unproven_.end(), "an event for a connection that is gone");
        if (Result<void> advanced = advance(connection); !advanced) {
            return advanced;
        }
    }
    return {};
}

Result<TcpTransport::Step> TcpTransport::exchange(Unproven& connection) {
    for (;;) {
        bool moved = false;
        const int socket = connection.socket.get();
        if (const auto output = connection.handshake.output(); !output.empty()) {
            const ssize_t sent = ::send(socket, output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOTCONN) {
                return broken(errno);
            }
            connection.handshake.wrote(sent > 0 ? static_cast<std::size_t>(sent) : 0);
            moved = sent > 0;
        }
        if (const auto input = connection.handshake.input(); !input.empty()) {
            const ssize_t got = ::recv(socket, input.data(), input.size(), MSG_DONTWAIT);
            if (got == 0) {
                return broken(0);
            }
            if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOTCONN) {
                return broken(errno);
            }
            if (got > 0) {
                if (Result<void> read = connection.handshake.read(static_cast<std::size_t>(got)); !read) {
                    return tl::unexpected<Error>(read.error());
                }
                moved = true;
            }
        }
        if (connection.handshake.done()) {
            return Step::kProven;
        }
        if (!moved) {
            return Step::kWaiting;
        }
    }
}

Result<void> TcpTransport::advance(UnprovenList::iterator connection) {
    Result<Step> step = exchange(*connection);
    if (!step) {
        if (connection->direction == Direction::kOutgoing) {
            return fail(connect_error(*connection, std::move(step.error())));
        }
        unproven_.erase(connection);
        ++strangers_dropped_;
        return {};
    }
    if (*step == Step::kWaiting) {
        return {};
    }
    const LinkClaim& claim = connection->handshake.claim();
    const bool incoming = connection->direction == Direction::kIncoming;
    const LinkSpec link{connection->direction, incoming ? claim.source : claim.destination, claim.lane};
    // From here on the transport's own epoll instance watches the socket, and this one must not.
    ::epoll_ctl(handshakes_.get(), EPOLL_CTL_DEL, connection->socket.get(), nullptr);
    Result<LinkIndex> added = add_link(link, std::move(connection->socket), to_string(connection->address));
    unproven_.erase(connection);
    // A proven peer that brings the same link twice is confused; the first one stays, and its own end sees the close.
    return added || incoming ? Result<void>{} : tl::unexpected<Error>(added.error());
}

Error TcpTransport::connect_error(const Unproven& connection, Error&& cause) const {
    const LinkClaim& claim = connection.handshake.claim();
    return std::move(cause)
        .during(fmt::format("rank {} connecting to rank {} on lane {} ({})", options_.self, claim.destination,
                            claim.lane, to_string(connection.address)))
        .with("rank", std::to_string(options_.self))
        .with("peer", std::to_string(claim.destination))
        .with("lane", std::to_string(claim.lane))
        .with("address", to_string(connection.address));
}

Error TcpTransport::missing_error(std::span<const LinkSpec> links) const {
    std::string missing;
    for (const LinkSpec& link : links) {
        if (!find_link(link).has_value()) {
            missing += fmt::format("{}{} rank {} on lane {}", missing.empty() ? "" : ", ", to_string(link.direction),
                                   link.peer, link.lane);
        }
    }
    return Error(ErrorKind::kOutcome, fmt::format("rank {} ({}) has not connected in time: missing the links {}",
                                                  options_.self, options_.address, missing))
        .with("rank", std::to_string(options_.self))
        .with("address", options_.address)
        .with("strangers_dropped", std::to_string(strangers_dropped_));
}

} // namespace railbreak::collective
