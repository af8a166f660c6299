// Which side of which port every queue of a schedule uses, and how fast that side is. Private to the simulator.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/rational.hpp"
#include "collective/schedule.hpp"
#include "collective/topology.hpp"

namespace railbreak::collective::simulation {

/// A rate, capacity or wait without end.
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Number of a queue of a schedule: (rank * lanes + lane) * 2 + (0 send, 1 receive).
using QueueNumber = std::int32_t;
/// Number of a port side; see PortTable.
using SideNumber = std::int32_t;

/// The sides of all ports: first the NICs server by server, then the intra-host port of each rank; of each port the
/// send side, then the receive side.
class PortTable {
public:
    /// Errors (kInput): the topology has another number of ranks or of ranks a server than the schedule, a slowdown is
    /// not above 0, a lane is attached to a NIC that no server has.
    [[nodiscard]] static Result<PortTable> make(const Schedule& schedule, const Topology& topology);

    [[nodiscard]] SideNumber side_count() const { return static_cast<SideNumber>(slowdowns_.size()); }
    [[nodiscard]] SideNumber side_of(QueueNumber queue) const { return sides_[static_cast<std::size_t>(queue)]; }
    [[nodiscard]] SideNumber nic_side(Rank server, std::int32_t nic, bool receive) const {
        return (server * nics_per_server_ + nic) * 2 + (receive ? 1 : 0);
    }
    /// Time for an element, in units of that of a healthy NIC. 0: without limit. Negative: dead, nothing ever moves.
    [[nodiscard]] const Rational& slowdown(SideNumber side) const { return slowdowns_[static_cast<std::size_t>(side)]; }
    /// Whether queues of several ranks or lanes use the side.
    [[nodiscard]] bool shared(SideNumber side) const { return users_[static_cast<std::size_t>(side)] > 1; }
    [[nodiscard]] bool any_shared() const;
    /// "send side of NIC 1 of server 3", for messages.
    [[nodiscard]] std::string describe(SideNumber side) const;

private:
    void add_speeds(const Topology& topology);
    Result<void> add_queues(const Schedule& schedule);

    std::int32_t nics_per_server_ = 1;
    SideNumber first_local_ = 0;
    std::vector<SideNumber> sides_; ///< of each queue
    std::vector<Rational> slowdowns_;
    std::vector<std::int32_t> users_;
};

} // namespace railbreak::collective::simulation
