#include "harness/simulate/fault_script.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "harness/controller/fault_order.hpp"

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

/// Whether the fault changes the rate of a NIC.
bool acts_on_rates(const PlannedFault& fault) {
    return fault.kind == FaultKind::kCap || fault.kind == FaultKind::kLinkDown || fault.kind == FaultKind::kBlackhole;
}

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
        if (acting.fault.kind != FaultKind::kCap) {
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

Result<void> check_playable(const scenarios::Plan& plan) {
    for (const PlannedFault& fault : plan.faults) {
        if (acts_on_rates(fault) || fault.kind == FaultKind::kLate || is_off(fault)) {
            continue;
        }
        return fail(Error(ErrorKind::kRefused, fmt::format("the simulator cannot play fault \"{}\": a {} is beyond a "
                                                           "model of port rates and of when ranks begin",
                                                           fault.name, to_string(fault.kind)))
                        .with("fault", fault.name)
                        .with("kind", std::string(to_string(fault.kind)))
                        .advise("railbreak run makes it in the lab; the simulator plays cap, link_down, flap, "
                                "blackhole and late"));
    }
    return {};
}

std::optional<Span> acts_in(const PlannedFault& fault, std::int32_t iteration) {
    if (!fault.at_iteration) {
        return Span{};
    }
    if (*fault.at_iteration != iteration) {
        return std::nullopt;
    }
    const Nanoseconds length = fault.kind == FaultKind::kLate ? fault.strength.late : Nanoseconds::zero();
    return Span{fault.offset, fault.offset + fault.duration.value_or(length)};
}

std::vector<Nanoseconds> rank_starts(const scenarios::Plan& plan, std::int32_t iteration) {
    std::vector<Nanoseconds> starts;
    for (const PlannedFault& fault : plan.faults) {
        if (fault.kind != FaultKind::kLate || iteration == 0 || !acts_in(fault, iteration)) {
            continue;
        }
        starts.resize(static_cast<std::size_t>(plan.cluster.ranks()), Nanoseconds::zero());
        const std::int32_t rank = fault.host * plan.cluster.ranks_per_host + fault.rank;
        starts.at(static_cast<std::size_t>(rank)) = fault.strength.late;
    }
    return starts;
}

std::vector<RateChange> rate_changes(const scenarios::Plan& plan, std::int32_t iteration) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Acting>> by_nic;
    for (const PlannedFault& fault : plan.faults) {
        if (const std::optional<Span> span = acts_in(fault, iteration); span && acts_on_rates(fault)) {
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
        if (fault.at_iteration || !acts_on_rates(fault)) {
            continue;
        }
        controller::NicSlowdown& nic =
            damage.at(static_cast<std::size_t>(fault.host)).at(static_cast<std::size_t>(fault.nic));
        if (fault.kind != FaultKind::kCap) {
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
    record::InjectionRow row = controller::injection_row(fault, plan.cluster);
    row.ordered_at = row.applied_at = row.observed_at = from.count();
    row.reverted_at = row.restored_at = until.count();
    row.mechanism = "simulated";
    row.realism = "pretended";
    row.data_path = "simulated flows";
    row.observation_json = "{}";
    if (fault.kind == FaultKind::kCap) {
        const auto left = std::llround(static_cast<double>(goodput.bits_per_s()) /
                                       to_double(slowdown(plan.cluster.rate, fault.rate)));
        row.measured_send_bits_per_s = fault.direction != Direction::kReceive ? left : 0;
        row.measured_receive_bits_per_s = fault.direction != Direction::kSend ? left : 0;
    }
    return row;
}

} // namespace railbreak::simulate
