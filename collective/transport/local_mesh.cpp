#include "collective/transport/local_mesh.hpp"

#include <array>
#include <cerrno>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "collective/transport/stream_transport.hpp"

namespace railbreak::collective {

namespace {

using Streams = std::vector<std::unique_ptr<StreamTransport>>;

Result<void> join(Streams& streams, Rank from, Rank to, Lane lane) {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return fail_errno(ErrorKind::kHarness, "make a socket pair", errno);
    }
    UniqueFd sender(ends[0]);
    UniqueFd receiver(ends[1]);
    const auto name = [](Rank rank) { return fmt::format("in-process rank {}", rank); };
    return streams[static_cast<std::size_t>(from)]
        ->add_link({Direction::kOutgoing, to, lane}, std::move(sender), name(to))
        .and_then([&](LinkIndex) {
            return streams[static_cast<std::size_t>(to)]->add_link({Direction::kIncoming, from, lane},
                                                                   std::move(receiver), name(from));
        })
        .map([](LinkIndex) {});
}

} // namespace

Result<std::vector<std::unique_ptr<Transport>>> make_local_mesh(Rank ranks, Lane lanes) {
    Streams streams;
    for (Rank rank = 0; rank < ranks; ++rank) {
        Result<std::unique_ptr<StreamTransport>> made = StreamTransport::make(rank);
        if (!made) {
            return tl::unexpected<Error>(made.error());
        }
        streams.push_back(std::move(*made));
    }
    for (Rank from = 0; from < ranks; ++from) {
        for (Rank to = 0; to < ranks; ++to) {
            for (Lane lane = 0; lane < lanes && to != from; ++lane) {
                if (Result<void> joined = join(streams, from, to, lane); !joined) {
                    return tl::unexpected<Error>(joined.error());
                }
            }
        }
    }
    std::vector<std::unique_ptr<Transport>> transports;
    for (auto& stream : streams) {
        transports.push_back(std::move(stream));
    }
    return transports;
}

} // namespace railbreak::collective
