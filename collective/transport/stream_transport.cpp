#include "collective/transport/stream_transport.hpp"

#include <array>
#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/transport/epoll.hpp"
#include "collective/transport/link_error.hpp"

namespace railbreak::collective {

namespace {

iovec to_iovec(std::span<const std::byte> bytes) {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// SO_ERROR of a socket; reading it clears it.
int pending_error(int socket) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

} // namespace

Result<std::unique_ptr<StreamTransport>> StreamTransport::make(Rank self) {
    Result<UniqueFd> epoll = make_epoll();
    if (!epoll) {
        return tl::unexpected<Error>(epoll.error());
    }
    return std::unique_ptr<StreamTransport>(new StreamTransport(self, std::move(*epoll)));
}

Result<LinkIndex> StreamTransport::add_link(const LinkSpec& spec, UniqueFd socket, std::string address) {
    const auto index = static_cast<LinkIndex>(links_.size());
    if (by_spec_.contains(spec)) {
        return fail(ErrorKind::kHarness, fmt::format("rank {} has a link {} already", self_, to_string(spec)));
    }
    // The end of the stream is asked for on every link, on those that only send too.
    const std::uint32_t events = (spec.direction == Direction::kOutgoing ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP | EPOLLET;
    if (Result<void> watched = watch(epoll_.get(), socket.get(), events, {.u32 = static_cast<std::uint32_t>(index)});
        !watched) {
        return tl::unexpected<Error>(std::move(watched.error()));
    }
    links_.push_back(LinkState{spec, std::move(socket), std::move(address)});
    by_spec_.emplace(spec, index);
    return index;
}

std::optional<LinkIndex> StreamTransport::find_link(const LinkSpec& link) const {
    const auto found = by_spec_.find(link);
    return found == by_spec_.end() ? std::nullopt : std::optional(found->second);
}

std::string StreamTransport::describe(LinkIndex index) const {
    const LinkState& link = at(index);
    return fmt::format("rank {} {} rank {}, lane {} ({})", self_, to_string(link.spec.direction), link.spec.peer,
                       link.spec.lane, link.address);
}

template <class Call>
Result<std::size_t> StreamTransport::transfer(LinkState& link, std::size_t wanted, std::string_view what, Call call) {
    if (!link.ready || wanted == 0) {
        return 0;
    }
    if (!link.socket.valid()) {
        return fail(link_error(self_, link.spec, link.address, what, ECONNABORTED));
    }
    ssize_t moved = 0;
    do {
        moved = call(link.socket.get());
    } while (moved < 0 && errno == EINTR);
    if (moved < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            link.ready = false;
            return 0;
        }
        return fail(link_error(self_, link.spec, link.address, what, errno));
    }
    // Less than wanted means that the socket has no more now, and that an event will follow (see epoll(7)); but the
    // event for a closed end has been seen already and does not come again.
    if (static_cast<std::size_t>(moved) < wanted && !link.closed) {
        link.ready = false;
    }
    return static_cast<std::size_t>(moved);
}

Result<std::size_t> StreamTransport::send_some(LinkIndex index, std::span<const std::byte> head,
                                               std::span<const std::byte> body) {
    LinkState& link = at(index);
    RB_CHECK(link.spec.direction == Direction::kOutgoing, "sending on a link that only receives");
    return transfer(link, head.size() + body.size(), "send to", [&](int socket) {
        std::array<iovec, 2> parts{to_iovec(head), to_iovec(body)};
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
}

Result<std::size_t> StreamTransport::receive_some(LinkIndex index, std::span<std::byte> head,
                                                  std::span<std::byte> body) {
    LinkState& link = at(index);
    RB_CHECK(link.spec.direction == Direction::kIncoming, "receiving on a link that only sends");
    bool ended = false;
    auto moved = transfer(link, head.size() + body.size(), "receive from", [&](int socket) {
        std::array<iovec, 2> parts{to_iovec(head), to_iovec(body)};
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = parts.size();
        const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT);
        ended = count == 0;
        return count;
    });
    if (moved && ended) {
        return fail(link_error(self_, link.spec, link.address, "receive from", 0));
    }
    return moved;
}

Result<WaitResult> StreamTransport::wait(Deadline deadline) {
    std::array<epoll_event, 64> events{};
    int count = 0;
    do {
        count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), deadline.poll_timeout_ms());
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return fail_errno(ErrorKind::kHarness, "wait for the links", errno);
    }
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        LinkState& link = at(static_cast<LinkIndex>(event.data.u32));
        link.ready = true;
        if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 && !link.closed) {
            link.closed = true;
            closed_.push_back(static_cast<LinkIndex>(event.data.u32));
        }
    }
    return count == 0 ? WaitResult::kTimedOut : WaitResult::kReady;
}

std::vector<StalledPath> StreamTransport::take_stalled() {
    std::vector<StalledPath> stalled;
    for (std::size_t i = 0; i < links_.size(); ++i) {
        LinkState& link = links_[i];
        tcp_info info{};
        socklen_t size = sizeof info;
        if (link.spec.direction != Direction::kOutgoing || !link.socket.valid() ||
            ::getsockopt(link.socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
            continue; // no TCP at all, perhaps
        }
        const bool stands = info.tcpi_retransmits > 0 && info.tcpi_unacked > 0;
        if (stands && !link.stalled) {
            stalled.push_back({static_cast<LinkIndex>(i), info.tcpi_retransmits, info.tcpi_unacked});
        }
        link.stalled = stands;
    }
    return stalled;
}

std::size_t StreamTransport::readable_bytes(LinkIndex index) const {
    int count = 0;
    if (::ioctl(at(index).socket.get(), FIONREAD, &count) != 0 || count < 0) {
        return 0;
    }
    return static_cast<std::size_t>(count);
}

Error StreamTransport::closed_error(LinkIndex index) const {
    const LinkState& link = at(index);
    return link_error(self_, link.spec, link.address, verb_of(link.spec.direction),
                      link.socket.valid() ? pending_error(link.socket.get()) : ECONNABORTED);
}

void StreamTransport::abort() {
    for (LinkState& link : links_) {
        if (link.socket.valid()) {
            // With a linger time of zero TCP sends a reset instead of waiting for queued data to drain.
            const linger reset{1, 0};
            ::setsockopt(link.socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
            link.socket.reset();
        }
        link.ready = true;
    }
}

} // namespace railbreak::collective
