// The fluid port model: all flows of a port side share its rate. Private to the simulator.
//
// A flow first waits out the overhead (its engines are busy, no bandwidth is used), then moves at the rate that
// Sharing gives it, which changes whenever a neighbour begins or ends, or a port changes its rate. Where a flow stands
// is brought up to date only when its own rate changes.
//
// Buffers: flows between the same two engines form a stream, one after the other. The send engine *posts* a flow and
// goes on (it is *released*) as soon as all of the flow's data is there and at most the send buffer's worth of the
// stream has still to move. The flow moves even if the receive engine has not come to it yet (it is not *met*), until
// the receive buffer is full of flows that were not; what has moved is taken out at once when the receive engine comes.
// Without buffers a flow starts when both engines have come to it, and frees both when it ends.
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

/// Called when a flow has been received, with both engines at its steps, its start and its end.
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
        Ticks loosened_at = 0;  ///< when it was no longer tied
        std::int32_t hasty = 0; ///< times in a row that it was tied again within a nanosecond
    };
    /// kPosted: waits for the receive engine. kDelayed: in the overhead. kQueued: others of its stream are before it.
    /// kMoved: all of it has moved, but its receive engine is not through with it.
    enum class Phase : std::uint8_t { kIdle, kPosted, kDelayed, kQueued, kMoving, kMoved };
    /// What a flow's next event is, if not that it meets the limit of a link, which is given by its number.
    enum : std::int32_t { kAllMoved = -1, kWindowFull = -2, kThrough = -3 };
    /// Work is in picoseconds of a healthy NIC.
    struct Flow {
        Engine sent; ///< the send engine at the flow's step
        QueueNumber receive = -1;
        Phase phase = Phase::kIdle;
        bool met = false;          ///< the receive engine is at it
        bool complete = false;     ///< all that it forwards was usable when it was posted
        bool shut = false;         ///< it has filled its part of the receive buffer
        std::uint32_t version = 0; ///< of its next event; older ones mean nothing
        std::int32_t next = kAllMoved;
        Ticks start = 0;
        Ticks since = 0;       ///< when `moved` was true
        Ticks not_before = 0;  ///< earliest end
        Ticks moved_at = 0;    ///< when all had moved
        Ticks released_at = 0; ///< when the send engine was through with it
        double work = 0;
        double moved = 0;
        double rate = 0;
        double room = 0; ///< how far it may move before it is met
        double mark = 0; ///< how far it has moved when the send engine is released; infinite: no engine waits for that
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
    [[nodiscard]] const Engine& receiver(FlowNumber number) { return engines_.at(flow(number).receive); }
    /// Flows of a send engine that were posted and not yet received, in order.
    [[nodiscard]] std::vector<FlowNumber>& posted_by(const Engine& sender) {
        return posted_[static_cast<std::size_t>(engines_.number(sender.rank, sender.lane, false) / 2)];
    }
    /// The flow for which a send engine waits, or -1.
    [[nodiscard]] FlowNumber& waits_for(const Engine& sender) {
        return waits_for_[static_cast<std::size_t>(engines_.number(sender.rank, sender.lane, false) / 2)];
    }
    [[nodiscard]] bool next_time();
    void handle(const Event& event);
    [[nodiscard]] bool begin_what_can();
    [[nodiscard]] FlowNumber new_flow();
    void post(QueueNumber send);
    [[nodiscard]] bool meet_receiver(QueueNumber receive);
    void delay(FlowNumber number);
    void join_stream(FlowNumber number);
    void move(FlowNumber number);
    void leave_port(FlowNumber number);
    void release(const Engine& sender);
    void receive(FlowNumber number);
    void set_room(FlowNumber number);
    void set_mark(FlowNumber number);
    void fill_window(FlowNumber number);
    void show(FlowNumber number);
    void usable_at(QueueNumber receive, std::int64_t usable, Ticks at);
    void settle();
    void bring_up_to_date(Flow& flow, double rate) const;
    void review(FlowNumber number);
    void schedule_next(FlowNumber number);
    [[nodiscard]] double until_through(const Flow& flow);
    void hold_if_needed(FlowNumber number);
    [[nodiscard]] bool inputs_over(const Engine& from) const;
    void link_up(FlowNumber number);
    void add_link(FlowNumber number, FlowNumber leader);
    void drop_links(FlowNumber number);
    void remember_end(QueueNumber receive, std::int64_t first, Ticks end);
    [[nodiscard]] Ticks end_of(QueueNumber receive, std::int64_t step) const;
    void meet_leader(FlowNumber number);
    void let_followers_go(FlowNumber leader);
    [[nodiscard]] std::int64_t begun_count(const Engine& receive) const;
    [[nodiscard]] Error explain();

    const PortTable& ports_;
    const Rates& rates_;
    FlowListener listener_;
    bool cut_through_;
    Ticks overhead_;
    Ticks latency_;
    /// Rates that differ by less, as a share, are equal but for rounding. A flow that is let go and tied again because
    /// of that would never get on.
    double rounding_;
    double send_buffer_; ///< in work
    double receive_buffer_;
    std::vector<Nanoseconds> starts_;
    Engines engines_;
    Tally<Ticks> tally_;
    std::vector<Flow> flows_;
    std::vector<FlowNumber> unused_; ///< numbers of flows that have ended
    Sharing sharing_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::deque<Arrival> arrivals_;                ///< in order of time
    std::size_t next_change_ = 0;                 ///< of rates_.changes()
    std::vector<std::vector<FlowNumber>> posted_; ///< of each send queue
    std::vector<FlowNumber> waits_for_;           ///< of each send queue
    std::vector<FlowNumber> flow_into_;           ///< of each receive queue, with cut-through: what comes in
    std::vector<std::vector<Ended>> just_ended_;  ///< of each receive queue, with cut-through, within a latency
    std::vector<Ticks> last_usable_;              ///< of each receive queue: when the last that came is usable
    std::vector<FlowNumber> to_review_;
    Ticks now_ = 0;
};

} // namespace railbreak::collective::simulation
