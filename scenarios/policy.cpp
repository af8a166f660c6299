// Plans and orders against a policy. Reading one is in policy_reader.cpp.
#include "scenarios/policy.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include "base/units.hpp"

namespace railbreak::scenarios {

namespace {

constexpr int kDays = 7;
constexpr int kMinutesOfADay = 24 * 60;

tl::unexpected<Error> refuse(const SitePolicy& policy, const Position& at, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{}:{}: the site policy {}", policy.source, at.line, why))
                    .with("policy", policy.source)
                    .with("line", std::to_string(at.line)));
}

bool matches(const std::string& pattern, const std::string& name) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// "host h2" when the rule of a host that is never touched matches.
Result<void> check_host(const SitePolicy& policy, const std::string& host) {
    for (const Ruled<std::string>& never : policy.never_hosts) {
        if (matches(never.value, host)) {
            return refuse(policy, never.at, fmt::format("never lets host {} be touched (\"{}\")", host, never.value));
        }
    }
    return {};
}

Result<void> check_nic(const SitePolicy& policy, const std::string& host, const std::string& nic) {
    for (const Ruled<std::string>& never : policy.never_nics) {
        if (matches(never.value, nic) || matches(never.value, host + "/" + nic)) {
            return refuse(policy, never.at,
                          fmt::format("never lets {} of host {} be touched (\"{}\")", nic, host, never.value));
        }
    }
    return {};
}

Result<void> check_kind(const SitePolicy& policy, std::string_view kind) {
    if (policy.kinds && std::ranges::find(policy.kinds->value, kind) == policy.kinds->value.end()) {
        return refuse(policy, policy.kinds->at,
                      fmt::format("does not allow {} faults; allowed: {}", kind, fmt::join(policy.kinds->value, ", ")));
    }
    return {};
}

Result<void> check_hours(const SitePolicy& policy, const WallTime& now) {
    if (!policy.hours ||
        std::ranges::any_of(policy.hours->value, [&](const HourWindow& window) { return contains(window, now); })) {
        return {};
    }
    static constexpr std::array kNames{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
    return refuse(policy, policy.hours->at,
                  fmt::format("does not allow faults now ({} {:02}:{:02} local time)",
                              kNames.at(static_cast<std::size_t>(now.weekday)), now.minute / 60, now.minute % 60));
}

Result<void> check_most(const SitePolicy& policy, const std::optional<Ruled<std::int64_t>>& most, std::size_t count,
                        std::string_view what) {
    if (most && static_cast<std::int64_t>(count) > most->value) {
        return refuse(
            policy, most->at,
            fmt::format("allows faults on {} {} at most at a time, and this plan needs {}", most->value, what, count));
    }
    return {};
}

/// What the faults of a plan act on at one time.
struct Radius {
    std::set<std::int32_t> hosts;
    std::set<std::pair<std::int32_t, std::int32_t>> nics;  ///< host, NIC
    std::set<std::pair<std::int32_t, std::int32_t>> ranks; ///< host, rank on it
};

/// Whether a fault may act while the degraded iteration lasts; 0: before and after all. An iteration begins when what
/// was timed in the one before has been seen to be undone. Within an iteration no more is known than that: how late one
/// host undoes and another begins is theirs. What nobody undoes lasts.
bool may_act_in(const PlannedFault& fault, std::int32_t iteration) {
    return !fault.at_iteration || *fault.at_iteration == iteration ||
           (fault.kind == FaultKind::kKill && *fault.at_iteration < iteration);
}

Radius radius_of(const Plan& plan, std::int32_t iteration) {
    Radius radius;
    for (const PlannedFault& fault : plan.faults) {
        if (is_off(fault) || !may_act_in(fault, iteration)) {
            continue;
        }
        radius.hosts.insert(fault.host);
        switch (target_kind(fault.kind)) {
        case TargetKind::kNic:
            radius.nics.emplace(fault.host, fault.nic);
            if (fault.kind == FaultKind::kReroute) {
                radius.nics.emplace(fault.host, fault.strength.via_nic);
            }
            for (std::int32_t rank = 0; rank < plan.cluster.ranks_per_host; ++rank) {
                radius.ranks.emplace(fault.host, rank);
            }
            break;
        case TargetKind::kRank: radius.ranks.emplace(fault.host, fault.rank); break;
        case TargetKind::kRecorder: break;
        }
    }
    return radius;
}

Result<void> check_radius_in(const SitePolicy& policy, const Plan& plan, std::int32_t iteration) {
    const Radius radius = radius_of(plan, iteration);
    if (auto few = check_most(policy, policy.hosts, radius.hosts.size(), "hosts"); !few) {
        return few;
    }
    if (const auto& most = policy.hosts_percent;
        most && static_cast<std::int64_t>(radius.hosts.size()) * 100 > most->value * plan.cluster.hosts) {
        return refuse(policy, most->at,
                      fmt::format("allows faults on {} % of the hosts at most at a time, and this plan needs {} of {}",
                                  most->value, radius.hosts.size(), plan.cluster.hosts));
    }
    for (const std::int32_t host : radius.hosts) {
        const auto nics = std::ranges::count_if(radius.nics, [&](const auto& nic) { return nic.first == host; });
        if (auto few = check_most(policy, policy.nics_per_host, static_cast<std::size_t>(nics), "NICs of a host");
            !few) {
            return few;
        }
    }
    return check_most(policy, policy.ranks, radius.ranks.size(), "ranks");
}

/// Algorithms run one after the other and each undoes its faults, so one of them stands for all.
Result<void> check_radius(const SitePolicy& policy, const Plan& plan) {
    std::set<std::int32_t> iterations{0};
    for (const PlannedFault& fault : plan.faults) {
        iterations.insert(fault.at_iteration.value_or(0));
    }
    for (const std::int32_t iteration : iterations) {
        if (auto few = check_radius_in(policy, plan, iteration); !few) {
            return few;
        }
    }
    return {};
}

Result<void> check_fault(const SitePolicy& policy, const PlannedFault& fault) {
    // Hosts and NICs of the lab, by the names that its agents know them by.
    const std::string host = fmt::format("h{}", fault.host);
    if (auto allowed = check_kind(policy, to_string(fault.kind)).and_then([&] { return check_host(policy, host); });
        !allowed) {
        return allowed;
    }
    if (target_kind(fault.kind) == TargetKind::kNic) {
        auto allowed = check_nic(policy, host, fmt::format("rail{}", fault.nic));
        if (allowed && fault.kind == FaultKind::kReroute) {
            allowed = check_nic(policy, host, fmt::format("rail{}", fault.strength.via_nic));
        }
        if (!allowed) {
            return allowed;
        }
    }
    if (policy.max_duration && fault.duration && *fault.duration > policy.max_duration->value) {
        return refuse(policy, policy.max_duration->at,
                      fmt::format("allows a fault {} at most, and fault \"{}\" lasts {}",
                                  railbreak::to_string(policy.max_duration->value), fault.name,
                                  railbreak::to_string(*fault.duration)));
    }
    return {};
}

} // namespace

WallTime local_time(Nanoseconds since_epoch) {
    const auto seconds =
        static_cast<std::time_t>(std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count());
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return {(local.tm_wday + kDays - 1) % kDays, local.tm_hour * 60 + local.tm_min};
}

bool contains(const HourWindow& window, const WallTime& now) {
    const auto on = [&](int weekday) { return (window.weekdays >> (weekday % kDays) & 1) != 0; };
    if (window.to_minute > window.from_minute) {
        return on(now.weekday) && now.minute >= window.from_minute && now.minute < window.to_minute;
    }
    const bool began_today = on(now.weekday) && now.minute >= window.from_minute && now.minute < kMinutesOfADay;
    const bool began_yesterday = on(now.weekday + kDays - 1) && now.minute < window.to_minute;
    return began_today || began_yesterday;
}

Result<void> check_lease(const SitePolicy& policy, Nanoseconds lease) {
    if (policy.max_lease && lease > policy.max_lease->value) {
        return refuse(policy, policy.max_lease->at,
                      fmt::format("allows a lease of {} at most, not of {}",
                                  railbreak::to_string(policy.max_lease->value), railbreak::to_string(lease)));
    }
    return {};
}

Result<void> check_plan(const SitePolicy& policy, const Plan& plan, const WallTime& now) {
    if (plan.faults.empty()) {
        return {};
    }
    for (const PlannedFault& fault : plan.faults) {
        if (auto allowed = check_fault(policy, fault); !allowed) {
            return allowed;
        }
    }
    return check_hours(policy, now).and_then([&] { return check_lease(policy, plan.lease); }).and_then([&] {
        return check_radius(policy, plan);
    });
}

Result<void> check_order(const SitePolicy& policy, const PolicyOrder& order, const WallTime& now) {
    auto allowed = check_kind(policy, order.kind).and_then([&] { return check_hours(policy, now); }).and_then([&] {
        return check_host(policy, order.host);
    });
    for (std::size_t i = 0; i < order.nics.size() && allowed; ++i) {
        allowed = check_nic(policy, order.host, order.nics[i]);
    }
    if (!allowed || order.nics.empty()) {
        return allowed;
    }
    std::set<std::string> nics(order.nics_at_fault.begin(), order.nics_at_fault.end());
    nics.insert(order.nics.begin(), order.nics.end());
    return check_most(policy, policy.nics_per_host, nics.size(), "NICs of a host");
}

} // namespace railbreak::scenarios
