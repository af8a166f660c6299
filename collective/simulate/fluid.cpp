#include "collective/simulate/fluid.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace railbreak::collective::simulation {

namespace {

/// A link that is loosened and tied again at once more often than this stays tied.
constexpr std::int32_t kMostHasty = 16;

double to_work(ByteCount bytes, const Rates& rates, const SimulationOptions& options) {
    return static_cast<double>(bytes.bytes()) / options.element_bytes * rates.element_ticks();
}

} // namespace

Fluid::Fluid(const Schedule& schedule, const PortTable& ports, const Rates& rates, const SimulationOptions& options,
             FlowListener listener)
    : ports_(ports), rates_(rates), listener_(std::move(listener)), cut_through_(options.cut_through),
      overhead_(to_ticks(options.flow_overhead)), latency_(to_ticks(options.flow_latency)),
      rounding_(options.sharing == PortSharing::kMaxMin ? 1e-9 : 1e-6),
      send_buffer_(to_work(options.send_buffer, rates, options)),
      receive_buffer_(to_work(options.receive_buffer, rates, options)), starts_(options.rank_start),
      engines_(schedule, ports), tally_(engines_.ranks()), sharing_(ports.side_count(), options.sharing),
      posted_(static_cast<std::size_t>(engines_.queue_count()) / 2), waits_for_(posted_.size(), -1),
      flow_into_(posted_.size(), -1), just_ended_(posted_.size()), last_usable_(posted_.size()) {
    for (SideNumber side = 0; side < ports.side_count(); ++side) {
        sharing_.set_capacity(side, rates.initial(side));
    }
}

Result<void> Fluid::run() {
    for (Rank rank = 0; rank < engines_.ranks(); ++rank) {
        const Ticks start = starts_.empty() ? 0 : to_ticks(starts_[static_cast<std::size_t>(rank)]);
        tally_.rank_ends[static_cast<std::size_t>(rank)] = start;
        events_.push({start, -1 - rank, 0});
    }
    while (next_time()) {
        for (const auto& changes = rates_.changes(); next_change_ < changes.size() && changes[next_change_].at <= now_;
             ++next_change_) {
            sharing_.set_capacity(changes[next_change_].side, changes[next_change_].rate);
        }
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
        settle();
    }
    if (engines_.all_done()) {
        return {};
    }
    return fail(explain());
}

/// Moves on to the next instant at which something happens; false: nothing will any more.
bool Fluid::next_time() {
    Ticks next = kEndOfTime;
    if (!events_.empty()) {
        next = events_.top().at;
    }
    if (!arrivals_.empty()) {
        next = std::min(next, arrivals_.front().at);
    }
    if (next_change_ < rates_.changes().size() && (next < kEndOfTime || !engines_.all_done())) {
        next = std::min(next, rates_.changes()[next_change_].at);
    }
    now_ = next;
    return next < kEndOfTime;
}

void Fluid::handle(const Event& event) {
    if (event.flow < 0) {
        engines_.open(-1 - event.flow);
        return;
    }
    const Flow& its = flow(event.flow);
    if (event.version != its.version) {
        return;
    }
    if (its.phase == Phase::kDelayed) {
        join_stream(event.flow);
    } else if (its.phase == Phase::kMoved) {
        receive(event.flow);
    } else if (its.next >= 0) {
        meet_leader(event.flow);
    } else if (its.next == kWindowFull) {
        fill_window(event.flow);
    } else if (its.next == kThrough) {
        release(its.sent);
        to_review_.push_back(event.flow);
    } else {
        leave_port(event.flow);
        if (its.met) {
            receive(event.flow);
        }
    }
}

/// False: the schedule is wrong.
bool Fluid::begin_what_can() {
    for (QueueNumber queue = engines_.next_look(); queue >= 0; queue = engines_.next_look()) {
        if (!engines_.ready(queue)) {
            continue;
        }
        const bool sends = queue % 2 == 0;
        if (sends) {
            post(queue);
        }
        if (!meet_receiver(sends ? engines_.opposite(queue) : queue)) {
            return false;
        }
    }
    return true;
}

