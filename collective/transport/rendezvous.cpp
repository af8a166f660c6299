#include "collective/transport/rendezvous.hpp"

#include <algorithm>
#include <cerrno>

#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/transport/epoll.hpp"
#include "collective/transport/tcp_socket.hpp"

namespace railbreak::collective {

namespace {

constexpr std::size_t kMinTokenBytes = 16;

/// A handshake step's failed system call, or the end of the stream (0).
tl::unexpected<Error> broken(int errno_value) {
    return errno_value == 0
               ? fail(ErrorKind::kOutcome, "the other end closed the connection during the handshake (another token?)")
               : fail_errno(ErrorKind::kOutcome, "shake hands", errno_value);
}

/// Nothing moves now, or the connection is not there yet.
bool not_yet(int errno_value) {
    return errno_value == EAGAIN || errno_value == EWOULDBLOCK || errno_value == EINTR || errno_value == ENOTCONN;
}

LinkSpec link_of_claim(const LinkClaim& claim, Direction direction) {
    return direction == Direction::kIncoming
               ? LinkSpec{direction, claim.source, claim.lane, claim.destination_port, claim.source_port}
               : LinkSpec{direction, claim.destination, claim.lane, claim.source_port, claim.destination_port};
}

} // namespace

Result<Rendezvous> Rendezvous::make(Options options) {
    if (options.token.size() < kMinTokenBytes) {
        return fail(ErrorKind::kInput, fmt::format("the run's token needs at least {} bytes", kMinTokenBytes));
    }
    Result<UniqueFd> epoll = make_epoll();
    if (!epoll) {
        return tl::unexpected<Error>(epoll.error());
    }
    return Rendezvous(std::move(options), std::move(*epoll));
}

Result<void> Rendezvous::add_listener(UniqueFd listener, Port port) {
    if (Result<void> watched = watch(epoll_.get(), listener.get(), EPOLLIN, {.ptr = nullptr}); !watched) {
        return watched;
    }
    listeners_.push_back({std::move(listener), port});
    return {};
}

Result<void> Rendezvous::watch_added(Unproven& added) {
    return watch(epoll_.get(), added.socket.get(), EPOLLIN | EPOLLOUT | EPOLLET, {.ptr = &added});
}

Result<void> Rendezvous::add_outgoing(const LinkSpec& link, UniqueFd socket, std::string address, Deadline deadline) {
    RB_CHECK(link.direction == Direction::kOutgoing, "an incoming link is accepted");
    Result<Handshake> handshake =
        Handshake::connecting(options_.token, {options_.self, link.peer, link.lane, link.own_port, link.peer_port});
    if (!handshake) {
        return tl::unexpected<Error>(handshake.error());
    }
    return watch_added(unproven_.emplace_back(Unproven{std::move(socket), std::move(*handshake), std::move(address),
                                                       Direction::kOutgoing, link.own_port, deadline}));
}

Result<void> Rendezvous::accept_all() {
    for (const Listener& listener : listeners_) {
        if (Result<void> accepted = accept_from(listener); !accepted) {
            return accepted;
        }
    }
    return {};
}

Result<void> Rendezvous::accept_from(const Listener& listener) {
    for (;;) {
        sockaddr_storage remote{};
        socklen_t size = sizeof remote;
        UniqueFd socket(::accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&remote), &size,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
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
        std::string address = remote.ss_family == AF_INET ? to_string(reinterpret_cast<const sockaddr_in&>(remote))
                                                          : std::string(kSharedMemoryAddress);
        Unproven& added = unproven_.emplace_back(Unproven{std::move(socket), std::move(*handshake), std::move(address),
                                                          Direction::kIncoming, listener.port,
                                                          Deadline::after(options_.handshake_budget)});
        if (Result<void> watched = watch_added(added); !watched) {
            return watched;
        }
    }
}

void Rendezvous::drop_expired() {
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

void Rendezvous::abandon_outgoing() {
    unproven_.remove_if([](const Unproven& one) { return one.direction == Direction::kOutgoing; });
}

Result<void> Rendezvous::await(const std::function<bool()>& complete, const Deliver& deliver, Deadline deadline,
                               const std::function<Error()>& overdue) {
    for (Unproven& early : unproven_) { // begun in an earlier call; nobody served it since
        if (early.direction == Direction::kIncoming) {
            early.deadline = Deadline::after(options_.handshake_budget);
        }
    }
    while (!complete()) {
        if (deadline.passed()) {
            return fail(overdue());
        }
        drop_expired();
        Deadline next = deadline;
        for (const Unproven& one : unproven_) {
            next = one.deadline.when() < next.when() ? one.deadline : next;
        }
        // One event a call: handling one may drop the connection that another would be about.
        epoll_event event{};
        const int count = ::epoll_wait(epoll_.get(), &event, 1, next.poll_timeout_ms());
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
        if (Result<void> advanced = advance(connection, deliver); !advanced) {
            return advanced;
        }
    }
    return {};
}

Result<Rendezvous::Step> Rendezvous::exchange(Unproven& connection) {
    for (;;) {
        bool moved = false;
        const int socket = connection.socket.get();
        if (const auto output = connection.handshake.output(); !output.empty()) {
            const ssize_t sent = ::send(socket, output.data(), output.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent < 0 && !not_yet(errno)) {
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
            if (got < 0 && !not_yet(errno)) {
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

Result<void> Rendezvous::advance(UnprovenList::iterator connection, const Deliver& deliver) {
    const bool incoming = connection->direction == Direction::kIncoming;
    Result<Step> step = exchange(*connection);
    // A peer that means one port and reaches another one would send over the wrong NIC.
    const bool lost = step && *step == Step::kProven && incoming &&
                      connection->handshake.claim().destination_port != connection->port;
    if (!step && !incoming) {
        return fail(connect_error(connection->handshake.claim(), connection->address, std::move(step.error())));
    }
    if (!step || lost) {
        unproven_.erase(connection);
        ++strangers_dropped_;
        return {};
    }
    if (*step == Step::kWaiting) {
        return {};
    }
    const LinkSpec link = link_of_claim(connection->handshake.claim(), connection->direction);
    // From here on the transport's own epoll instance watches the socket, and this one must not.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection->socket.get(), nullptr);
    Result<void> taken = deliver(link, std::move(connection->socket), std::move(connection->address));
    unproven_.erase(connection);
    // A proven peer that brings the same link twice is confused; the first one stays, and its own end sees the close.
    return incoming ? Result<void>{} : std::move(taken);
}

Error Rendezvous::connect_error(const LinkClaim& claim, std::string_view address, Error&& cause) const {
    return std::move(cause)
        .during(fmt::format("rank {} connecting to rank {} on lane {} ({})", options_.self, claim.destination,
                            claim.lane, address))
        .with("rank", std::to_string(options_.self))
        .with("peer", std::to_string(claim.destination))
        .with("lane", std::to_string(claim.lane))
        .with("address", std::string(address));
}

} // namespace railbreak::collective
