#include "collective/transport/rank_transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

constexpr int kBacklog = 1024;

Result<std::uint16_t> bound_port(int socket) {
    sockaddr_in bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
        return fail_errno(ErrorKind::kHarness, "read the port of the data-plane socket", errno);
    }
    return ntohs(bound.sin_port);
}

/// An address in the abstract namespace: it belongs to the network namespace, is no file, and ends with its socket.
struct AbstractAddress {
    sockaddr_un address{};
    socklen_t size = offsetof(sockaddr_un, sun_path);

    explicit AbstractAddress(std::string_view name = {}) {
        address.sun_family = AF_UNIX;
        if (!name.empty()) { // an address without a path asks the kernel to choose one
            const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
            std::memcpy(address.sun_path + 1, name.data(), length);
            size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
        }
    }
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<UniqueFd> make_unix_socket() {
    UniqueFd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.valid()) {
        return fail_errno(ErrorKind::kHarness, "make a Unix socket", errno);
    }
    return made;
}

} // namespace

Result<std::unique_ptr<RankTransport>> RankTransport::listen(const RankTransportOptions& options) {
    Result<Rendezvous> rendezvous = Rendezvous::make({.self = options.self,
                                                      .token = options.token,
                                                      .handshake_budget = options.handshake_budget,
                                                      .max_unproven = options.max_unproven});
    if (!rendezvous) {
        return tl::unexpected<Error>(std::move(rendezvous.error()));
    }
    Result<Parts> parts = make_parts(options.self, options.local_rate);
    if (!parts) {
        return tl::unexpected<Error>(std::move(parts.error()));
    }
    std::unique_ptr<RankTransport> made(new RankTransport(std::move(*parts), options, std::move(*rendezvous)));
    Result<void> listening = made->listen_inside();
    for (std::size_t nic = 0; nic < options.addresses.size() && listening; ++nic) {
        listening = made->listen_on_nic(nic);
    }
    if (!listening) {
        return tl::unexpected<Error>(std::move(listening.error()));
    }
    return made;
}

Result<void> RankTransport::listen_on_nic(std::size_t nic) {
    Result<sockaddr_in> local = to_sockaddr(addresses_[nic], 0);
    Result<UniqueFd> listener =
        local ? make_tcp_socket(tuning_, *local) : Result<UniqueFd>(tl::unexpected<Error>(local.error()));
    if (!listener) {
        return tl::unexpected<Error>(std::move(listener.error()));
    }
    if (::listen(listener->get(), kBacklog) != 0) {
        return fail_errno(ErrorKind::kHarness, fmt::format("listen on {}", addresses_[nic]), errno);
    }
    Result<std::uint16_t> port = bound_port(listener->get());
    if (!port) {
        return tl::unexpected<Error>(std::move(port.error()));
    }
    ports_.push_back(*port);
    return rendezvous_.add_listener(std::move(*listener), {PortKind::kNic, static_cast<std::int32_t>(nic)});
}

