// The fluid port model: all flows of a port side share its rate, max-min fair. Private to the simulator.
//
// A flow first waits out the overhead (its engines are busy, no bandwidth is used), then moves at the rate that
// Sharing gives it, which changes whenever a neighbour begins or ends, or a port changes its rate. Where a flow stands
// is brought up to date only when its own rate changes.
//
// Cut-through: a flow may move while receives that it forwards are in progress. Let x be how far such a receive has
// got; then the flow has to stay at or below x plus a fixed offset between the two slices. It is *held* while that is
// below its first element, *tied* to the receive while it is at the limit, and *loose* below it. With a latency L the
// flow begins L after the receive at the earliest, keeps a distance of what arrives within L, and ends L after it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "base/error.hpp"
#include "collective/simulate/engines.hpp"
#include "collective/simulate/exclusive.hpp"
#include "collective/simulate/rates.hpp"
#include "collective/simulate/sharing.hpp"

namespace railbreak::collective::simulation {

/// Called when a flow ends, with the engines still at its steps, its start and its end.
using FlowListener = std::function<void(const Engine&, const Engine&, const Ticks&, const Ticks&)>;

/// One run in the fluid model.
class Fluid {
public:
    Fluid(const Schedule& schedule, const PortTable& ports, const Rates& rates, const SimulationOptions& options,
          FlowListener listener);

    /// Runs to the end. Errors as simulate().
    Result<void> run();
    [[nodiscard]] const Tally<Ticks>& tally() const { return tally_; }

private:
    enum class Bond : std::uint8_t { kHeld, kTied, kLoose };
    /// A receive in progress that a flow forwards.
    struct Link {
        FlowNumber leader = -1;
        double offset = 0;   ///< the flow may be at most this far beyond the leader, in work
        bool to_end = false; ///< the flow's last element comes with or after the leader's last
        Bond bond = Bond::kLoose;
    };
    enum class Phase : std::uint8_t { kIdle, kDelayed, kMoving };
    /// Work is in picoseconds of a healthy NIC.
    struct Flow {
        QueueNumber receive = -1;
        Phase phase = Phase::kIdle;
        std::uint32_t version = 0; ///< of its next event; older ones mean nothing
        std::int32_t meets = -1;   ///< link whose limit it reaches with its next event; -1: the event is its end
        Ticks start = 0;
        Ticks since = 0;      ///< when `moved` was true
        Ticks not_before = 0; ///< earliest end
        double work = 0;
        double moved = 0;
        double rate = 0;
        std::vector<Link> links;
        std::vector<FlowNumber> followers; ///< flows with a link to this one
    };
    /// A flow's next event; or, below zero, the start of rank -1 - flow.
    struct Event {
        Ticks at;
        FlowNumber flow;
        std::uint32_t version;
        bool operator>(const Event& other) const { return at != other.at ? at > other.at : flow > other.flow; }
    };
    struct Arrival {
        Ticks at;
        QueueNumber receive;
        std::int64_t usable;
    };
    /// Steps first..last of a receive queue, counted from 1, were over at `end`: one receive and empty ones behind it.
    struct Ended {
        std::int64_t first;
        std::int64_t last;
        Ticks end;
    };

    [[nodiscard]] Flow& flow(FlowNumber number) { return flows_[static_cast<std::size_t>(number)]; }
    [[nodiscard]] const Engine& sender(FlowNumber number) const { return engines_.at(number * 2); }
    [[nodiscard]] const Engine& receiver(FlowNumber number) { return engines_.at(flow(number).receive); }
    [[nodiscard]] bool next_time();
    void handle(const Event& event);
    [[nodiscard]] bool begin_what_can();
    void move(FlowNumber number);
    void end(FlowNumber number);
    void usable_later(QueueNumber receive, std::int64_t usable);
    void settle();
    void bring_up_to_date(Flow& flow, double rate) const;
    void review(FlowNumber number);
    void schedule_next(FlowNumber number);
    void link_up(FlowNumber number);
    void add_link(FlowNumber number, FlowNumber leader);
    void remember_end(QueueNumber receive, std::int64_t first);
    [[nodiscard]] Ticks end_of(QueueNumber receive, std::int64_t step) const;
    void meet(FlowNumber number);
    void let_followers_go(FlowNumber leader);
    [[nodiscard]] std::int64_t begun_count(const Engine& receive) const;
    [[nodiscard]] Error explain();

    const PortTable& ports_;
    const Rates& rates_;
    FlowListener listener_;
    bool cut_through_;
    Ticks overhead_;
    Ticks latency_;
    std::vector<Nanoseconds> starts_;
    Engines engines_;
    Tally<Ticks> tally_;
    std::vector<Flow> flows_; ///< of each send queue
    Sharing sharing_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::deque<Arrival> arrivals_;      ///< in order of time, as the latency is always the same
    std::size_t next_change_ = 0;       ///< of rates_.changes()
    std::vector<FlowNumber> flow_into_; ///< of each receive queue: the flow it is busy with
    /// Of each receive queue, with cut-through: what ended less than a latency ago, in order.
    std::vector<std::vector<Ended>> just_ended_;
    std::vector<FlowNumber> to_review_;
    Ticks now_ = 0;
};

} // namespace railbreak::collective::simulation
