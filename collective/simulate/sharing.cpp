#include "collective/simulate/sharing.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace railbreak::collective::simulation {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Removes one element; the order of the others may change.
void drop(std::vector<FlowNumber>& list, FlowNumber flow) {
    const auto place = std::find(list.begin(), list.end(), flow);
    RB_CHECK(place != list.end(), "only what is there is removed");
    *place = list.back();
    list.pop_back();
}

} // namespace

void Sharing::set_capacity(SideNumber number, double capacity) {
    side(number).capacity = capacity;
    touch(number);
}

void Sharing::add(FlowNumber number, SideNumber send, SideNumber receive) {
    Flow& added = flow(number);
    added.send = send;
    added.receive = receive;
    added.rate = 0;
    added.held = false;
    side(send).flows.push_back(number);
    side(receive).flows.push_back(number);
    touch(send);
}

void Sharing::remove(FlowNumber number) {
    Flow& gone = flow(number);
    RB_CHECK(gone.leaders.empty() && gone.followers.empty(), "a flow goes without ties");
    for (const SideNumber end : {gone.send, gone.receive}) {
        drop(side(end).flows, number);
        touch(end);
    }
    gone.rate = 0;
}

void Sharing::hold(FlowNumber number, bool held) {
    flow(number).held = held;
    touch(flow(number).send);
}

void Sharing::tie(FlowNumber follower, FlowNumber leader) {
    flow(follower).leaders.push_back(leader);
    flow(leader).followers.push_back(follower);
    touch(flow(follower).send);
}

void Sharing::untie(FlowNumber follower, FlowNumber leader) {
    drop(flow(follower).leaders, leader);
    drop(flow(leader).followers, follower);
    touch(flow(follower).send);
}

const std::vector<std::pair<FlowNumber, double>>& Sharing::settle() {
    changed_.clear();
    ++round_;
    for (const SideNumber number : touched_) {
        if (side(number).round == round_ || side(number).flows.empty() || settle_alone(number)) {
            continue;
        }
        collect(number);
        fill();
        for (const FlowNumber member : component_flows_) {
            if (flow(member).rate != flow(member).former) {
                changed_.emplace_back(member, flow(member).former);
            }
        }
    }
    touched_.clear();
    return changed_;
}

/// The usual case at once: one flow that shares neither side and has no ties.
bool Sharing::settle_alone(SideNumber number) {
    const FlowNumber only = side(number).flows.front();
    Flow& alone = flow(only);
    const Side& send = side(alone.send);
    const Side& receive = side(alone.receive);
    if (send.flows.size() != 1 || receive.flows.size() != 1 || alone.held || !alone.leaders.empty() ||
        !alone.followers.empty()) {
        return false;
    }
    const double rate = std::min(send.capacity, receive.capacity);
    if (rate != alone.rate) {
        changed_.emplace_back(only, alone.rate);
        alone.rate = rate;
    }
    return true;
}

void Sharing::reach_side(SideNumber number) {
    Side& reached = side(number);
    if (reached.round != round_) {
        reached.round = round_;
        component_sides_.push_back(number);
    }
}

void Sharing::reach_flow(FlowNumber number) {
    Flow& reached = flow(number);
    if (reached.round != round_) {
        reached.round = round_;
        component_flows_.push_back(number);
    }
}

/// Everything that hangs together with a side.
void Sharing::collect(SideNumber first) {
    component_sides_.clear();
    component_flows_.clear();
    reach_side(first);
    std::size_t sides = 0;
    std::size_t flows = 0;
    while (sides < component_sides_.size() || flows < component_flows_.size()) {
        if (flows < component_flows_.size()) {
            const Flow& next = flow(component_flows_[flows++]);
            reach_side(next.send);
            reach_side(next.receive);
            for (const auto* ties : {&next.leaders, &next.followers}) {
                for (const FlowNumber other : *ties) {
                    reach_flow(other);
                }
            }
        } else {
            for (const FlowNumber user : side(component_sides_[sides++]).flows) {
                reach_flow(user);
            }
        }
    }
}

void Sharing::fill() {
    for (const SideNumber number : component_sides_) {
        side(number).left = side(number).capacity;
        side(number).open = static_cast<std::int32_t>(side(number).flows.size());
    }
    for (const FlowNumber number : component_flows_) {
        flow(number).former = flow(number).rate;
        flow(number).settled = false;
    }
    for (const FlowNumber number : component_flows_) {
        if (flow(number).held && !flow(number).settled) {
            give(number, 0);
        }
    }
    while (true) {
        const Side* fullest = nullptr;
        double level = kInfinite;
        for (const SideNumber number : component_sides_) {
            const Side& candidate = side(number);
            if (candidate.open > 0 && (fullest == nullptr || candidate.left / candidate.open < level)) {
                fullest = &candidate;
                level = candidate.left / candidate.open;
            }
        }
        if (fullest == nullptr) {
            return;
        }
        for (const FlowNumber user : fullest->flows) {
            if (!flow(user).settled) {
                give(user, level);
            }
        }
    }
}

/// Settles a flow at a rate, and with it all that are tied to it.
void Sharing::give(FlowNumber number, double rate) {
    to_give_.push_back(number);
    while (!to_give_.empty()) {
        const FlowNumber next = to_give_.back();
        to_give_.pop_back();
        Flow& given = flow(next);
        if (given.settled) {
            continue;
        }
        given.settled = true;
        given.rate = rate;
        for (const SideNumber end : {given.send, given.receive}) {
            --side(end).open;
            if (side(end).left != kInfinite) {
                side(end).left = std::max(0.0, side(end).left - rate);
            }
        }
        to_give_.insert(to_give_.end(), given.followers.begin(), given.followers.end());
    }
}

} // namespace railbreak::collective::simulation
