#include "collective/simulate/ports.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::collective::simulation {

namespace {

constexpr std::int32_t kMostNics = 64;

Result<void> check(const Schedule& schedule, const Topology& topology) {
    if (topology.ranks_per_server < 1 || topology.nics_per_server < 1 || topology.nics_per_server > kMostNics ||
        topology.local_ratio < 0) {
        return fail(ErrorKind::kInput,
                    "a server has one rank or more, 1 to 64 NICs and intra-host ports whose ratio is not negative");
    }
    if (schedule.ranks() != topology.ranks() || schedule.ranks_per_server() != topology.ranks_per_server) {
        return fail(ErrorKind::kInput, fmt::format("{} is for {} ranks, {} a server; the cluster has {} ranks, {} a "
                                                   "server",
                                                   schedule.name(), schedule.ranks(), schedule.ranks_per_server(),
                                                   topology.ranks(), topology.ranks_per_server));
    }
    for (Rank server = 0; server < topology.server_count(); ++server) {
        if (topology.server(server).send <= 0 || topology.server(server).receive <= 0) {
            return fail(ErrorKind::kInput, fmt::format("the slowdown of server {} is not above 0", server));
        }
    }
    return {};
}

} // namespace

Result<PortTable> PortTable::make(const Schedule& schedule, const Topology& topology) {
    if (const Result<void> fits = check(schedule, topology); !fits) {
        return tl::unexpected(fits.error());
    }
    PortTable table;
    table.nics_per_server_ = topology.nics_per_server;
    table.first_local_ = topology.server_count() * topology.nics_per_server * 2;
    table.add_speeds(topology);
    if (const Result<void> added = table.add_queues(schedule); !added) {
        return tl::unexpected(added.error());
    }
    return table;
}

void PortTable::add_speeds(const Topology& topology) {
    for (Rank server = 0; server < topology.server_count(); ++server) {
        const PortSlowdown& port = topology.server(server);
        for (std::int32_t nic = 0; nic < topology.nics_per_server; ++nic) {
            const bool failed = (port.failed_nics >> nic & 1U) != 0;
            for (const Rational* slowdown : {&port.send, &port.receive}) {
                if (port.failed_nics == 0) {
                    slowdowns_.push_back(*slowdown);
                } else {
                    slowdowns_.emplace_back(failed ? -1 : 1);
                }
            }
        }
    }
    const Rational local = topology.local_ratio == 0 ? Rational(0) : 1 / topology.local_ratio;
    slowdowns_.resize(slowdowns_.size() + static_cast<std::size_t>(topology.ranks()) * 2, local);
    users_.resize(slowdowns_.size());
}

Result<void> PortTable::add_queues(const Schedule& schedule) {
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            const Port port = schedule.port(rank, lane);
            const bool local = port.kind == PortKind::kLocal;
            if (port.nic < 0 || port.nic >= (local ? 1 : nics_per_server_)) {
                return fail(ErrorKind::kInput, fmt::format("{} puts lane {} of rank {} on NIC {}; a server has {}",
                                                           schedule.name(), lane, rank, port.nic, nics_per_server_));
            }
            for (const bool receive : {false, true}) {
                const SideNumber side = local ? first_local_ + rank * 2 + (receive ? 1 : 0)
                                              : nic_side(rank / schedule.ranks_per_server(), port.nic, receive);
                const bool used = (receive ? schedule.receive_count(rank, lane) : schedule.send_count(rank, lane)) > 0;
                users_[static_cast<std::size_t>(side)] += used ? 1 : 0;
                sides_.push_back(side);
            }
        }
    }
    return {};
}

bool PortTable::any_shared() const {
    return std::any_of(users_.begin(), users_.end(), [](std::int32_t users) { return users > 1; });
}

std::string PortTable::describe(SideNumber side) const {
    const char* direction = side % 2 == 0 ? "send" : "receive";
    if (side >= first_local_) {
        return fmt::format("{} side of the intra-host port of rank {}", direction, (side - first_local_) / 2);
    }
    return fmt::format("{} side of NIC {} of server {}", direction, side / 2 % nics_per_server_,
                       side / 2 / nics_per_server_);
}

} // namespace railbreak::collective::simulation
