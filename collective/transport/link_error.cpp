#include "collective/transport/link_error.hpp"

#include <cstring>

#include <fmt/format.h>

namespace railbreak::collective {

Error link_error(Rank self, const LinkSpec& link, std::string_view address, std::string_view what, int errno_value) {
    const char* name = ::strerrorname_np(errno_value);
    return Error(ErrorKind::kOutcome,
                 fmt::format("rank {} cannot {} rank {} on lane {} ({}): {}", self, what, link.peer, link.lane, address,
                             errno_value == 0 ? "the peer closed the connection" : ::strerrordesc_np(errno_value)))
        .with("rank", std::to_string(self))
        .with("peer", std::to_string(link.peer))
        .with("lane", std::to_string(link.lane))
        .with("address", std::string(address))
        .with("errno", errno_value == 0 ? "EOF" : (name != nullptr ? name : std::to_string(errno_value)));
}

std::string_view verb_of(Direction direction) {
    switch (direction) {
    case Direction::kOutgoing: return "send to";
    case Direction::kIncoming: return "receive from";
    }
    return "";
}

} // namespace railbreak::collective
