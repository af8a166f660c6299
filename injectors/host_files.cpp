#include "injectors/host_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace railbreak::injectors::host_files {

namespace {

constexpr int kReadAgainMs = 5; ///< for files that give no notice of a change

} // namespace

Result<void> make_folder(const std::string& path) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
            return fail_errno(ErrorKind::kHarness, "make the folder " + part, errno);
        }
        if (end == std::string::npos) {
            return {};
        }
    }
}

Result<UniqueFd> create_file(const std::string& folder) {
    UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
    if (!fd.valid() && errno == EOPNOTSUPP) {
        // The layers of a container before Linux 6.3, and network file systems: a name that nobody looks for.
        std::string name = folder + "/.unpublished-XXXXXX";
        fd.reset(mkostemp(name.data(), O_APPEND | O_CLOEXEC));
    }
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "create a file in " + folder, errno);
    }
    return fd;
}

Result<void> publish_file(int fd, const std::string& path) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    std::array<char, PATH_MAX> former{};
    struct stat file {};
    const ssize_t size = readlink(link.c_str(), former.data(), former.size() - 1);
    if (size < 0 || fstat(fd, &file) != 0 ||
        linkat(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        return fail_errno(ErrorKind::kHarness, "create " + path, errno);
    }
    const bool had_name = file.st_nlink != 0;
    return had_name ? remove_file(former.data()) : Result<void>();
}

Result<void> append_to_file(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "write the journal", errno);
        }
        bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
    }
    return {};
}

Result<void> sync_file(int fd) {
    if (fsync(fd) != 0) {
        return fail_errno(ErrorKind::kHarness, "bring the journal to disk", errno);
    }
    return {};
}

Result<void> sync_folder(const std::string& path) {
    const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.valid() || fsync(folder.get()) != 0) {
        return fail_errno(ErrorKind::kHarness, "bring the folder " + path + " to disk", errno);
    }
    return {};
}

Result<void> truncate_file(int fd, std::uint64_t size) {
    if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
        return fail_errno(ErrorKind::kHarness, "cut the journal's damaged tail", errno);
    }
    return {};
}

Result<void> remove_file(const std::string& path) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
        return fail_errno(ErrorKind::kHarness, "delete " + path, errno);
    }
    return {};
}

Result<std::string> read_file(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open " + path, errno);
    }
    std::string text;
    std::array<char, 4096> part{};
    for (;;) {
        const ssize_t size = read(fd.get(), part.data(), part.size());
        if (size == 0) {
            return text;
        }
        if (size < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "read " + path, errno);
        }
        text.append(part.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    }
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
    std::error_code code;
    std::vector<std::string> names;
    std::filesystem::directory_iterator entry(path, code);
    while (!code && entry != std::filesystem::directory_iterator()) {
        names.push_back(entry->path().filename().string());
        entry.increment(code);
    }
    if (code) {
        return fail_errno(ErrorKind::kHarness, "list " + path, code.value());
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<void> write_file(const std::string& path, std::string_view text) {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open " + path, errno);
    }
    ssize_t put = 0;
    do {
        put = write(fd.get(), text.data(), text.size());
    } while (put < 0 && errno == EINTR);
    if (put < 0) {
        return fail_errno(ErrorKind::kHarness, "write " + path, errno);
    }
    return {};
}

Result<void> make_cgroup(const std::string& path) {
    if (mkdir(path.c_str(), 0755) != 0) {
        return fail_errno(ErrorKind::kHarness, "make the cgroup " + path, errno);
    }
    return {};
}

Result<void> remove_cgroup(const std::string& path) {
    if (rmdir(path.c_str()) != 0) {
        return fail_errno(ErrorKind::kHarness, "remove the cgroup " + path, errno);
    }
    return {};
}

Result<FileSystemRecord> file_system(const std::string& path) {
    std::array<char, PATH_MAX> whole{};
    struct stat status {};
    struct stat root {};
    struct statfs space {};
    if (realpath(path.c_str(), whole.data()) == nullptr || stat(path.c_str(), &status) != 0 || stat("/", &root) != 0 ||
        statfs(path.c_str(), &space) != 0) {
        return fail_errno(ErrorKind::kInput, "look at the file system of " + path, errno);
    }
    const auto block = static_cast<std::uint64_t>(space.f_frsize);
    return FileSystemRecord{whole.data(),
                            S_ISDIR(status.st_mode),
                            status.st_dev,
                            static_cast<std::uint64_t>(space.f_type),
                            ByteCount::bytes(space.f_blocks * block),
                            ByteCount::bytes(space.f_bavail * block),
                            status.st_dev == root.st_dev};
}

Result<bool> may_write(const std::string& path) {
    return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

Result<bool> wait_file(const std::string& path, std::string_view text, Deadline deadline) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) {
        return true;
    }
    for (;;) {
        // Read before each wait: the kernel gives notice of what changed since the last reading of this descriptor.
        std::array<char, 4096> now{};
        const ssize_t size = pread(fd.get(), now.data(), now.size(), 0);
        if (size < 0 || std::string_view(now.data(), static_cast<std::size_t>(size)) != text.substr(0, now.size())) {
            return true;
        }
        if (deadline.passed()) {
            return false;
        }
        pollfd waiter{fd.get(), POLLPRI, 0};
        poll(&waiter, 1, std::min(deadline.poll_timeout_ms(), kReadAgainMs));
    }
}

Result<std::optional<ByteCount>> allocated(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) {
        return errno == ENOENT ? Result<std::optional<ByteCount>>(std::nullopt)
                               : fail_errno(ErrorKind::kHarness, "look at " + path, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorKind::kRefused, path + " is something else than a file");
    }
    constexpr std::uint64_t kBlock = 512; // stat(2)
    return ByteCount::bytes(static_cast<std::uint64_t>(status.st_blocks) * kBlock);
}

Result<void> may_allocate(const std::string& folder) {
    const UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!fd.valid() || fallocate(fd.get(), 0, 0, 1) != 0) {
        return fail_errno(ErrorKind::kHarness, "give a file in " + folder + " room in advance", errno);
    }
    return {};
}

Result<void> make_ballast(const std::string& path, ByteCount size) {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "create " + path, errno);
    }
    if (fallocate(fd.get(), 0, 0, static_cast<off_t>(size.bytes())) != 0) {
        return fail_errno(ErrorKind::kHarness, "fill " + path, errno);
    }
    return {};
}

} // namespace railbreak::injectors::host_files
