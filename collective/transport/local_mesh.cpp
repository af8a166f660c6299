#include "collective/transport/local_mesh.hpp"

#include <array>
#include <cerrno>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "collective/transport/port_transport.hpp"

namespace railbreak::collective {

namespace {

using Members = std::vector<std::unique_ptr<PortTransport>>;

/// Makes both ends of the outgoing link of `from`.
Result<void> join(Members& members, Rank from, const LinkSpec& link) {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail_errno(ErrorKind::kHarness, "make a socket pair", errno);
    }
    UniqueFd sender(ends[0]);
    UniqueFd receiver(ends[1]);
    const auto name = [](Rank rank) { return fmt::format("in-process rank {}", rank); };
    const LinkSpec other{Direction::kIncoming, from, link.lane, link.peer_port, link.own_port};
    return members[static_cast<std::size_t>(from)]
        ->add_link(link, std::move(sender), name(link.peer))
        .and_then([&](LinkIndex) {
            return members[static_cast<std::size_t>(link.peer)]->add_link(other, std::move(receiver), name(from));
        })
        .map([](LinkIndex) {});
}

} // namespace

Result<std::vector<std::unique_ptr<Transport>>> make_local_mesh(const std::vector<std::vector<LinkSpec>>& links,
                                                                BitRate local_rate) {
    Members members;
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
        Result<std::unique_ptr<PortTransport>> made = PortTransport::make(static_cast<Rank>(rank), local_rate);
        if (!made) {
            return tl::unexpected<Error>(std::move(made.error()));
        }
        members.push_back(std::move(*made));
    }
    for (std::size_t rank = 0; rank < links.size(); ++rank) {
        for (const LinkSpec& link : links[rank]) {
            if (link.direction == Direction::kIncoming) {
                continue;
            }
            if (Result<void> joined = join(members, static_cast<Rank>(rank), link); !joined) {
                return tl::unexpected<Error>(std::move(joined.error()));
            }
        }
    }
    std::vector<std::unique_ptr<Transport>> transports;
    for (auto& member : members) {
        transports.push_back(std::move(member));
    }
    return transports;
}

Result<std::vector<std::unique_ptr<Transport>>> make_local_mesh(Rank ranks, Lane lanes) {
    std::vector<std::vector<LinkSpec>> links(static_cast<std::size_t>(ranks));
    for (Rank from = 0; from < ranks; ++from) {
        for (Rank to = 0; to < ranks; ++to) {
            for (Lane lane = 0; lane < lanes && to != from; ++lane) {
                links[static_cast<std::size_t>(from)].push_back({Direction::kOutgoing, to, lane});
            }
        }
    }
    return make_local_mesh(links);
}

} // namespace railbreak::collective
