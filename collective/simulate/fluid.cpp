#include "collective/simulate/fluid.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace railbreak::collective::simulation {

namespace {

/// Rates that differ by less are equal but for rounding. A flow that is let go and tied again because of that would
/// never get on.
constexpr double kRounding = 1e-9;

} // namespace

Fluid::Fluid(const Schedule& schedule, const PortTable& ports, const Rates& rates, const SimulationOptions& options,
             FlowListener listener)
    : ports_(ports), rates_(rates), listener_(std::move(listener)), cut_through_(options.cut_through),
      overhead_(to_ticks(options.flow_overhead)), latency_(to_ticks(options.flow_latency)), starts_(options.rank_start),
      engines_(schedule, ports), tally_(engines_.ranks()), flows_(static_cast<std::size_t>(engines_.queue_count()) / 2),
      sharing_(ports.side_count(), engines_.queue_count() / 2), flow_into_(flows_.size(), -1),
      just_ended_(flows_.size()) {
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
    if (event.version != flow(event.flow).version) {
        return;
    }
    if (flow(event.flow).phase == Phase::kDelayed) {
        move(event.flow);
    } else if (flow(event.flow).meets >= 0) {
        meet(event.flow);
    } else {
        end(event.flow);
    }
}

/// False: the schedule is wrong.
bool Fluid::begin_what_can() {
    for (QueueNumber send = engines_.next_look(); send >= 0; send = engines_.next_look()) {
        const QueueNumber receive = engines_.partner(send);
        if (receive < 0) {
            continue;
        }
        if (!engines_.agree(send, receive)) {
            return false;
        }
        engines_.begin(send, receive);
        Flow& begun = flow(send / 2);
        begun.receive = receive;
        begun.start = now_;
        begun.phase = Phase::kDelayed;
        if (overhead_ == 0) {
            move(send / 2);
        } else {
            events_.push({now_ + overhead_, send / 2, ++begun.version});
        }
    }
    return true;
}

/// The overhead is over: the flow gets a share of its port sides.
void Fluid::move(FlowNumber number) {
    Flow& moving = flow(number);
    moving.phase = Phase::kMoving;
    moving.since = now_;
    moving.not_before = now_;
    moving.work = static_cast<double>(sender(number).head.slice.count) * rates_.element_ticks();
    moving.moved = 0;
    moving.rate = 0;
    flow_into_[static_cast<std::size_t>(moving.receive / 2)] = number;
    sharing_.add(number, sender(number).side, receiver(number).side);
    if (cut_through_) {
        link_up(number);
        usable_later(moving.receive, begun_count(receiver(number)));
    }
}

void Fluid::end(FlowNumber number) {
    Flow& ended = flow(number);
    const QueueNumber receive = ended.receive;
    tally_.add(sender(number), engines_.at(receive), now_, now_ + latency_);
    if (listener_) {
        listener_(sender(number), engines_.at(receive), ended.start, now_);
    }
    let_followers_go(number);
    for (const Link& link : ended.links) {
        if (link.bond == Bond::kTied) {
            sharing_.untie(number, link.leader);
        }
        auto& followers = flow(link.leader).followers;
        followers.erase(std::find(followers.begin(), followers.end(), number));
    }
    ended.links.clear();
    ended.phase = Phase::kIdle;
    ++ended.version;
    sharing_.remove(number);
    flow_into_[static_cast<std::size_t>(receive / 2)] = -1;
    const std::int64_t first = engines_.at(receive).index + 1;
    engines_.end(number * 2, receive);
    remember_end(receive, first);
    usable_later(receive, engines_.at(receive).index);
}

void Fluid::usable_later(QueueNumber receive, std::int64_t usable) {
    if (latency_ == 0) {
        engines_.arrive(receive, usable);
    } else {
        arrivals_.push_back({now_ + latency_, receive, usable});
    }
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
        if (link.bond == Bond::kTied && reviewed.rate < flow(link.leader).rate * (1 - kRounding)) {
            link.bond = Bond::kLoose;
            sharing_.untie(number, link.leader);
        }
    }
    schedule_next(number);
}

void Fluid::schedule_next(FlowNumber number) {
    Flow& next = flow(number);
    double wait = next.rate > 0 ? (next.work - next.moved) / next.rate : std::numeric_limits<double>::infinity();
    bool may_end = true;
    next.meets = -1;
    std::int32_t meets = -1;
    for (std::size_t i = 0; i < next.links.size(); ++i) {
        const Link& link = next.links[i];
        Flow& leader = flow(link.leader);
        bring_up_to_date(leader, leader.rate);
        may_end = may_end && !link.to_end;
        const double gap = leader.moved + link.offset - next.moved;
        const double closing = link.bond == Bond::kHeld ? leader.rate : next.rate - leader.rate;
        const double distance = link.bond == Bond::kHeld ? -gap : gap;
        if (link.bond != Bond::kTied && closing > kRounding * leader.rate && std::max(0.0, distance) / closing < wait) {
            wait = std::max(0.0, distance) / closing;
            meets = static_cast<std::int32_t>(i);
        }
    }
    ++next.version;
    if ((meets < 0 && !may_end) || !(wait < static_cast<double>(kEndOfTime - now_))) {
        return;
    }
    next.meets = meets;
    Ticks at = now_ + static_cast<Ticks>(std::ceil(wait));
    if (meets < 0) {
        at = std::max(at, next.not_before);
    }
    events_.push({at, number, next.version});
}

