// Links over TCP between hosts: the sender of a link connects, the receiver accepts, both prove the run's token.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "collective/transport/handshake.hpp"
#include "collective/transport/stream_transport.hpp"
#include "collective/transport/tcp_socket.hpp"

namespace railbreak::collective {

/// Settings of one rank's TCP transport.
struct TcpOptions {
    Rank self = 0;
    std::string address;    ///< IPv4 address of the data-plane NIC; every socket of the rank is bound to it
    std::uint16_t port = 0; ///< port to listen on, 0: the kernel chooses
    std::string token;      ///< the run's secret; at least 16 bytes
    TcpTuning tuning;
    Nanoseconds handshake_budget = std::chrono::seconds(2); ///< time an accepted connection has to prove itself
    std::size_t max_unproven = 256; ///< accepted connections not yet proven; above, the oldest is dropped
};

/// Where a peer listens.
struct PeerAddress {
    std::string address;
    std::uint16_t port = 0;
};

/// The TCP transport. A stranger that connects costs a descriptor until its handshake fails or its time is up, and
/// holds up nobody; strangers are only looked at while connect() runs.
class TcpTransport final : public StreamTransport {
public:
    /// Listens on the address. Error: kInput (address, token), kHarness (socket).
    [[nodiscard]] static Result<std::unique_ptr<TcpTransport>> listen(TcpOptions options);

    /// The port that peers connect to.
    [[nodiscard]] std::uint16_t port() const { return port_; }

    /// Makes every link in `links` that does not exist yet: connects the outgoing ones, accepts the incoming ones.
    /// Peers call this at the same time with their side of the same links; later calls may add more. `peers` must hold
    /// the address of every outgoing link's peer. A link that a proven peer brings early is kept for a later call.
    /// Error (kOutcome) that names rank, peer, lane and address when a peer refuses or the deadline passes.
    [[nodiscard]] Result<void> connect(const std::map<Rank, PeerAddress>& peers, std::span<const LinkSpec> links,
                                       Deadline deadline);

    /// Connections dropped because they did not prove the token in time.
    [[nodiscard]] std::int64_t strangers_dropped() const { return strangers_dropped_; }

private:
    /// A connection on which the handshake runs.
    struct Unproven {
        UniqueFd socket;
        Handshake handshake;
        sockaddr_in address;
        Direction direction;
        Deadline deadline;
    };
    using UnprovenList = std::list<Unproven>;
    enum class Step : std::uint8_t { kWaiting, kProven };

    TcpTransport(TcpOptions options, UniqueFd epoll, UniqueFd handshakes, UniqueFd listener, std::uint16_t port);
    [[nodiscard]] Result<void> begin_connect(const LinkSpec& link, const PeerAddress& peer, Deadline deadline);
    [[nodiscard]] Result<void> accept_all();
    [[nodiscard]] Result<void> await_links(std::span<const LinkSpec> links, Deadline deadline);
    [[nodiscard]] Result<void> advance(UnprovenList::iterator connection);
    [[nodiscard]] static Result<Step> exchange(Unproven& connection);
    [[nodiscard]] Error missing_error(std::span<const LinkSpec> links) const;
    [[nodiscard]] Error connect_error(const Unproven& connection, Error&& cause) const;
    void drop_expired();
    void abandon_outgoing();

    TcpOptions options_;
    UniqueFd listener_;
    UniqueFd handshakes_; ///< epoll instance of the listener and of all unproven connections
    UnprovenList
        unproven_; ///< outlives a call: a fast peer may begin a handshake that belongs to this rank's next call
    std::uint16_t port_ = 0;
    std::int64_t strangers_dropped_ = 0;
};

} // namespace railbreak::collective
