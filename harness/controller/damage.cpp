#include "harness/controller/damage.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.hpp"

namespace railbreak::controller {

namespace {

/// Slowdowns that differ by less were meant to be equal.
constexpr double kAlike = 1.05;

using Side = Rational NicSlowdown::*;

/// Slowest and fastest NIC of a host, dead ones left out.
std::pair<Rational, Rational> range_of(const std::vector<NicSlowdown>& nics, Side side) {
    std::vector<Rational> alive;
    for (const NicSlowdown& nic : nics) {
        if (!nic.dead) {
            alive.push_back(nic.*side);
        }
    }
    RB_CHECK(!alive.empty(), "a host has a NIC that is alive");
    const auto [least, most] = std::minmax_element(alive.begin(), alive.end());
    return {*most, *least};
}

bool alike(const std::vector<NicSlowdown>& nics, Side side) {
    const auto [slowest, fastest] = range_of(nics, side);
    return to_double(slowest / fastest) < kAlike;
}

/// Healthy rate of all NICs together over their present rate.
Rational pooled(const std::vector<NicSlowdown>& nics, Side side) {
    Rational rate{0};
    for (const NicSlowdown& nic : nics) {
        rate += nic.dead ? Rational(0) : 1 / (nic.*side);
    }
    return static_cast<std::int64_t>(nics.size()) / rate;
}

std::uint64_t dead_nics(const std::vector<NicSlowdown>& nics) {
    std::uint64_t dead = 0;
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
        dead |= std::uint64_t{nics[nic].dead ? 1U : 0U} << nic;
    }
    return dead;
}

/// The NICs as a plan sees them: what is cut off from some hosts is left out.
std::vector<NicSlowdown> as_usable(std::vector<NicSlowdown> nics) {
    for (NicSlowdown& nic : nics) {
        nic.dead = nic.dead || nic.cut_off;
    }
    return nics;
}

Rational as_planned(const std::vector<NicSlowdown>& nics, Side side) {
    return dead_nics(nics) != 0 || alike(nics, side) ? pooled(nics, side) : range_of(nics, side).first;
}

} // namespace

NicSlowdowns no_damage(const scenarios::ClusterSpec& cluster) {
    return NicSlowdowns(static_cast<std::size_t>(cluster.hosts),
                        std::vector<NicSlowdown>(static_cast<std::size_t>(cluster.nics_per_host)));
}

void add_reroutes(NicSlowdowns& damage) {
    for (std::vector<NicSlowdown>& nics : damage) {
        const std::vector<NicSlowdown> before = nics;
        std::vector<std::int64_t> sharers(nics.size()); // of each NIC, by whose packets leave through it
        const auto exit_of = [&](std::size_t nic) {
            return static_cast<std::size_t>(before[nic].leaves_through.value_or(static_cast<std::int32_t>(nic)));
        };
        for (std::size_t nic = 0; nic < nics.size(); ++nic) {
            sharers.at(exit_of(nic)) += before[nic].dead ? 0 : 1;
        }
        for (std::size_t nic = 0; nic < nics.size(); ++nic) {
            const std::size_t exit = exit_of(nic);
            nics[nic].send = before[exit].send * std::max<std::int64_t>(sharers[exit], 1);
        }
    }
}

Rational to_slowdown(BitRate healthy, BitRate present) {
    const double ratio = static_cast<double>(healthy.bits_per_s()) /
                         static_cast<double>(std::max<std::uint64_t>(present.bits_per_s(), 1));
    const auto thousandths = static_cast<std::int64_t>(std::lround(std::clamp(ratio, 1.0, 1e6) * 1000.0));
    return Rational(thousandths, 1000);
}

collective::Topology plan_topology(const scenarios::ClusterSpec& cluster, const NicSlowdowns& damage, BitRate healthy) {
    collective::Topology topology = collective::healthy_topology(cluster.hosts);
    topology.ranks_per_server = cluster.ranks_per_host;
    topology.nics_per_server = cluster.nics_per_host;
    if (cluster.ranks_per_host > 1 && cluster.local_rate.bits_per_s() > 0 && healthy.bits_per_s() > 0) {
        const double ratio =
            static_cast<double>(cluster.local_rate.bits_per_s()) / static_cast<double>(healthy.bits_per_s());
        topology.local_ratio = Rational(std::max<std::int64_t>(std::lround(ratio * 1000.0), 1), 1000);
    }
    for (std::size_t host = 0; host < damage.size(); ++host) {
        const std::vector<NicSlowdown> nics = as_usable(damage[host]);
        topology.servers[host].send = as_planned(nics, &NicSlowdown::send);
        topology.servers[host].receive = as_planned(nics, &NicSlowdown::receive);
        topology.servers[host].failed_nics = dead_nics(nics);
    }
    return topology;
}

std::vector<collective::Bound> bounds_of(const scenarios::ClusterSpec& cluster, const NicSlowdowns& damage,
                                         BitRate healthy) {
    collective::Topology topology = plan_topology(cluster, damage, healthy);
    bool all_alike = true;
    for (std::size_t host = 0; host < damage.size(); ++host) {
        const std::vector<NicSlowdown>& nics = damage[host];
        topology.servers[host].send = pooled(nics, &NicSlowdown::send);
        topology.servers[host].receive = pooled(nics, &NicSlowdown::receive);
        topology.servers[host].failed_nics = dead_nics(nics);
        all_alike = all_alike && alike(nics, &NicSlowdown::send) && alike(nics, &NicSlowdown::receive);
    }
    using collective::PortModel;
    const collective::Bound fluid = binding(all_bounds(topology, PortModel::kFluid));
    collective::Bound exclusive = fluid;
    exclusive.model = to_string(PortModel::kExclusive);
    if (all_alike) {
        exclusive = binding(all_bounds(topology, PortModel::kExclusive));
    }
    return {exclusive, fluid};
}

double worst_of(const NicSlowdowns& damage) {
    double worst = 1.0;
    for (const std::vector<NicSlowdown>& nics : damage) {
        for (const NicSlowdown& nic : nics) {
            worst = nic.dead ? worst : std::max({worst, to_double(nic.send), to_double(nic.receive)});
        }
    }
    return worst;
}

std::vector<std::int32_t> probe_shifts(std::int32_t hosts, const std::function<bool(std::int32_t)>& slow) {
    // A side of a slow host: {host, sends?}. What a shift settles: the sides whose partner is healthy.
    using Side = std::pair<std::int32_t, bool>;
    const auto settles = [&](std::int32_t shift) {
        std::set<Side> sides;
        for (std::int32_t host = 0; host < hosts; ++host) {
            const std::int32_t next = (host + shift) % hosts;
            if (slow(host) && !slow(next)) {
                sides.insert({host, true});
            }
            if (slow(next) && !slow(host)) {
                sides.insert({next, false});
            }
        }
        return sides;
    };
    std::vector<std::int32_t> shifts;
    std::set<Side> settled;
    for (;;) { // greedily the shift that settles most
        std::int32_t best = 0;
        std::size_t most = settled.size();
        for (std::int32_t shift = 1; shift < hosts; ++shift) {
            std::set<Side> both = settles(shift);
            both.insert(settled.begin(), settled.end());
            if (both.size() > most) {
                most = both.size();
                best = shift;
            }
        }
        if (best == 0) {
            break;
        }
        shifts.push_back(best);
        settled.merge(settles(best));
    }
    return shifts.empty() ? std::vector<std::int32_t>{1} : shifts;
}

} // namespace railbreak::controller
