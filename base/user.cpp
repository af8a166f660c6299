#include "base/user.hpp"

#include <fstream>

#include <unistd.h>

namespace railbreak {

uid_t outer_uid() {
    // Our own namespace maps exactly one user, "0 UID 1"; containers map ranges and are left alone.
    std::ifstream map("/proc/self/uid_map");
    unsigned long inside = 0;
    unsigned long outside = 0;
    unsigned long length = 0;
    unsigned long next = 0;
    if (map >> inside >> outside >> length && !(map >> next) && length == 1 && inside == ::geteuid()) {
        return static_cast<uid_t>(outside);
    }
    return ::geteuid();
}

} // namespace railbreak