FlowNumber Fluid::new_flow() {
    if (unused_.empty()) {
        flows_.emplace_back();
        return static_cast<FlowNumber>(flows_.size()) - 1;
    }
    const FlowNumber number = unused_.back();
    unused_.pop_back();
    return number;
}

void Fluid::post(QueueNumber send) {
    const FlowNumber number = new_flow();
    Flow& posted = flow(number);
    posted.sent = engines_.at(send);
    posted.receive = engines_.opposite(send);
    posted.phase = Phase::kPosted;
    posted.met = false;
    posted.complete = inputs_over(posted.sent);
    posted.start = now_;
    posted.not_before = now_;
    posted.work = static_cast<double>(posted.sent.head.slice.count) * rates_.element_ticks();
    posted.moved = 0;
    posted.rate = 0;
    posted.mark = kInfinite;
    engines_.begin(send);
    waits_for(posted.sent) = number;
    posted_by(posted.sent).push_back(number);
    if (send_buffer_ > 0 || receive_buffer_ > 0) {
        delay(number);
    }
}

/// A receive engine that can begin takes up the flow that was posted for it, if there is one. False: they disagree.
bool Fluid::meet_receiver(QueueNumber receive) {
    if (!engines_.ready(receive)) {
        return true;
    }
    const Engine& to = engines_.at(receive);
    const auto& posted = posted_by(engines_.at(engines_.opposite(receive)));
    const auto first = std::find_if(posted.begin(), posted.end(), [&](FlowNumber number) {
        return flow(number).receive == receive && !flow(number).met;
    });
    if (first == posted.end()) {
        return true;
    }
    Flow& met = flow(*first);
    if (!engines_.agree(met.sent, to)) {
        return false;
    }
    engines_.begin(receive);
    met.met = true;
    if (met.phase == Phase::kPosted) {
        met.start = now_;
        delay(*first);
        return true;
    }
    met.not_before = std::max(met.not_before, now_ + overhead_);
    if (met.phase == Phase::kMoved) {
        events_.push({met.not_before, *first, ++met.version});
    } else if (met.phase == Phase::kMoving) {
        show(*first);
    }
    for (auto other = first; other != posted.end(); ++other) {
        if (flow(*other).receive == receive && flow(*other).phase == Phase::kMoving) {
            set_room(*other);
        }
    }
    return true;
}

void Fluid::delay(FlowNumber number) {
    flow(number).phase = Phase::kDelayed;
    if (overhead_ == 0) {
        join_stream(number);
    } else {
        events_.push({now_ + overhead_, number, ++flow(number).version});
    }
}

/// The overhead is over: the flow moves, or waits behind others of its stream.
void Fluid::join_stream(FlowNumber number) {
    flow(number).phase = Phase::kQueued;
    for (const FlowNumber earlier : posted_by(flow(number).sent)) {
        if (flow(earlier).receive == flow(number).receive && flow(earlier).phase == Phase::kMoving) {
            set_mark(earlier);
            to_review_.push_back(earlier);
            return;
        }
    }
    move(number);
}

/// The flow gets a share of its port sides.
void Fluid::move(FlowNumber number) {
    Flow& moving = flow(number);
    moving.phase = Phase::kMoving;
    moving.since = now_;
    moving.not_before = std::max(moving.not_before, now_);
    sharing_.add(number, moving.sent.side, receiver(number).side);
    moving.shut = false;
    set_room(number);
    set_mark(number);
    if (cut_through_) {
        link_up(number);
    }
    if (moving.met) {
        show(number);
    }
}

/// All of the flow has moved: the next one of its stream does.
void Fluid::leave_port(FlowNumber number) {
    Flow& left = flow(number);
    let_followers_go(number);
    drop_links(number);
    sharing_.remove(number);
    left.phase = Phase::kMoved;
    left.moved = left.work;
    left.moved_at = now_;
    left.rate = 0;
    ++left.version;
    if (waits_for(left.sent) == number) {
        release(left.sent);
    }
    for (const FlowNumber next : posted_by(left.sent)) {
        if (flow(next).receive == left.receive && flow(next).phase == Phase::kQueued) {
            move(next);
            return;
        }
    }
}

