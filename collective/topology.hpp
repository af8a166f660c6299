// The cluster as theory sees it: servers with ports, and how much slower each port is than a healthy one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rational.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Slowdown of one server's port: healthy bandwidth / present bandwidth, >= 1, per direction.
struct PortSlowdown {
    Rational send{1};
    Rational receive{1};
    /// The larger of the two: what a plan has to reckon with.
    [[nodiscard]] const Rational& worst() const { return send < receive ? receive : send; }
};

/// Servers 0..size-1, one rank per server for now (rank i lives on server i).
struct Topology {
    std::vector<PortSlowdown> servers;

    [[nodiscard]] Rank ranks() const { return static_cast<Rank>(servers.size()); }
};

/// `ranks` healthy servers.
[[nodiscard]] Topology healthy_topology(Rank ranks);
/// As above, with server `straggler` slowed by `slowdown` in both directions.
[[nodiscard]] Topology one_straggler(Rank ranks, Rank straggler, const Rational& slowdown);

} // namespace railbreak::collective
