#include "injectors/guard_channel.hpp"

#include <cerrno>

#include <poll.h>
#include <sys/socket.h>

#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

Result<void> wait_for(int fd, short events, Deadline deadline, std::string_view what) {
    for (;;) {
        pollfd waiter{fd, events, 0};
        const int ready = poll(&waiter, 1, deadline.poll_timeout_ms());
        if (ready > 0) {
            return {};
        }
        if (ready < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, what, errno);
        }
        if (deadline.passed()) {
            return fail_errno(ErrorKind::kHarness, what, ETIMEDOUT);
        }
    }
}

} // namespace

Result<void> GuardChannel::send(std::string_view payload, Deadline deadline) {
    const std::string frame = make_frame(payload);
    std::string_view rest = frame;
    while (!rest.empty()) {
        const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent >= 0) {
            rest.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN) {
            if (auto ready = wait_for(fd_.get(), POLLOUT, deadline, "write to the guard's socket"); !ready) {
                return ready;
            }
        } else if (errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "write to the guard's socket", errno);
        }
    }
    return {};
}

Result<bool> GuardChannel::fill() {
    char chunk[1 << 14];
    for (;;) {
        const ssize_t got = recv(fd_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
        if (got > 0) {
            buffer_.append(chunk, static_cast<std::size_t>(got));
        } else if (got == 0 || errno == ECONNRESET) {
            return false;
        } else if (errno == EAGAIN) {
            return true;
        } else if (errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "read the guard's socket", errno);
        }
    }
}

Result<std::optional<std::string>> GuardChannel::take() {
    const FrameView frame = read_frame(buffer_);
    switch (frame.status) {
    case FrameStatus::kWhole: {
        std::string payload(frame.payload);
        buffer_.erase(0, frame.size);
        return std::optional(std::move(payload));
    }
    case FrameStatus::kIncomplete: return std::optional<std::string>();
    case FrameStatus::kCorrupt: break;
    }
    return fail(ErrorKind::kHarness, "what came over the guard's socket is no message");
}

Result<std::optional<std::string>> GuardChannel::receive(Deadline deadline) {
    for (;;) {
        auto frame = take();
        if (!frame || *frame) {
            return frame;
        }
        if (auto ready = wait_for(fd_.get(), POLLIN, deadline, "hear from the guard"); !ready) {
            return tl::unexpected(ready.error());
        }
        const auto open = fill();
        if (!open) {
            return tl::unexpected(open.error());
        }
        if (!*open) {
            return take(); // what came right before the end, or nothing
        }
    }
}

} // namespace railbreak::injectors
