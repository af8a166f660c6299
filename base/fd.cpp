#include "base/fd.hpp"

#include <unistd.h>

namespace railbreak {

void UniqueFd::reset(int fd) {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    fd_ = fd;
}

} // namespace railbreak
