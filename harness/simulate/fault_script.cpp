#include "harness/simulate/fault_script.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace railbreak::simulate {

using collective::RateChange;
using scenarios::Direction;
using scenarios::FaultKind;
using scenarios::PlannedFault;

namespace {

/// Fractions of the healthy rate.
struct SideRates {
    double send = 1;
    double receive = 1;
    bool operator==(const SideRates&) const = default;
};

struct Acting {
    const PlannedFault& fault;
    Span span;
    [[nodiscard]] bool at(Nanoseconds time) const { return span.from <= time && (!span.until || time < *span.until); }
};

SideRates rates_at(const std::vector<Acting>& faults, Nanoseconds time, BitRate healthy) {
    SideRates rates;
    for (const Acting& acting : faults) {
        if (!acting.at(time)) {
            continue;
        }
        if (acting.fault.kind == FaultKind::kLinkDown) {
            return {0, 0};
        }
        const double left =
            static_cast<double>(acting.fault.rate.bits_per_s()) / static_cast<double>(healthy.bits_per_s());
        if (acting.fault.direction != Direction::kReceive) {
            rates.send = std::min(rates.send, left);
        }
        if (acting.fault.direction != Direction::kSend) {
            rates.receive = std::min(rates.receive, left);
        }
    }
    return rates;
}

/// A slowdown at least 1, exactly.
Rational slowdown(BitRate healthy, BitRate capped) {
    return std::max(Rational(1), Rational(healthy.bits_per_s(), capped.bits_per_s()));
}

} // namespace

std::optional<Span> acts_in(const PlannedFault& fault, std::int32_t iteration) {
    if (!fault.at_iteration) {
        return Span{};
    }
    if (*fault.at_iteration != iteration) {
        return std::nullopt;
    }
    return Span{fault.offset, fault.offset + fault.duration.value_or(Nanoseconds::zero())};
}

std::vector<RateChange> rate_changes(const scenarios::Plan& plan, std::int32_t iteration) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Acting>> by_nic;
    for (const PlannedFault& fault : plan.faults) {
        if (const std::optional<Span> span = acts_in(fault, iteration)) {
            by_nic[{fault.host, fault.nic}].push_back({fault, *span});
        }
    }
    std::vector<RateChange> changes;
    for (const auto& [place, faults] : by_nic) {
        std::set<Nanoseconds> times;
        for (const Acting& acting : faults) {
            times.insert(acting.span.from);
            times.insert(acting.span.until.value_or(acting.span.from));
        }
        SideRates before;
        for (const Nanoseconds time : times) {
            const SideRates now = rates_at(faults, time, plan.cluster.rate);
            if (now != before) {
                changes.push_back({time, place.first, place.second, now.send, now.receive});
                before = now;
            }
        }
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const RateChange& a, const RateChange& b) { return a.at < b.at; });
    return changes;
}

controller::NicSlowdowns phase_damage(const scenarios::Plan& plan) {
    controller::NicSlowdowns damage = controller::no_damage(plan.cluster);
    for (const PlannedFault& fault : plan.faults) {
        if (fault.at_iteration) {
            continue;
        }
        controller::NicSlowdown& nic =
            damage.at(static_cast<std::size_t>(fault.host)).at(static_cast<std::size_t>(fault.nic));
        if (fault.kind == FaultKind::kLinkDown) {
            nic.dead = plan.cluster.nics_per_host > 1; // without another NIC there is nothing to plan round it with
            continue;
        }
        const Rational slower = slowdown(plan.cluster.rate, fault.rate);
        if (fault.direction != Direction::kReceive) {
            nic.send = std::max(nic.send, slower);
        }
        if (fault.direction != Direction::kSend) {
            nic.receive = std::max(nic.receive, slower);
        }
    }
    return damage;
}

record::InjectionRow injection_row(const scenarios::Plan& plan, const PlannedFault& fault, BitRate goodput,
                                   Nanoseconds from, Nanoseconds until) {
    record::InjectionRow row;
    row.fault = fault.id;
    row.name = fault.name;
    row.kind = to_string(fault.kind);
    row.host = fault.host;
    row.nic = fault.nic;
    row.ordered_at = row.applied_at = row.observed_at = from.count();
    row.reverted_at = row.restored_at = until.count();
    row.mechanism = "simulated";
    row.realism = "pretended";
    row.data_path = "simulated flows";
    row.observation_json = "{}";
    if (fault.kind == FaultKind::kCap) {
        row.direction = to_string(fault.direction);
        row.wanted_rate_bits_per_s = static_cast<std::int64_t>(fault.rate.bits_per_s());
        const auto left = std::llround(static_cast<double>(goodput.bits_per_s()) /
                                       to_double(slowdown(plan.cluster.rate, fault.rate)));
        row.measured_send_bits_per_s = fault.direction != Direction::kReceive ? left : 0;
        row.measured_receive_bits_per_s = fault.direction != Direction::kSend ? left : 0;
    }
    return row;
}

} // namespace railbreak::simulate