/// The send engine is through with the flow for which it waits, and goes on.
void Fluid::release(const Engine& sender) {
    FlowNumber& waited_for = waits_for(sender);
    flow(waited_for).released_at = now_;
    for (const FlowNumber number : posted_by(sender)) {
        flow(number).mark = kInfinite;
    }
    waited_for = -1;
    engines_.end(engines_.number(sender.rank, sender.lane, false));
}

/// The receive engine is through with a flow that has moved.
void Fluid::receive(FlowNumber number) {
    Flow& ended = flow(number);
    const QueueNumber queue = ended.receive;
    // In order: what came before may still be on its way to being usable.
    const Ticks usable = std::max({now_, ended.moved_at + latency_, last_usable_[static_cast<std::size_t>(queue / 2)]});
    tally_.add(ended.sent, engines_.at(queue), ended.released_at, usable);
    if (listener_) {
        listener_(ended.sent, engines_.at(queue), ended.start, now_);
    }
    auto& posted = posted_by(ended.sent);
    posted.erase(std::find(posted.begin(), posted.end(), number));
    ended.phase = Phase::kIdle;
    ++ended.version;
    unused_.push_back(number);
    flow_into_[static_cast<std::size_t>(queue / 2)] = -1;
    const std::int64_t first = engines_.at(queue).index + 1;
    engines_.end(queue);
    remember_end(queue, first, usable - latency_);
    usable_at(queue, engines_.at(queue).index, usable);
}

/// How far a moving flow may go: to its end if it is met, else as far as the receive buffer has room for it.
void Fluid::set_room(FlowNumber number) {
    Flow& moving = flow(number);
    moving.room = kInfinite;
    if (!moving.met) {
        moving.room = receive_buffer_;
        for (const FlowNumber earlier : posted_by(moving.sent)) {
            if (earlier == number) {
                break;
            }
            const bool in_the_way = flow(earlier).receive == moving.receive && !flow(earlier).met;
            moving.room -= in_the_way ? flow(earlier).work : 0;
        }
    }
    moving.shut = moving.moved >= moving.room;
    hold_if_needed(number);
    to_review_.push_back(number);
}

/// How far a moving flow has to go until the send engine is through with what it waits for, if that is on its stream:
/// until the send buffer holds all of the stream that has not moved.
void Fluid::set_mark(FlowNumber number) {
    Flow& moving = flow(number);
    moving.mark = kInfinite;
    const FlowNumber waited_for = waits_for(moving.sent);
    if (waited_for < 0 || send_buffer_ == 0 || flow(waited_for).receive != moving.receive ||
        (waited_for != number && (flow(waited_for).phase != Phase::kQueued || !flow(waited_for).complete))) {
        return;
    }
    double behind = 0;
    bool passed = false;
    for (const FlowNumber other : posted_by(moving.sent)) {
        behind += passed && flow(other).receive == moving.receive ? flow(other).work : 0;
        passed = passed || other == number;
    }
    moving.mark = moving.work + behind - send_buffer_;
}

/// A flow that is not met can go no further.
void Fluid::fill_window(FlowNumber number) {
    Flow& full = flow(number);
    bring_up_to_date(full, full.rate);
    full.moved = full.room;
    full.shut = true;
    hold_if_needed(number);
    to_review_.push_back(number);
}

/// What comes in can be forwarded from now on: the flow is met and has begun to move.
void Fluid::show(FlowNumber number) {
    if (cut_through_) {
        const QueueNumber queue = flow(number).receive;
        flow_into_[static_cast<std::size_t>(queue / 2)] = number;
        usable_at(queue, begun_count(receiver(number)),
                  std::max(now_ + latency_, last_usable_[static_cast<std::size_t>(queue / 2)]));
    }
}

void Fluid::usable_at(QueueNumber receive, std::int64_t usable, Ticks at) {
    last_usable_[static_cast<std::size_t>(receive / 2)] = at;
    if (at <= now_) {
        engines_.arrive(receive, usable);
        return;
    }
    const auto later = std::upper_bound(arrivals_.begin(), arrivals_.end(), at,
                                        [](Ticks when, const Arrival& arrival) { return when < arrival.at; });
    arrivals_.insert(later, {at, receive, usable});
}

