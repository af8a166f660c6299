// How flows share the sides of ports. Private to the simulator.
//
// Max-min: all flows grow at the same pace until a side is full: its flows stay at that rate, the others go on growing.
// The outcome is unique.
//
// Windows: every flow keeps the same small window of data under way, and what a side cannot take at once waits in a
// queue before it. A flow's rate is its window over the sum of the two queueing delays it sees, and a side has a delay
// only when it is full. That is the proportionally fair allocation (Massoulie and Roberts, "Bandwidth sharing:
// objectives and algorithms", 1999): a flow that is squeezed at both ends gets less than one that is squeezed at one.
//
// In both, a flow that is tied to a leader (it forwards what the leader brings, and has caught up) is no faster than
// its leader, and a held flow does not move at all. A change concerns only the flows that hang together with it by way
// of sides and ties, and only those are recomputed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/simulate/ports.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::collective::simulation {

/// Number of a flow in progress; numbers of flows that have ended are used again.
using FlowNumber = std::int32_t;

/// Who uses which sides, and at which rate. Rates are fractions of a healthy NIC's; infinity = without limit.
class Sharing {
public:
    Sharing(SideNumber sides, PortSharing discipline)
        : sides_(static_cast<std::size_t>(sides)), discipline_(discipline) {}

    [[nodiscard]] double capacity(SideNumber side) const { return sides_[static_cast<std::size_t>(side)].capacity; }
    [[nodiscard]] double rate(FlowNumber flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }

    void set_capacity(SideNumber side, double capacity);
    /// A new flow, not held, without ties; its rate is 0 until settle().
    void add(FlowNumber flow, SideNumber send, SideNumber receive);
    /// Its ties must have been undone.
    void remove(FlowNumber flow);
    void hold(FlowNumber flow, bool held);
    void tie(FlowNumber follower, FlowNumber leader);
    void untie(FlowNumber follower, FlowNumber leader);

    /// Computes the rates anew wherever something has changed. Lists each flow with another rate than before, and that
    /// former rate, in the order in which it came upon them.
    const std::vector<std::pair<FlowNumber, double>>& settle();

private:
    struct Side {
        double capacity = 0;
        std::vector<FlowNumber> flows;
        double left = 0;       ///< while settling: not given away
        std::int32_t open = 0; ///< while settling: flows without a rate
        double delay = 0;      ///< windows: of its queue, in windows over the healthy rate; kept between rounds
        std::uint64_t round = 0;
    };
    struct Flow {
        SideNumber send = -1;
        SideNumber receive = -1;
        double rate = 0;
        double former = 0;
        bool held = false;
        bool settled = false;
        std::vector<FlowNumber> leaders;
        std::vector<FlowNumber> followers;
        std::uint64_t round = 0;
    };

    [[nodiscard]] Side& side(SideNumber number) { return sides_[static_cast<std::size_t>(number)]; }
    [[nodiscard]] Flow& flow(FlowNumber number) { return flows_[static_cast<std::size_t>(number)]; }
    void touch(SideNumber number) { touched_.push_back(number); }
    [[nodiscard]] bool settle_alone(SideNumber number);
    void collect(SideNumber first);
    void reach_side(SideNumber number);
    void reach_flow(FlowNumber number);
    void fill();
    void fill_windows();
    void put_leaders_first();
    void set_window_rates();
    [[nodiscard]] double leaders_rate(const Flow& follower) const;
    [[nodiscard]] double relax(SideNumber number);
    void keep_to_capacities();
    void give(FlowNumber number, double rate);

    std::vector<Side> sides_;
    std::vector<Flow> flows_;
    PortSharing discipline_;
    std::vector<SideNumber> touched_;
    std::uint64_t round_ = 0;
    std::vector<SideNumber> component_sides_;
    std::vector<FlowNumber> component_flows_;
    std::vector<FlowNumber> to_give_;
    std::vector<std::pair<FlowNumber, double>> changed_;
};

} // namespace railbreak::collective::simulation
