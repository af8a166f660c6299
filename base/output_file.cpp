#include "base/output_file.hpp"

#include <array>
#include <cerrno>
#include <ostream>
#include <streambuf>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.hpp"

namespace railbreak {

namespace {

/// Buffers what is written and passes it to a descriptor. The first failure stays.
class DescriptorBuffer final : public std::streambuf {
public:
    explicit DescriptorBuffer(int fd) : fd_(fd) { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

    /// errno of the write that failed; 0: none did.
    [[nodiscard]] int failure() const { return failure_; }

protected:
    int_type overflow(int_type letter) override {
        if (!flush_buffer()) {
            return traits_type::eof();
        }
        if (!traits_type::eq_int_type(letter, traits_type::eof())) {
            sputc(traits_type::to_char_type(letter));
        }
        return traits_type::not_eof(letter);
    }
    int sync() override { return flush_buffer() ? 0 : -1; }

private:
    bool flush_buffer() {
        for (const char* from = pbase(); from < pptr() && failure_ == 0;) {
            const ssize_t written = ::write(fd_, from, static_cast<std::size_t>(pptr() - from));
            if (written >= 0) {
                from += written;
            } else if (errno != EINTR) {
                failure_ = errno;
            }
        }
        setp(buffer_.data(), buffer_.data() + buffer_.size());
        return failure_ == 0;
    }

    int fd_;
    int failure_ = 0;
    std::array<char, 1 << 16> buffer_{};
};

tl::unexpected<Error> cannot_write(const std::filesystem::path& path, int why) {
    return fail_errno(ErrorKind::kInput, fmt::format("write {}", path.string()), why);
}

Result<void> write_to(int fd, const std::filesystem::path& path,
                      const std::function<Result<void>(std::ostream&)>& write) {
    DescriptorBuffer buffer(fd);
    std::ostream out(&buffer);
    Result<void> written = write(out);
    out.flush();
    if (buffer.failure() != 0) {
        return cannot_write(path, buffer.failure());
    }
    return written;
}

/// A file beside `target` that becomes it, or goes.
Result<void> replace(const std::filesystem::path& target, const std::filesystem::path& path, mode_t mode,
                     const std::function<Result<void>(std::ostream&)>& write) {
    const std::string beside = fmt::format("{}.{}.part", target.string(), ::getpid());
    const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file.valid()) {
        return cannot_write(path, errno);
    }
    Result<void> written = write_to(file.get(), path, write);
    if (written && ::fsync(file.get()) != 0) {
        written = cannot_write(path, errno);
    }
    if (written && ::rename(beside.c_str(), target.c_str()) != 0) {
        written = cannot_write(path, errno);
    }
    if (!written) {
        ::unlink(beside.c_str());
    }
    return written;
}

} // namespace

Result<void> write_file(const std::filesystem::path& path, const std::function<Result<void>(std::ostream&)>& write) {
    struct stat present {};
    if (::stat(path.c_str(), &present) != 0) {
        if (errno != ENOENT || path.empty()) {
            return cannot_write(path, errno);
        }
        return replace(path, path, 0666, write);
    }
    if (S_ISREG(present.st_mode)) {
        std::error_code error;
        const std::filesystem::path target = std::filesystem::canonical(path, error);
        if (error) {
            return cannot_write(path, error.value());
        }
        if (::access(target.c_str(), W_OK) != 0) {
            return cannot_write(path, errno);
        }
        return replace(target, path, present.st_mode & 0777, write);
    }
    const UniqueFd device(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!device.valid()) {
        return cannot_write(path, errno);
    }
    return write_to(device.get(), path, write);
}

} // namespace railbreak
