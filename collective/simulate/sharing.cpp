#include "collective/simulate/sharing.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/check.hpp"

namespace railbreak::collective::simulation {

namespace {

/// Windows: delays are computed side by side until none changes by more than this share, or so many times.
constexpr double kSettledShare = 1e-11;
constexpr int kMostSweeps = 400;
constexpr int kMostSteps = 60; ///< of the search for one side's delay

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
    if (static_cast<std::size_t>(number) >= flows_.size()) {
        flows_.resize(static_cast<std::size_t>(number) + 1);
    }
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
        for (const FlowNumber member : component_flows_) {
            flow(member).former = flow(member).rate;
            flow(member).settled = false;
        }
        discipline_ == PortSharing::kMaxMin ? fill() : fill_windows();
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

/// Rates by windows: the delays of the sides, one after the other, are made such that each side is just full, until
/// they no longer change.
void Sharing::fill_windows() {
    put_leaders_first();
    set_window_rates();
    double change = 1;
    for (int sweep = 0; sweep < kMostSweeps && change > kSettledShare; ++sweep) {
        change = 0;
        for (const SideNumber number : component_sides_) {
            if (side(number).capacity != kInfinite) {
                change = std::max(change, relax(number));
            }
        }
        set_window_rates();
    }
    keep_to_capacities();
}

/// Orders the flows of the component such that leaders come before their followers.
void Sharing::put_leaders_first() {
    std::vector<FlowNumber>& ordered = to_give_;
    std::vector<FlowNumber> open(component_flows_.rbegin(), component_flows_.rend());
    while (!open.empty()) {
        const FlowNumber next = open.back();
        const std::size_t before = open.size();
        if (!flow(next).settled) {
            std::copy_if(flow(next).leaders.begin(), flow(next).leaders.end(), std::back_inserter(open),
                         [this](FlowNumber leader) { return !flow(leader).settled; });
        }
        if (open.size() == before) {
            open.pop_back();
            if (!flow(next).settled) {
                flow(next).settled = true;
                ordered.push_back(next);
            }
        }
    }
    component_flows_.swap(ordered);
    ordered.clear();
}

double Sharing::leaders_rate(const Flow& follower) const {
    double least = kInfinite;
    for (const FlowNumber leader : follower.leaders) {
        least = std::min(least, rate(leader));
    }
    return least;
}

/// With the present delays. A full side without a delay yet lets its flows go too fast; keep_to_capacities() is last.
void Sharing::set_window_rates() {
    for (const FlowNumber number : component_flows_) {
        Flow& set = flow(number);
        const double delay = side(set.send).delay + side(set.receive).delay;
        set.rate = set.held ? 0 : std::min(leaders_rate(set), delay > 0 ? 1 / delay : kInfinite);
    }
}

/// Gives a side the delay at which its flows, with the other delays as they are, just fill it. Returns by what share
/// that is another one.
double Sharing::relax(SideNumber number) {
    Side& full = side(number);
    const auto load = [&](double delay, double& slope) {
        double sum = 0;
        slope = 0;
        for (const FlowNumber user : full.flows) {
            const Flow& one = flow(user);
            if (one.held) {
                continue;
            }
            const double total = delay + side(one.send == number ? one.receive : one.send).delay;
            const double own = total > 0 ? 1 / total : kInfinite;
            const double limit = leaders_rate(one);
            slope -= own < limit ? own * own : 0;
            sum += std::min(own, limit);
        }
        return sum;
    };
    const double former = full.delay;
    double slope = 0;
    if (full.capacity == 0) {
        full.delay = kInfinite;
        return former == kInfinite ? 0 : 1;
    }
    if (load(0, slope) <= full.capacity) {
        full.delay = 0;
        return former == 0 ? 0 : 1;
    }
    double low = 0;
    double high = static_cast<double>(full.flows.size()) / full.capacity;
    double delay = former > low && former < high ? former : high;
    for (int step = 0; step < kMostSteps; ++step) {
        const double excess = load(delay, slope) - full.capacity;
        (excess > 0 ? low : high) = delay;
        const double newton = slope < 0 ? delay - excess / slope : high;
        const double next = newton > low && newton < high ? newton : (low + high) / 2;
        if (std::abs(excess) <= 1e-15 * full.capacity || next == delay) {
            break;
        }
        delay = next;
    }
    full.delay = delay;
    return std::abs(delay - former) / delay;
}

/// What is left of an imprecision: no side carries more than it can, no follower is ahead of its leader.
void Sharing::keep_to_capacities() {
    for (const SideNumber number : component_sides_) {
        Side& checked = side(number);
        double load = 0;
        for (const FlowNumber user : checked.flows) {
            load += flow(user).rate;
        }
        checked.left = load > checked.capacity ? checked.capacity / load : 1;
    }
    for (const FlowNumber number : component_flows_) {
        Flow& kept = flow(number);
        kept.rate = std::min(kept.rate * std::min(side(kept.send).left, side(kept.receive).left), leaders_rate(kept));
    }
}

} // namespace railbreak::collective::simulation