/// New rates, and the events that follow from them.
void Fluid::settle() {
    for (const auto& [number, former] : sharing_.settle()) {
        Flow& changed = flow(number);
        bring_up_to_date(changed, former);
        changed.rate = sharing_.rate(number);
        to_review_.push_back(number);
        to_review_.insert(to_review_.end(), changed.followers.begin(), changed.followers.end());
    }
    std::sort(to_review_.begin(), to_review_.end());
    to_review_.erase(std::unique(to_review_.begin(), to_review_.end()), to_review_.end());
    for (const FlowNumber number : to_review_) {
        if (flow(number).phase == Phase::kMoving) {
            review(number);
        }
    }
    to_review_.clear();
}

void Fluid::bring_up_to_date(Flow& flow, double rate) const {
    if (std::isinf(rate)) {
        flow.moved = flow.work;
    } else {
        flow.moved = std::min(flow.work, flow.moved + rate * static_cast<double>(now_ - flow.since));
    }
    flow.since = now_;
}

/// After a change of its rate or of a leader's: which of its limits still bind, and when does what happen to it?
void Fluid::review(FlowNumber number) {
    Flow& reviewed = flow(number);
    bring_up_to_date(reviewed, reviewed.rate);
    for (Link& link : reviewed.links) {
        if (link.bond == Bond::kTied && link.hasty < kMostHasty &&
            reviewed.rate < flow(link.leader).rate * (1 - rounding_)) {
            link.bond = Bond::kLoose;
            link.loosened_at = now_;
            sharing_.untie(number, link.leader);
        }
    }
    schedule_next(number);
}

void Fluid::schedule_next(FlowNumber number) {
    Flow& next = flow(number);
    double wait = next.rate > 0 ? (next.work - next.moved) / next.rate : kInfinite;
    bool may_end = true;
    std::int32_t what = kAllMoved;
    for (std::size_t i = 0; i < next.links.size(); ++i) {
        const Link& link = next.links[i];
        Flow& leader = flow(link.leader);
        bring_up_to_date(leader, leader.rate);
        may_end = may_end && !link.to_end;
        const double gap = leader.moved + link.offset - next.moved;
        const double closing = link.bond == Bond::kHeld ? leader.rate : next.rate - leader.rate;
        const double distance = link.bond == Bond::kHeld ? -gap : gap;
        if (link.bond != Bond::kTied && closing > rounding_ * leader.rate && std::max(0.0, distance) / closing < wait) {
            wait = std::max(0.0, distance) / closing;
            what = static_cast<std::int32_t>(i);
        }
    }
    if (what == kAllMoved && !may_end) {
        wait = kInfinite;
    }
    if (next.room < next.work && next.rate > 0 && (next.room - next.moved) / next.rate <= wait) {
        wait = std::max(0.0, next.room - next.moved) / next.rate;
        what = kWindowFull;
    }
    if (const double through = until_through(next); through < wait) {
        wait = through;
        what = kThrough;
    }
    ++next.version;
    if (!(wait < static_cast<double>(kEndOfTime - now_))) {
        return;
    }
    next.next = what;
    Ticks at = now_ + static_cast<Ticks>(std::ceil(wait));
    if (what == kAllMoved || (what == kThrough && waits_for(next.sent) == number)) {
        at = std::max(at, next.not_before);
    }
    events_.push({at, number, next.version});
}

Error Fluid::explain() {
    for (FlowNumber number = 0; number < static_cast<FlowNumber>(flows_.size()); ++number) {
        const Flow& stuck = flow(number);
        if (stuck.phase != Phase::kMoving || stuck.shut) {
            continue;
        }
        for (const SideNumber side : {stuck.sent.side, receiver(number).side}) {
            if (sharing_.capacity(side) == 0) {
                return Error(ErrorKind::kOutcome,
                             fmt::format("{} never ends: {} stays down", Engines::describe(stuck.sent, false),
                                         ports_.describe(side)))
                    .with("rank", std::to_string(stuck.sent.rank))
                    .with("step", std::to_string(stuck.sent.index));
            }
        }
    }
    return engines_.explain();
}

} // namespace railbreak::collective::simulation
