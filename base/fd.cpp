#include "base/fd.hpp"

#include <cerrno>

#include <unistd.h>

#include "base/check.hpp"

namespace railbreak {

void UniqueFd::reset(int fd) {
    RB_CHECK(fd < 0 || fd != fd_, "a descriptor is not replaced by itself");
    if (fd_ >= 0) {
        const int saved = errno; // a descriptor is often closed on the way out of a failed call
        ::close(fd_);
        errno = saved;
    }
    fd_ = fd;
}

} // namespace railbreak
