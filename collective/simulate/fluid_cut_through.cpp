// The cut-through half of the fluid model: flows that forward what is still arriving.
#include <algorithm>
#include <limits>

#include "collective/simulate/fluid.hpp"

namespace railbreak::collective::simulation {

/// How long until the send engine is through with the flow for which it waits: until there is room for the rest in the
/// send buffer and, where that is this flow, all that it forwards has come.
double Fluid::until_through(const Flow& moving) {
    if (moving.mark == kInfinite) {
        return kInfinite;
    }
    const double to_move = moving.mark - moving.moved;
    double wait = to_move <= 0 ? 0 : kInfinite;
    if (to_move > 0 && moving.rate > 0) {
        wait = to_move / moving.rate;
    }
    if (&flow(waits_for(moving.sent)) != &moving) {
        return wait;
    }
    for (const Link& link : moving.links) {
        const Flow& leader = flow(link.leader);
        const double to_come = moving.work - link.offset - leader.moved;
        if (link.to_end || (to_come > 0 && leader.rate == 0)) {
            return kInfinite;
        }
        wait = to_come > 0 ? std::max(wait, to_come / leader.rate) : wait;
    }
    return wait;
}

/// A flow stands still while its part of the receive buffer is full or it waits for the first of what it forwards.
void Fluid::hold_if_needed(FlowNumber number) {
    const Flow& held = flow(number);
    sharing_.hold(number, held.shut || std::any_of(held.links.begin(), held.links.end(),
                                                   [](const Link& link) { return link.bond == Bond::kHeld; }));
}

/// Whether everything that the engine's head forwards has come and can be used.
bool Fluid::inputs_over(const Engine& from) const {
    for (Lane lane = 0; cut_through_ && lane < engines_.lanes(); ++lane) {
        const std::int64_t needed = from.head.after[static_cast<std::size_t>(lane)];
        const QueueNumber queue = engines_.number(from.rank, lane, true);
        if (needed > engines_.at(queue).index || (needed > 0 && end_of(queue, needed) + latency_ > now_)) {
            return false;
        }
    }
    return true;
}

/// Finds the receives in progress that a flow forwards.
void Fluid::link_up(FlowNumber number) {
    const Engine& from = flow(number).sent;
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

/// `end`: a latency before its data can be used.
void Fluid::remember_end(QueueNumber receive, std::int64_t first, Ticks end) {
    if (!cut_through_) {
        return;
    }
    auto& ended = just_ended_[static_cast<std::size_t>(receive / 2)];
    std::erase_if(ended, [this](const Ended& one) { return one.end + latency_ <= now_; });
    ended.push_back({first, engines_.at(receive).index, end});
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
    const Slice& own = flow(number).sent.head.slice;
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
    } else if (room == 0) {
        link.bond = Bond::kTied;
        sharing_.tie(number, leader_number);
    }
    flow(number).links.push_back(link);
    hold_if_needed(number);
    leader.followers.push_back(number);
    to_review_.push_back(number);
}

/// A flow has come up to the limit that one of its leaders sets it, or the leader has come to where the flow begins.
void Fluid::meet_leader(FlowNumber number) {
    Flow& met = flow(number);
    bring_up_to_date(met, met.rate);
    Link& link = met.links[static_cast<std::size_t>(met.next)];
    Flow& leader = flow(link.leader);
    bring_up_to_date(leader, leader.rate);
    met.moved = std::max(0.0, std::min(met.moved, leader.moved + link.offset));
    link.hasty = link.bond == Bond::kLoose && now_ - link.loosened_at < kTicksPerNanosecond ? link.hasty + 1 : 0;
    link.bond = Bond::kTied;
    sharing_.tie(number, link.leader);
    hold_if_needed(number);
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
        hold_if_needed(number);
        to_review_.push_back(number);
    }
    flow(leader).followers.clear();
}

/// The flow itself no longer follows anything.
void Fluid::drop_links(FlowNumber number) {
    for (const Link& link : flow(number).links) {
        if (link.bond == Bond::kTied) {
            sharing_.untie(number, link.leader);
        }
        auto& followers = flow(link.leader).followers;
        followers.erase(std::find(followers.begin(), followers.end(), number));
    }
    flow(number).links.clear();
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

} // namespace railbreak::collective::simulation
