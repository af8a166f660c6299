#include "scenarios/fault_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/diagnostic.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::scenarios {

namespace {

/// "1 %", "0.05 %": exactly, without trailing zeros.
std::string percent(Millionths value) {
    std::string digits = fmt::format("{}.{:04}", value / 10'000, value % 10'000);
    digits.erase(digits.find_last_not_of('0') + 1);
    return (digits.ends_with('.') ? digits.substr(0, digits.size() - 1) : digits) + " %";
}

std::string place_of(const FaultSpec& fault) {
    const std::string host = fault.target.host ? std::to_string(*fault.target.host) : "chosen from the seed";
    switch (target_kind(fault.kind)) {
    case TargetKind::kNic: return fmt::format("host {}, NIC {}", host, fault.target.nic);
    case TargetKind::kRank: return fmt::format("host {}, rank {} of the host", host, fault.target.rank);
    case TargetKind::kRecorder: return "the file system of the run's database";
    }
    return host;
}

std::string describe(const LossBursts& bursts) {
    return fmt::format("in bursts: {} of the packets begin one, {} end it; within {} are lost, between {}",
                       percent(bursts.good_to_bad), percent(bursts.bad_to_good), percent(bursts.loss_in_bad),
                       percent(bursts.loss_in_good));
}

/// " by ib_port"; empty for the usual mechanism.
std::string by_mechanism(const FaultStrength& strength) {
    return strength.mechanism ? fmt::format(" by {}", to_string(*strength.mechanism)) : "";
}

/// What the kind says beside its target and its times; empty when that is nothing.
std::string strength_of(const FaultSpec& fault, BitRate line_rate) {
    const FaultStrength& strength = fault.strength;
    const std::string_view direction = to_string(fault.direction);
    switch (fault.kind) {
    case FaultKind::kCap:
        return fmt::format("{} at {}{}{}", direction, to_string(rate_of(fault, line_rate)),
                           fault.fraction ? fmt::format(" ({} of the line rate)", fault.fraction->str()) : "",
                           by_mechanism(strength));
    case FaultKind::kFlap:
        return fmt::format("{} times {} of {}{}", fault.flap->count, railbreak::to_string(fault.flap->down),
                           railbreak::to_string(fault.flap->period),
                           fault.flap->jitter > 0 ? fmt::format(", each up to {} of it late", fault.flap->jitter.str())
                                                  : "");
    case FaultKind::kDelay:
        return fmt::format(
            "{} by {}{}", direction, railbreak::to_string(strength.delay),
            strength.jitter > Nanoseconds::zero() ? fmt::format(" +- {}", railbreak::to_string(strength.jitter)) : "");
    case FaultKind::kLoss:
        return fmt::format("{} {}", direction,
                           strength.bursts ? describe(*strength.bursts) : percent(strength.probability));
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate: return fmt::format("{} {}", direction, percent(strength.probability));
    case FaultKind::kReorder:
        return fmt::format("{} {} at once, the others after {}", direction, percent(strength.probability),
                           railbreak::to_string(strength.delay));
    case FaultKind::kBlackhole: return std::string(direction);
    case FaultKind::kPartition: return fmt::format("{} from hosts {}", direction, fmt::join(strength.peers, ", "));
    case FaultKind::kMtu: return fmt::format("{} bytes", strength.mtu_bytes);
    case FaultKind::kReroute: return fmt::format("through NIC {}", strength.via_nic);
    case FaultKind::kCpu: return fmt::format("{} of one CPU", percent(strength.cpu));
    case FaultKind::kLate: return fmt::format("by {}", railbreak::to_string(strength.late));
    case FaultKind::kDiskFull: return fmt::format("but {}", to_string(strength.leave));
    case FaultKind::kLinkDown: return strength.mechanism ? by_mechanism(strength).substr(1) : "";
    case FaultKind::kPause:
    case FaultKind::kKill: return "";
    }
    return "";
}

} // namespace

BitRate rate_of(const FaultSpec& fault, BitRate line_rate) {
    return fault.rate ? *fault.rate : fraction_of(line_rate, fault.fraction.value_or(Rational(1)));
}

std::string describe(const FaultSpec& fault, BitRate line_rate) {
    std::string text = fmt::format("{} on {}", to_string(fault.kind), place_of(fault));
    if (const std::string strength = strength_of(fault, line_rate); !strength.empty()) {
        text += ", " + strength;
    }
    if (!fault.at_iteration) {
        text += fault.kind == FaultKind::kLate ? ", in each degraded iteration" : ", during all degraded iterations";
    } else if (fault.kind == FaultKind::kLate) {
        text += fmt::format(", in degraded iteration {}", *fault.at_iteration);
    } else {
        text += fmt::format(", {} after the start of degraded iteration {}", railbreak::to_string(fault.offset),
                            *fault.at_iteration);
    }
    if (fault.duration) {
        text += fmt::format(", for {}", railbreak::to_string(*fault.duration));
    }
    return text;
}

void append_notes(const FaultSpec& fault, const ClusterSpec& cluster, std::vector<std::string>& notes) {
    const std::string name = quote(fault.name);
    // With g ranks and K NICs on a host, rank r uses NIC (r mod g) mod K.
    if (target_kind(fault.kind) == TargetKind::kNic && fault.target.nic >= cluster.ranks_per_host) {
        notes.push_back(fmt::format("fault {} acts on NIC {}, which no rank uses unless an algorithm spreads over "
                                    "several NICs",
                                    name, fault.target.nic));
    }
    if (is_off(fault)) {
        notes.push_back(fmt::format("fault {} is off: it does nothing to any packet or rank, and is not made", name));
    }
    if (fault.kind == FaultKind::kMtu && fault.strength.mtu_bytes < kIpv6MinMtu) {
        notes.push_back(fmt::format("fault {} sets an MTU of {} bytes: below {} the kernel gives up IPv6 on the NIC "
                                    "until the fault is undone",
                                    name, fault.strength.mtu_bytes, kIpv6MinMtu));
    }
}

} // namespace railbreak::scenarios