Result<void> RankTransport::listen_inside() {
    Result<UniqueFd> listener = make_unix_socket();
    if (!listener) {
        return tl::unexpected<Error>(std::move(listener.error()));
    }
    const AbstractAddress any;
    sockaddr_un bound{};
    socklen_t size = sizeof bound;
    if (::bind(listener->get(), any.get(), any.size) != 0 || ::listen(listener->get(), kBacklog) != 0 ||
        ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
        return fail_errno(ErrorKind::kHarness, "listen on a Unix socket", errno);
    }
    local_name_.assign(bound.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
    return rendezvous_.add_listener(std::move(*listener), {PortKind::kLocal, 0});
}

Result<void> RankTransport::connect(const std::map<Rank, PeerAddresses>& peers, std::span<const LinkSpec> links,
                                    Deadline deadline) {
    Result<void> done;
    for (const LinkSpec& link : links) {
        if (!done || link.direction == Direction::kIncoming || find_link(link).has_value()) {
            continue;
        }
        const auto peer = peers.find(link.peer);
        RB_CHECK(peer != peers.end(), "an outgoing link's peer has no address");
        done = begin(link, peer->second, deadline);
    }
    if (done) {
        const auto complete = [&] {
            return std::all_of(links.begin(), links.end(), [&](const LinkSpec& l) { return find_link(l).has_value(); });
        };
        const auto deliver = [this](const LinkSpec& link, UniqueFd socket, std::string address) {
            return take(link, std::move(socket), std::move(address));
        };
        done = rendezvous_.await(complete, deliver, deadline, [&] { return missing_error(links); });
    }
    if (!done) {
        rendezvous_.abandon_outgoing();
    }
    return done;
}

Result<void> RankTransport::begin(const LinkSpec& link, const PeerAddresses& peer, Deadline deadline) {
    if (link.own_port.kind == PortKind::kLocal) {
        return begin_inside(link, peer.local, deadline);
    }
    const auto own = static_cast<std::size_t>(link.own_port.nic);
    const auto other = static_cast<std::size_t>(link.peer_port.nic);
    if (own >= addresses_.size() || other >= peer.nics.size()) {
        return fail(ErrorKind::kInput, fmt::format("the link {} needs a NIC that is not there: this rank has {}, rank "
                                                   "{} has {}",
                                                   to_string(link), addresses_.size(), link.peer, peer.nics.size()));
    }
    return begin_tcp(link, peer.nics[other], deadline);
}

Result<void> RankTransport::begin_tcp(const LinkSpec& link, const PeerAddress& peer, Deadline deadline) {
    Result<sockaddr_in> remote = to_sockaddr(peer.address, peer.port);
    Result<sockaddr_in> local = to_sockaddr(addresses_[static_cast<std::size_t>(link.own_port.nic)], 0);
    if (!remote || !local) {
        return tl::unexpected<Error>(!remote ? remote.error() : local.error());
    }
    Result<UniqueFd> socket = make_tcp_socket(tuning_, *local);
    if (!socket) {
        return tl::unexpected<Error>(std::move(socket.error()));
    }
    if (::connect(socket->get(), reinterpret_cast<const sockaddr*>(&*remote), sizeof *remote) != 0 &&
        errno != EINPROGRESS) {
        const LinkClaim claim{self(), link.peer, link.lane, link.own_port, link.peer_port};
        return fail(rendezvous_.connect_error(claim, to_string(*remote),
                                              std::move(fail_errno(ErrorKind::kOutcome, "connect", errno).value())));
    }
    return rendezvous_.add_outgoing(link, std::move(*socket), to_string(*remote), deadline);
}

Result<void> RankTransport::begin_inside(const LinkSpec& link, const std::string& name, Deadline deadline) {
    Result<UniqueFd> socket = make_unix_socket();
    if (!socket) {
        return tl::unexpected<Error>(std::move(socket.error()));
    }
    const AbstractAddress remote(name);
    if (name.empty() || ::connect(socket->get(), remote.get(), remote.size) != 0) {
        const int why = name.empty() ? EDESTADDRREQ : errno;
        const LinkClaim claim{self(), link.peer, link.lane, link.own_port, link.peer_port};
        return fail(rendezvous_.connect_error(claim, kSharedMemoryAddress,
                                              std::move(fail_errno(ErrorKind::kOutcome, "connect", why).value())));
    }
    return rendezvous_.add_outgoing(link, std::move(*socket), std::string(kSharedMemoryAddress), deadline);
}

Result<void> RankTransport::take(const LinkSpec& link, UniqueFd socket, std::string address) {
    if (link.own_port.kind == PortKind::kNic && link.direction == Direction::kIncoming) {
        if (Result<void> tuned = tune_tcp_socket(socket.get(), tuning_); !tuned) {
            return tuned; // it broke already
        }
    }
    return add_link(link, std::move(socket), std::move(address)).map([](LinkIndex) {});
}

Error RankTransport::missing_error(std::span<const LinkSpec> links) const {
    std::vector<std::string> missing;
    for (const LinkSpec& link : links) {
        if (!find_link(link).has_value()) {
            missing.push_back(to_string(link));
        }
    }
    const std::string addresses = fmt::format("{}", fmt::join(addresses_, ", "));
    return Error(ErrorKind::kOutcome, fmt::format("rank {} ({}) has not connected in time: missing the links {}",
                                                  self(), addresses, fmt::join(missing, ", ")))
        .with("rank", std::to_string(self()))
        .with("address", addresses)
        .with("strangers_dropped", std::to_string(strangers_dropped()));
}

} // namespace railbreak::collective
