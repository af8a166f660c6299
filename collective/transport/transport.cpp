#include "collective/transport/transport.hpp"

#include <fmt/format.h>

namespace railbreak::collective {

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kOutgoing: return "to";
    case Direction::kIncoming: return "from";
    }
    return "";
}

std::string to_string(const LinkSpec& link) {
    std::string text = fmt::format("{} rank {} on lane {}", to_string(link.direction), link.peer, link.lane);
    if (link.own_port.kind == PortKind::kLocal) {
        text += " (inside the host)";
    } else if (link.own_port != Port{} || link.peer_port != Port{}) {
        text += fmt::format(" (own NIC {}, the peer's NIC {})", link.own_port.nic, link.peer_port.nic);
    }
    return text;
}

} // namespace railbreak::collective
