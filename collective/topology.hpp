// The cluster as theory sees it: servers with ports, and how much slower each port is than a healthy one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// How much slower than healthy the NICs of one server are, per direction: healthy bandwidth / present bandwidth, >= 1.
struct PortSlowdown {
    Rational send{1};
    Rational receive{1};
    /// Bit i: NIC i of the server is dead and every other one is healthy; send and receive are then K/(K-dead), the
    /// slowdown of all NICs pooled. 0: every NIC of the server is slowed alike.
    std::uint64_t failed_nics = 0;
    /// The larger of the two directions: what a plan has to reckon with.
    [[nodiscard]] const Rational& worst() const { return send < receive ? receive : send; }
    bool operator==(const PortSlowdown&) const = default;
};

/// Servers 0..size-1 with equally many ranks and NICs each. Ranks are numbered server by server; unless a plan says
/// otherwise rank r uses NIC (r mod ranks_per_server) mod nics_per_server of its server ("rail").
struct Topology {
    std::vector<PortSlowdown> servers;
    Rank ranks_per_server = 1;        ///< g >= 1
    std::int32_t nics_per_server = 1; ///< K, 1..64
    /// Bandwidth of a rank's intra-host port, each direction, over that of a healthy NIC (V); 0: without limit.
    /// Means nothing while ranks_per_server is 1.
    Rational local_ratio{0};

    [[nodiscard]] Rank server_count() const { return static_cast<Rank>(servers.size()); }
    [[nodiscard]] Rank ranks() const { return server_count() * ranks_per_server; }
    [[nodiscard]] Rank server_of(Rank rank) const { return rank / ranks_per_server; }
    /// The NIC that a rank uses by default.
    [[nodiscard]] std::int32_t nic_of(Rank rank) const { return rank % ranks_per_server % nics_per_server; }
    [[nodiscard]] const PortSlowdown& server(Rank index) const { return servers[static_cast<std::size_t>(index)]; }
};

/// `servers` healthy servers of one rank and one NIC each.
[[nodiscard]] Topology healthy_topology(Rank servers);
/// As above, with server `straggler` slowed by `slowdown` in both directions.
[[nodiscard]] Topology one_straggler(Rank servers, Rank straggler, const Rational& slowdown);
/// As above, with servers 0..size-1 of the list slowed by their slowdowns in both directions.
[[nodiscard]] Topology stragglers_first(Rank servers, const std::vector<Rational>& slowdowns);

} // namespace railbreak::collective
