#include "harness/controller/progress.hpp"

#include <fmt/format.h>

#include "base/console.hpp"

namespace railbreak::controller {

void Progress::doing(std::string_view text, std::string_view part) {
    const bool told = !part.empty() && part == part_;
    part_ = part;
    if (terminal_) {
        tell_user(fmt::format("\r\x1b[K{}", text));
        line_open_ = true;
    } else if (!told) {
        tell_user(fmt::format("{}\n", text));
    }
}

void Progress::note(std::string_view text) {
    end_line();
    tell_user(fmt::format("{}\n", text));
}

void Progress::end_line() {
    if (line_open_) {
        tell_user("\r\x1b[K");
        line_open_ = false;
    }
}

} // namespace railbreak::controller
