#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace railbreak::detail {

void check_failed(const char* file, int line, const char* condition, const char* why) {
    std::fprintf(stderr, "railbreak: internal error at %s:%d: %s (%s)\n", file, line, why, condition);
    std::abort();
}

} // namespace railbreak::detail
