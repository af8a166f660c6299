// The exclusive port model: a flow holds both its port sides from its start to its end. Private to the simulator.
//
// Events are the ends of flows (and the starts of late ranks), in order of time. An engine looks at its next step when
// something happened that may let it begin: its own flow ended, data arrived, its peer came free. On a port of its own
// it begins then. Where several engines share a port side, the flows that are ready queue for it: whenever sides have
// come free, of all flows that wait for them the one that has been ready longest begins if both its sides are free,
// then the next, and so on; of equally long ones the one with the smaller send queue number.
//
// All events of an instant are handled before any flow of that instant begins on a shared port, so results do not
// depend on the order in which simultaneous events are handled. At most one flow per send engine is in memory.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "collective/simulate/engines.hpp"
#include "collective/simulate/ports.hpp"

namespace railbreak::collective::simulation {

/// What a run adds up, in the time unit of its Pace.
template <class Time> struct Tally {
    explicit Tally(Rank ranks)
        : rank_ends(static_cast<std::size_t>(ranks)), elements_sent(rank_ends.size()),
          elements_received(rank_ends.size()) {}

    /// Counts a flow that has ended: when its sender was through with it, and when the receiver can use it.
    void add(const Engine& from, const Engine& to, const Time& sent, const Time& usable) {
        const auto sender = static_cast<std::size_t>(from.rank);
        const auto receiver = static_cast<std::size_t>(to.rank);
        elements_sent[sender] += from.head.slice.count;
        elements_received[receiver] += from.head.slice.count;
        rank_ends[sender] = std::max(rank_ends[sender], sent);
        rank_ends[receiver] = std::max(rank_ends[receiver], usable);
        ++flows;
    }

    std::int64_t flows = 0;
    std::vector<Time> rank_ends;
    std::vector<std::int64_t> elements_sent;
    std::vector<std::int64_t> elements_received;
};

/// Pace says how long things take:
///     using Time;                                                  an integer type
///     Time rank_start(Rank) const; Time latency() const;
///     std::optional<Time> flow_end(SideNumber send, SideNumber receive, std::int64_t elements, Time start) const;
///                                                                  nothing: never
template <class Pace> class Exclusive {
public:
    using Time = typename Pace::Time;
    /// Called when a flow ends, with the engines still at its steps, its start and its end.
    using Listener = std::function<void(const Engine&, const Engine&, const Time&, const Time&)>;

    Exclusive(const Schedule& schedule, const PortTable& ports, const Pace& pace, Listener listener)
        : ports_(ports), pace_(pace), listener_(std::move(listener)), engines_(schedule, ports),
          tally_(engines_.ranks()), flows_(static_cast<std::size_t>(engines_.queue_count()) / 2) {
        if (ports.any_shared()) {
            sides_.resize(static_cast<std::size_t>(ports.side_count()));
        }
    }

    /// Runs to the end. Errors as simulate().
    Result<void> run() {
        for (Rank rank = 0; rank < engines_.ranks(); ++rank) {
            events_.push({pace_.rank_start(rank), -1 - rank});
            tally_.rank_ends[static_cast<std::size_t>(rank)] = pace_.rank_start(rank);
        }
        while (!events_.empty() || !arrivals_.empty()) {
            now_ = arrivals_.empty() || (!events_.empty() && events_.top().at < arrivals_.front().at)
                       ? events_.top().at
                       : arrivals_.front().at;
            while (!arrivals_.empty() && arrivals_.front().at == now_) {
                engines_.arrive(arrivals_.front().receive, arrivals_.front().usable);
                arrivals_.pop_front();
            }
            while (!events_.empty() && events_.top().at == now_) {
                const Event event = events_.top();
                events_.pop();
                handle(event);
            }
            if (!begin_what_can()) {
                return fail(engines_.explain());
            }
        }
        if (engines_.all_done()) {
            return {};
        }
        return fail(stuck_ ? explain_stuck() : engines_.explain());
    }

    [[nodiscard]] const Tally<Time>& tally() const { return tally_; }

private:
    /// End of the flow of a send queue; or, below zero, the start of rank -1 - queue.
    struct Event {
        Time at;
        QueueNumber queue;
        bool operator>(const Event& other) const { return at != other.at ? at > other.at : queue > other.queue; }
    };
    struct Arrival {
        Time at;
        QueueNumber receive;
        std::int64_t usable;
    };
    struct Flow {
        QueueNumber receive = -1;
        Time start{};
    };
    /// A flow that is ready and waits for its port sides.
    struct Claim {
        Time since;
        QueueNumber send;
        auto operator<=>(const Claim&) const = default;
    };
    struct Side {
        bool busy = false;
        std::set<Claim> claims;
    };

    [[nodiscard]] Flow& flow(QueueNumber send) { return flows_[static_cast<std::size_t>(send / 2)]; }
    [[nodiscard]] Side& side(QueueNumber queue) { return sides_[static_cast<std::size_t>(engines_.at(queue).side)]; }

    void handle(const Event& event) {
        if (event.queue < 0) {
            engines_.open(-1 - event.queue);
            return;
        }
        const QueueNumber send = event.queue;
        const QueueNumber receive = flow(send).receive;
        tally_.add(engines_.at(send), engines_.at(receive), now_, now_ + pace_.latency());
        if (listener_) {
            listener_(engines_.at(send), engines_.at(receive), flow(send).start, now_);
        }
        engines_.end(send);
        engines_.end(receive);
        if (pace_.latency() == 0) {
            engines_.arrive(receive, engines_.at(receive).index);
        } else {
            arrivals_.push_back({now_ + pace_.latency(), receive, engines_.at(receive).index});
        }
        if (!sides_.empty()) {
            for (const QueueNumber queue : {send, receive}) {
                side(queue).busy = false;
                stirred_.push_back(engines_.at(queue).side);
            }
        }
    }

    /// False: the schedule is wrong.
    bool begin_what_can() {
        for (QueueNumber queue = engines_.next_look(); queue >= 0; queue = engines_.next_look()) {
            const QueueNumber send = engines_.able_to_send(queue);
            if (send < 0) {
                continue;
            }
            const QueueNumber receive = engines_.opposite(send);
            if (!engines_.agree(engines_.at(send), engines_.at(receive))) {
                return false;
            }
            if (!ports_.shared(engines_.at(send).side) && !ports_.shared(engines_.at(receive).side)) {
                begin(send, receive);
            } else {
                claim(send, receive);
            }
        }
        if (!stirred_.empty()) {
            arbitrate();
        }
        return true;
    }

    void claim(QueueNumber send, QueueNumber receive) {
        // Busy from here on, so that nobody looks at it again; it runs when it gets its sides.
        engines_.begin(send);
        engines_.begin(receive);
        flow(send).receive = receive;
        for (const QueueNumber queue : {send, receive}) {
            side(queue).claims.insert({now_, send});
            stirred_.push_back(engines_.at(queue).side);
        }
    }

    void arbitrate() {
        std::set<Claim> claims;
        for (const SideNumber number : stirred_) {
            const Side& stirred = sides_[static_cast<std::size_t>(number)];
            claims.insert(stirred.claims.begin(), stirred.claims.end());
        }
        stirred_.clear();
        for (const Claim& claim : claims) {
            const QueueNumber receive = flow(claim.send).receive;
            if (side(claim.send).busy || side(receive).busy) {
                continue;
            }
            for (const QueueNumber queue : {claim.send, receive}) {
                side(queue).claims.erase(claim);
                side(queue).busy = true;
            }
            begin(claim.send, receive);
        }
    }

    void begin(QueueNumber send, QueueNumber receive) {
        engines_.begin(send);
        engines_.begin(receive);
        flow(send) = {receive, now_};
        const Engine& from = engines_.at(send);
        const std::optional<Time> end =
            pace_.flow_end(from.side, engines_.at(receive).side, from.head.slice.count, now_);
        if (end) {
            events_.push({*end, send});
        } else if (!stuck_) {
            stuck_ = send;
        }
    }

    [[nodiscard]] Error explain_stuck() {
        const QueueNumber receive = flow(*stuck_).receive;
        return Error(ErrorKind::kOutcome,
                     fmt::format("{} never ends: {} or {} stays down", Engines::describe(engines_.at(*stuck_), false),
                                 ports_.describe(engines_.at(*stuck_).side),
                                 ports_.describe(engines_.at(receive).side)))
            .with("rank", std::to_string(engines_.at(*stuck_).rank))
            .with("step", std::to_string(engines_.at(*stuck_).index));
    }

    const PortTable& ports_;
    const Pace& pace_;
    Listener listener_;
    Engines engines_;
    Tally<Time> tally_;
    std::vector<Flow> flows_; ///< of each send queue
    std::vector<Side> sides_; ///< empty: no side is shared
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::deque<Arrival> arrivals_; ///< in order of time, as the latency is always the same
    std::vector<SideNumber> stirred_;
    std::optional<QueueNumber> stuck_; ///< the first flow that never ends
    Time now_{};
};

} // namespace railbreak::collective::simulation
