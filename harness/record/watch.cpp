#include "harness/record/watch.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fmt/format.h>

namespace railbreak::record {

Result<DatabaseWatch> DatabaseWatch::open(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path file = std::filesystem::canonical(path, error);
    if (error) {
        return fail_errno(ErrorKind::kInput, fmt::format("watch {}", path.string()), error.value());
    }
    UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify.valid()) {
        return fail_errno(ErrorKind::kHarness, "watch files", errno);
    }
    // The folder, because the log is deleted and made anew under another inode.
    if (::inotify_add_watch(inotify.get(), file.parent_path().c_str(), IN_MODIFY | IN_CREATE) < 0) {
        return fail_errno(ErrorKind::kHarness, fmt::format("watch {}", file.parent_path().string()), errno);
    }
    return DatabaseWatch(std::move(inotify), file.filename().string());
}

bool DatabaseWatch::take_written() {
    bool written = false;
    alignas(inotify_event) std::array<char, 4096> buffer{};
    ssize_t length = 0;
    while ((length = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0) {
        for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(length);) {
            inotify_event event{};
            std::memcpy(&event, &buffer.at(at), sizeof(event));
            const std::string_view name = event.len > 0 ? &buffer.at(at + sizeof(event)) : "";
            written = written || (event.mask & IN_Q_OVERFLOW) != 0 || name == name_ || name == name_ + "-wal";
            at += sizeof(event) + event.len;
        }
    }
    return written;
}

void DatabaseWatch::wait(Deadline deadline) {
    while (!take_written() && !deadline.passed()) {
        pollfd told{inotify_.get(), POLLIN, 0};
        ::poll(&told, 1, deadline.poll_timeout_ms());
    }
}

} // namespace railbreak::record
