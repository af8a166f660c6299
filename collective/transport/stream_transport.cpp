#include "collective/transport/stream_transport.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>

#include "base/check.hpp"

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

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kOutgoing: return "to";
    case Direction::kIncoming: return "from";
    }
    return "";
}

Result<UniqueFd> StreamTransport::make_epoll() {
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) {
        return fail_errno(ErrorKind::kHarness, "create an epoll instance", errno);
    }
    return epoll;
}

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
        return fail(Error(ErrorKind::kHarness, fmt::format("rank {} has a link {} rank {} on lane {} already", self_,
                                                           to_string(spec.direction), spec.peer, spec.lane)));
    }
    // The end of the stream is asked for on every link, on those that only send too.
    epoll_event event{};
    event.events = (spec.direction == Direction::kOutgoing ? EPOLLOUT : EPOLLIN) | EPOLLRDHUP | EPOLLET;
    event.data.u32 = static_cast<std::uint32_t>(index);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
        return fail_errno(ErrorKind::kHarness, "watch a link's socket", errno);
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

Error StreamTransport::link_error(const LinkState& link, std::string_view what, int errno_value) const {
    const char* name = ::strerrorname_np(errno_value);
    return Error(ErrorKind::kOutcome,
                 fmt::format("rank {} cannot {} rank {} on lane {} ({}): {}", self_, what, link.spec.peer,
                             link.spec.lane, link.address,
                             errno_value == 0 ? "the peer closed the connection" : ::strerrordesc_np(errno_value)))
        .with("rank", std::to_string(self_))
        .with("peer", std::to_string(link.spec.peer))
        .with("lane", std::to_string(link.spec.lane))
        .with("address", link.address)
        .with("errno", errno_value == 0 ? "EOF" : (name != nullptr ? name : std::to_string(errno_value)));
}

template <class Call>
Result<std::size_t> StreamTransport::transfer(LinkState& link, std::size_t wanted, std::string_view what, Call call) {
    if (!link.ready || wanted == 0) {
        return 0;
    }
    if (!link.socket.valid()) {
        return fail(link_error(link, what, ECONNABORTED));
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
        return fail(link_error(link, what, errno));
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
        return fail(link_error(link, "receive from", 0));
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

std::size_t StreamTransport::readable_bytes(LinkIndex index) const {
    int count = 0;
    if (::ioctl(at(index).socket.get(), FIONREAD, &count) != 0 || count < 0) {
        return 0;
    }
    return static_cast<std::size_t>(count);
}

Error StreamTransport::closed_error(LinkIndex index) const {
    const LinkState& link = at(index);
    return link_error(link, link.spec.direction == Direction::kOutgoing ? "send to" : "receive from",
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
