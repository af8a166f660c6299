#include "harness/controller/run_clock.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "harness/controller/damage.hpp"
#include "harness/controller/forms.hpp"
#include "harness/controller/session.hpp"
#include "scenarios/summary.hpp"

namespace railbreak::controller {

using scenarios::FaultKind;
using scenarios::Phase;
using scenarios::PlannedFault;

namespace {

/// Namespaces, links, agents and ranks of a host in the lab, and their end: first guesses, for any machine.
constexpr Nanoseconds kHostUp = std::chrono::milliseconds(50);
constexpr Nanoseconds kHostDown = std::chrono::milliseconds(30);
/// Every form of an algorithm is tried once, and most of them, being close, a second time.
constexpr std::size_t kTriesOfAForm = 2;

std::string kind_of(std::string_view algorithm, std::string_view phase) {
    return fmt::format("{} {}", algorithm, phase);
}

bool holds_for_the_phase(const PlannedFault& fault) {
    return !fault.at_iteration && !is_off(fault) && target_kind(fault.kind) == scenarios::TargetKind::kNic;
}

/// Time of the probes that measure what caps leave.
Nanoseconds probing_caps(const scenarios::Plan& plan) {
    BitRate lowest = plan.cluster.rate;
    std::vector<bool> capped(static_cast<std::size_t>(std::max(plan.cluster.hosts, 0)));
    for (const PlannedFault& fault : plan.faults) {
        if (fault.kind == FaultKind::kCap && holds_for_the_phase(fault)) {
            lowest = std::min(lowest, fault.rate);
            capped.at(static_cast<std::size_t>(fault.host)) = true;
        }
    }
    if (std::ranges::find(capped, true) == capped.end()) {
        return Nanoseconds(0);
    }
    const auto shifts = probe_shifts(plan.cluster.hosts, [&](std::int32_t host) {
        return static_cast<bool>(capped[static_cast<std::size_t>(host)]);
    });
    return probe_time(plan.cluster, lowest) * shifts.size();
}

} // namespace

/// What is done between a phase's faults and its first iteration.
void RunClock::add_damage(const scenarios::Plan& plan, const scenarios::AlgorithmSpec& algorithm,
                          Nanoseconds degraded) {
    add_fixed(probing_caps(plan));
    const bool planned_around = std::ranges::any_of(plan.faults, [](const PlannedFault& fault) {
        return holds_for_the_phase(fault) && (fault.kind == FaultKind::kCap || fault.kind == FaultKind::kReroute ||
                                              stops_traffic(fault.kind, fault.strength));
    });
    const std::size_t forms = forms_of(algorithm).size();
    // A ring is what it was; another schedule has new connections, which are warmed up.
    const std::size_t tries = !planned_around || algorithm.name == "ring" ? 0 : forms > 1 ? kTriesOfAForm * forms : 1;
    ahead_.insert(ahead_.end(), tries, {.item = {kind_of(algorithm.label, "comparison"), degraded}});
}

RunClock::RunClock(const scenarios::Plan& plan) {
    add_fixed(kHostUp * plan.cluster.hosts + probe_time(plan.cluster, plan.cluster.rate) * kBaselineProbes);
    const std::vector<scenarios::ExpectedIteration> iterations = scenarios::expected_iterations(plan);
    for (std::size_t i = 0; i < iterations.size(); ++i) {
        const scenarios::ExpectedIteration& one = iterations[i];
        const bool first =
            i == 0 || iterations[i - 1].algorithm != one.algorithm || iterations[i - 1].phase != one.phase;
        if (first && one.phase == Phase::kDegraded) {
            const auto& algorithms = plan.workload.algorithms;
            add_damage(plan, *std::ranges::find(algorithms, one.algorithm, &scenarios::AlgorithmSpec::label), one.time);
        }
        ahead_.push_back({.item = {kind_of(one.algorithm, to_string(one.phase)), one.time}});
    }
    add_fixed(kHostDown * plan.cluster.hosts);
}

void RunClock::finished(std::string_view algorithm, std::string_view phase, Nanoseconds took) {
    const std::string kind = kind_of(algorithm, phase);
    const auto found = std::ranges::find_if(ahead_, [&](const Part& part) { return part.item.scenario == kind; });
    if (found != ahead_.end()) {
        clock_.finished(found->item, took);
        ahead_.erase(ahead_.begin(), found + 1);
    }
}

Nanoseconds RunClock::left_around() const {
    Nanoseconds fixed{0};
    for (const Part& part : ahead_) {
        fixed += part.fixed ? part.item.estimate : Nanoseconds(0);
    }
    return fixed;
}

Nanoseconds RunClock::left() const {
    std::vector<ExpectedItem> iterations;
    for (const Part& part : ahead_) {
        if (!part.fixed) {
            iterations.push_back(part.item);
        }
    }
    return left_around() + clock_.left(iterations);
}

} // namespace railbreak::controller
