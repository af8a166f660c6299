#include "harness/controller/progress.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace railbreak::controller {

void Progress::doing(std::string_view text) {
    if (terminal_) {
        fmt::print(stderr, "\r\x1b[K{}", text);
        line_open_ = true;
    } else {
        fmt::print(stderr, "{}\n", text);
    }
    std::fflush(stderr);
}

void Progress::note(std::string_view text) {
    end_line();
    fmt::print(stderr, "{}\n", text);
}

void Progress::end_line() {
    if (line_open_) {
        fmt::print(stderr, "\r\x1b[K");
        line_open_ = false;
    }
}

} // namespace railbreak::controller
