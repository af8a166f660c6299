#include "collective/transport/shm_transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.hpp"
#include "collective/transport/epoll.hpp"
#include "collective/transport/link_error.hpp"

namespace railbreak::collective {

namespace {

/// Stands for the timer among the indices of links.
constexpr std::uint32_t kTimer = UINT32_MAX;

void ring_doorbell(int socket) {
    // A full socket means that many doorbells are unheard; a closed one is reported by epoll. Nothing to do for either.
    const std::byte byte{1};
    static_cast<void>(::send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

/// Room for one descriptor beside a message, aligned as the kernel wants it.
union DescriptorBuffer {
    cmsghdr aligned;
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

Result<void> send_descriptor(int socket, int descriptor) {
    std::byte byte{0};
    iovec data{&byte, 1};
    DescriptorBuffer control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        return fail_errno(ErrorKind::kHarness, "hand over a ring in shared memory", errno);
    }
    return {};
}

struct Message {
    ssize_t bytes = 0; ///< as from recvmsg()
    UniqueFd descriptor;
};

/// Takes what there is on a socket: doorbells, and a descriptor if one came along.
Message receive_message(int socket) {
    std::array<std::byte, 64> bytes{};
    iovec data{bytes.data(), bytes.size()};
    DescriptorBuffer control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    Message taken;
    do {
        taken.bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (taken.bytes < 0 && errno == EINTR);
    const cmsghdr* header = taken.bytes < 0 ? nullptr : CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
        taken.descriptor.reset(descriptor);
    }
    return taken;
}

} // namespace

Result<std::unique_ptr<ShmTransport>> ShmTransport::make(Rank self, BitRate rate) {
    Result<UniqueFd> epoll = make_epoll();
    if (!epoll) {
        return tl::unexpected<Error>(std::move(epoll.error()));
    }
    UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.valid()) {
        return fail_errno(ErrorKind::kHarness, "make a timer", errno);
    }
    if (Result<void> watched = watch(epoll->get(), timer.get(), EPOLLIN, {.u32 = kTimer}); !watched) {
        return tl::unexpected<Error>(std::move(watched.error()));
    }
    return std::unique_ptr<ShmTransport>(new ShmTransport(self, rate, std::move(*epoll), std::move(timer)));
}

Result<LinkIndex> ShmTransport::add_link(const LinkSpec& spec, UniqueFd socket) {
    const auto index = static_cast<LinkIndex>(links_.size());
    if (by_spec_.contains(spec)) {
        return fail(ErrorKind::kHarness, fmt::format("rank {} has a link {} already", self_, to_string(spec)));
    }
    LinkState state{.spec = spec, .socket = std::move(socket)};
    if (spec.direction == Direction::kOutgoing) {
        Result<ShmSegment::Made> made = ShmSegment::create();
        if (!made) {
            return tl::unexpected<Error>(std::move(made.error()));
        }
        if (Result<void> sent = send_descriptor(state.socket.get(), made->descriptor.get()); !sent) {
            return tl::unexpected<Error>(std::move(sent.error()));
        }
        state.writer = RingWriter(std::move(made->segment));
    }
    const std::uint32_t events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    Result<void> watched = watch(epoll_.get(), state.socket.get(), events, {.u32 = static_cast<std::uint32_t>(index)});
    if (!watched) {
        return tl::unexpected<Error>(std::move(watched.error()));
    }
    links_.push_back(std::move(state));
    by_spec_.emplace(spec, index);
    return index;
}

std::optional<LinkIndex> ShmTransport::find_link(const LinkSpec& link) const {
    const auto found = by_spec_.find(link);
    return found == by_spec_.end() ? std::nullopt : std::optional(found->second);
}

std::string ShmTransport::describe(LinkIndex index) const {
    const LinkSpec& spec = at(index).spec;
    return fmt::format("rank {} {} rank {}, lane {} ({})", self_, to_string(spec.direction), spec.peer, spec.lane,
                       kSharedMemoryAddress);
}

Error ShmTransport::error_of(const LinkState& link, int errno_value) const {
    return link_error(self_, link.spec, kSharedMemoryAddress, verb_of(link.spec.direction), errno_value);
}

Result<std::size_t> ShmTransport::send_some(LinkIndex index, std::span<const std::byte> head,
                                            std::span<const std::byte> body) {
    LinkState& link = at(index);
    RB_CHECK(link.spec.direction == Direction::kOutgoing, "sending on a link that only receives");
    if (!link.socket.valid() || link.closed) {
        return fail(error_of(link, link.closed ? EPIPE : ECONNABORTED));
    }
    const Result<std::size_t> space = link.writer.space();
    if (!space || *space == 0) {
        link.blocked = true;
        return space; // the pacer counts as waited for only by data that could move
    }
    const Nanoseconds now = send_pacer_.limited() ? monotonic_now() : Nanoseconds::zero();
    const std::size_t sent = link.writer.write(head, body, std::min(*space, send_pacer_.allowance(now)));
    if (sent == 0) {
        return 0;
    }
    send_pacer_.moved(sent, now);
    if (link.writer.reader_sleeps()) {
        ring_doorbell(link.socket.get());
    }
    return sent;
}

Result<std::size_t> ShmTransport::receive_some(LinkIndex index, std::span<std::byte> head, std::span<std::byte> body) {
    LinkState& link = at(index);
    RB_CHECK(link.spec.direction == Direction::kIncoming, "receiving on a link that only sends");
    if (!link.socket.valid()) {
        return fail(error_of(link, ECONNABORTED));
    }
    const Result<std::size_t> available = link.reader.valid() ? link.reader.available() : 0;
    if (available && *available == 0 && link.closed) {
        return fail(error_of(link, 0));
    }
    if (!available || *available == 0) {
        link.blocked = true;
        return available;
    }
    const Nanoseconds now = receive_pacer_.limited() ? monotonic_now() : Nanoseconds::zero();
    const std::size_t got = link.reader.read(head, body, std::min(*available, receive_pacer_.allowance(now)));
    if (got == 0) {
        return 0;
    }
    receive_pacer_.moved(got, now);
    if (link.reader.writer_sleeps()) {
        ring_doorbell(link.socket.get());
    }
    return got;
}

Result<bool> ShmTransport::set_timer() {
    std::optional<Nanoseconds> wake = send_pacer_.wake_at();
    if (const auto other = receive_pacer_.wake_at(); other && (!wake || *other < *wake)) {
        wake = other;
    }
    if (!wake) {
        return true;
    }
    if (*wake <= monotonic_now()) {
        return false;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*wake);
    itimerspec when{};
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (*wake - seconds).count();
    if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) != 0) {
        return fail_errno(ErrorKind::kHarness, "set a timer", errno);
    }
    return true;
}

