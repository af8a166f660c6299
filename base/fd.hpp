// Ownership of a file descriptor.
#pragma once

#include <utility>

namespace railbreak {

/// Owns one file descriptor and closes it at the end of its life. Movable, not copyable. -1 means "none".
class UniqueFd {
public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) {
            reset(std::exchange(other.fd_, -1));
        }
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    /// Gives up ownership and returns the descriptor.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    /// Closes the present descriptor, if any, and takes over `fd`, which must be another one. Keeps errno.
    void reset(int fd = -1);

private:
    int fd_ = -1;
};

} // namespace railbreak