/// Finds the receives in progress that a flow forwards.
void Fluid::link_up(FlowNumber number) {
    const Engine& from = sender(number);
    for (Lane lane = 0; lane < engines_.lanes(); ++lane) {
        const std::int64_t needed = from.head.after[static_cast<std::size_t>(lane)];
        const QueueNumber queue = engines_.number(from.rank, lane, true);
        const FlowNumber leader = flow_into_[static_cast<std::size_t>(queue / 2)];
        if (needed == 0) {
            continue;
        }
        if (leader >= 0 && engines_.at(queue).index < needed) {
            add_link(number, leader);
        } else {
            Flow& linked = flow(number);
            linked.not_before = std::max(linked.not_before, end_of(queue, needed) + latency_);
        }
    }
}

void Fluid::remember_end(QueueNumber receive, std::int64_t first) {
    if (!cut_through_) {
        return;
    }
    auto& ended = just_ended_[static_cast<std::size_t>(receive / 2)];
    std::erase_if(ended, [this](const Ended& one) { return one.end + latency_ <= now_; });
    ended.push_back({first, engines_.at(receive).index, now_});
}

/// When that step of the receive queue, counted from 1, was over; the start of time where it is usable by now.
Ticks Fluid::end_of(QueueNumber receive, std::int64_t step) const {
    for (const Ended& one : just_ended_[static_cast<std::size_t>(receive / 2)]) {
        if (one.first <= step && step <= one.last) {
            return one.end;
        }
    }
    return 0;
}

void Fluid::add_link(FlowNumber number, FlowNumber leader_number) {
    const Slice& own = sender(number).head.slice;
    Flow& leader = flow(leader_number);
    const Slice& coming = receiver(leader_number).head.slice;
    if (coming.offset >= own.end() || coming.end() <= own.offset) {
        return;
    }
    bring_up_to_date(leader, leader.rate);
    // What is on its way to being usable.
    const double lag = latency_ == 0 ? 0.0 : std::min(leader.moved, leader.rate * static_cast<double>(latency_));
    Link link{.leader = leader_number,
              .offset = static_cast<double>(coming.offset - own.offset) * rates_.element_ticks() - lag,
              .to_end = own.end() >= coming.end()};
    const double room = leader.moved + link.offset;
    if (room < 0) {
        link.bond = Bond::kHeld;
        sharing_.hold(number, true);
    } else if (room == 0) {
        link.bond = Bond::kTied;
        sharing_.tie(number, leader_number);
    }
    flow(number).links.push_back(link);
    leader.followers.push_back(number);
    to_review_.push_back(number);
}

/// A flow has come up to the limit that one of its leaders sets it, or the leader has come to where the flow begins.
void Fluid::meet(FlowNumber number) {
    Flow& met = flow(number);
    bring_up_to_date(met, met.rate);
    Link& link = met.links[static_cast<std::size_t>(met.meets)];
    Flow& leader = flow(link.leader);
    bring_up_to_date(leader, leader.rate);
    met.moved = std::max(0.0, std::min(met.moved, leader.moved + link.offset));
    link.bond = Bond::kTied;
    sharing_.tie(number, link.leader);
    sharing_.hold(number, std::any_of(met.links.begin(), met.links.end(),
                                      [](const Link& other) { return other.bond == Bond::kHeld; }));
    to_review_.push_back(number);
}

/// All that the flow brought is there: nothing of it limits its followers any more.
void Fluid::let_followers_go(FlowNumber leader) {
    for (const FlowNumber number : flow(leader).followers) {
        Flow& follower = flow(number);
        const auto link = std::find_if(follower.links.begin(), follower.links.end(),
                                       [leader](const Link& candidate) { return candidate.leader == leader; });
        if (link->bond == Bond::kTied) {
            sharing_.untie(number, leader);
        }
        if (link->to_end) {
            follower.not_before = std::max(follower.not_before, now_ + latency_);
        }
        follower.links.erase(link);
        ++follower.version; // its next event may have been to meet this leader
        sharing_.hold(number, std::any_of(follower.links.begin(), follower.links.end(),
                                          [](const Link& other) { return other.bond == Bond::kHeld; }));
        to_review_.push_back(number);
    }
    flow(leader).followers.clear();
}

/// Leading steps of a receive queue that are over or have begun; empty ones behind the step in progress come with it.
std::int64_t Fluid::begun_count(const Engine& receive) const {
    std::int64_t count = receive.index + 1;
    while (count < receive.count &&
           engines_.schedule().receive_step(receive.rank, receive.lane, count).slice.count == 0) {
        ++count;
    }
    return count;
}

Error Fluid::explain() {
    for (FlowNumber number = 0; number < static_cast<FlowNumber>(flows_.size()); ++number) {
        if (flow(number).phase != Phase::kMoving) {
            continue;
        }
        for (const SideNumber side : {sender(number).side, receiver(number).side}) {
            if (sharing_.capacity(side) == 0) {
                return Error(ErrorKind::kOutcome, fmt::format("{} never ends: {} stays down",
                                                              engines_.describe(number * 2), ports_.describe(side)))
                    .with("rank", std::to_string(sender(number).rank))
                    .with("step", std::to_string(sender(number).index));
            }
        }
    }
    return engines_.explain();
}

} // namespace railbreak::collective::simulation