Result<bool> ShmTransport::prepare_wait() {
    bool all_sleep = true;
    for (LinkState& link : links_) {
        if (!link.blocked) {
            continue;
        }
        const bool outgoing = link.spec.direction == Direction::kOutgoing;
        // A ring that has not been handed over yet announces itself on the socket.
        const bool sleeps =
            outgoing ? link.writer.prepare_sleep() : !link.reader.valid() || link.reader.prepare_sleep();
        link.blocked = sleeps;
        all_sleep = all_sleep && sleeps;
    }
    Result<bool> timed = set_timer();
    return timed ? Result<bool>(all_sleep && *timed) : timed;
}

Result<WaitResult> ShmTransport::take_events(int timeout_ms) {
    std::array<epoll_event, 64> events{};
    int count = 0;
    do {
        count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return fail_errno(ErrorKind::kHarness, "wait for the links inside the host", errno);
    }
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        if (event.data.u32 != kTimer) {
            take_messages(static_cast<LinkIndex>(event.data.u32));
            continue;
        }
        std::uint64_t expirations = 0;
        static_cast<void>(!::read(timer_.get(), &expirations, sizeof expirations));
    }
    return count == 0 ? WaitResult::kTimedOut : WaitResult::kReady;
}

void ShmTransport::take_messages(LinkIndex index) {
    LinkState& link = at(index);
    while (link.socket.valid() && !link.closed) {
        const Message message = receive_message(link.socket.get());
        if (message.descriptor.valid() && link.spec.direction == Direction::kIncoming && !link.reader.valid()) {
            if (Result<ShmSegment> segment = ShmSegment::open(message.descriptor.get()); segment) {
                link.reader = RingReader(std::move(*segment));
                continue;
            }
        } else if (message.bytes > 0) {
            continue;
        }
        if (message.bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        link.closed = true;
        closed_.push_back(index);
    }
}

Result<WaitResult> ShmTransport::wait(Deadline deadline) {
    const Result<bool> sleeps = prepare_wait();
    if (!sleeps) {
        return tl::unexpected<Error>(sleeps.error());
    }
    Result<WaitResult> taken = take_events(*sleeps ? deadline.poll_timeout_ms() : 0);
    return taken && !*sleeps ? WaitResult::kReady : std::move(taken);
}

Result<void> ShmTransport::collect() {
    return take_events(0).map([](WaitResult) {});
}

std::size_t ShmTransport::readable_bytes(LinkIndex index) const {
    const LinkState& link = at(index);
    return link.reader.valid() ? link.reader.available().value_or(0) : 0;
}

Error ShmTransport::closed_error(LinkIndex index) const {
    const LinkState& link = at(index);
    return error_of(link, link.socket.valid() ? 0 : ECONNABORTED);
}

void ShmTransport::abort() {
    for (LinkState& link : links_) {
        link.socket.reset();
    }
}

} // namespace railbreak::collective
