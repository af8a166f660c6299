// The transport of a rank that is a process: TCP over its NICs, shared memory to the other ranks of its host. The
// sender of a link connects, the receiver accepts, both prove the run's token.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collective/transport/port_transport.hpp"
#include "collective/transport/rendezvous.hpp"
#include "collective/transport/tcp_socket.hpp"

namespace railbreak::collective {

/// Settings of one rank's transport.
struct RankTransportOptions {
    Rank self = 0;
    /// IPv4 addresses of the host's NICs, by NIC number. Links of a NIC are bound to its address at both ends.
    std::vector<std::string> addresses;
    std::string token; ///< the run's secret; at least 16 bytes
    TcpTuning tuning;
    BitRate local_rate; ///< of the rank's intra-host port, each direction; zero: no limit
    Nanoseconds handshake_budget = std::chrono::seconds(2); ///< time an accepted connection has to prove itself
    std::size_t max_unproven = 256; ///< accepted connections not yet proven; above, the oldest is dropped
};

/// Where a peer listens.
struct PeerAddress {
    std::string address;
    std::uint16_t port = 0;
};
struct PeerAddresses {
    std::vector<PeerAddress> nics; ///< by NIC number
    std::string local;             ///< RankTransport::local_name() of a peer on the same host
};

/// See the file comment.
class RankTransport final : public PortTransport {
public:
    /// Listens on every NIC, and inside the host on a Unix socket without a file, which ends with its process. Error:
    /// kInput (address, token), kHarness (socket).
    [[nodiscard]] static Result<std::unique_ptr<RankTransport>> listen(const RankTransportOptions& options);

    /// The port that peers connect to on a NIC.
    [[nodiscard]] std::uint16_t port(std::size_t nic) const { return ports_.at(nic); }
    /// What peers on the same host connect to; printable, unique on the host.
    [[nodiscard]] const std::string& local_name() const { return local_name_; }

    /// Makes every link in `links` that does not exist yet: connects the outgoing ones, accepts the incoming ones.
    /// Peers call this at the same time with their side of the same links; later calls may add more. `peers` must hold
    /// the address of every outgoing link's peer. A link that a proven peer brings early is kept for a later call.
    /// Errors: kOutcome that names rank, peer, lane and address when a peer refuses or the deadline passes; kInput when
    /// a link uses a NIC that this rank or its peer does not have.
    [[nodiscard]] Result<void> connect(const std::map<Rank, PeerAddresses>& peers, std::span<const LinkSpec> links,
                                       Deadline deadline);

    /// Connections dropped because they did not prove the token in time.
    [[nodiscard]] std::int64_t strangers_dropped() const { return rendezvous_.strangers_dropped(); }

private:
    RankTransport(Parts parts, const RankTransportOptions& options, Rendezvous rendezvous)
        : PortTransport(std::move(parts)), tuning_(options.tuning), addresses_(options.addresses),
          rendezvous_(std::move(rendezvous)) {}
    [[nodiscard]] Result<void> listen_on_nic(std::size_t nic);
    [[nodiscard]] Result<void> listen_inside();
    [[nodiscard]] Result<void> begin(const LinkSpec& link, const PeerAddresses& peer, Deadline deadline);
    [[nodiscard]] Result<void> begin_tcp(const LinkSpec& link, const PeerAddress& peer, Deadline deadline);
    [[nodiscard]] Result<void> begin_inside(const LinkSpec& link, const std::string& name, Deadline deadline);
    [[nodiscard]] Result<void> take(const LinkSpec& link, UniqueFd socket, std::string address);
    [[nodiscard]] Error missing_error(std::span<const LinkSpec> links) const;

    TcpTuning tuning_;
    std::vector<std::string> addresses_;
    std::vector<std::uint16_t> ports_;
    std::string local_name_;
    Rendezvous rendezvous_;
};

} // namespace railbreak::collective
