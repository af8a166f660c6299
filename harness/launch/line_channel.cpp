#include "harness/launch/line_channel.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace railbreak::launch {

namespace {

/// Pieces of 64 KiB that one call of receive() takes at most.
constexpr int kReadsPerCall = 16;

void make_non_blocking(int fd) {
    if (fd >= 0) {
        ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
}

} // namespace

LineChannel::LineChannel(UniqueFd read_fd, UniqueFd write_fd)
    : read_fd_(std::move(read_fd)), write_fd_(std::move(write_fd)) {
    make_non_blocking(read_fd_.get());
    make_non_blocking(write_fd_.get());
}

Result<void> LineChannel::send(std::string_view line) {
    unsent_.append(line);
    unsent_.push_back('\n');
    return flush();
}

Result<void> LineChannel::flush() {
    while (!unsent_.empty()) {
        if (!write_fd_.valid()) {
            return fail(ErrorKind::kHarness, "the control channel is closed");
        }
        const ssize_t written = ::write(write_fd_.get(), unsent_.data(), unsent_.size());
        if (written >= 0) {
            unsent_.erase(0, static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            return {};
        } else if (errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "write to the control channel", errno);
        }
    }
    return {};
}

Result<std::vector<std::string>> LineChannel::receive() {
    std::vector<std::string> lines;
    std::array<char, 65536> buffer; // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
    // A peer that writes faster than this reads must not keep the caller here for ever.
    for (int reads = 0; reads < kReadsPerCall && !at_end_; ++reads) {
        const ssize_t count = ::read(read_fd_.get(), buffer.data(), buffer.size());
        if (count == 0) {
            at_end_ = true;
        } else if (count > 0) {
            std::string_view rest(buffer.data(), static_cast<std::size_t>(count));
            for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
                partial_.append(rest.substr(0, end));
                lines.push_back(std::exchange(partial_, {}));
                rest.remove_prefix(end + 1);
            }
            partial_.append(rest);
            if (partial_.size() > kMaxLineBytes) {
                return fail(ErrorKind::kHarness, fmt::format("a control line is longer than {} bytes", kMaxLineBytes));
            }
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "read from the control channel", errno);
        }
    }
    return lines;
}

} // namespace railbreak::launch
