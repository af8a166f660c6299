#include "scenarios/fault_overlap.hpp"

#include <fmt/format.h>

#include "scenarios/diagnostic.hpp"

namespace railbreak::scenarios {

namespace {

bool takes_link_down(const FaultSpec& fault) {
    return fault.kind == FaultKind::kLinkDown || fault.kind == FaultKind::kFlap;
}

bool both_are(const FaultSpec& a, const FaultSpec& b, FaultKind kind) {
    return a.kind == kind && b.kind == kind;
}

/// Two random hosts are never the same.
bool same_host(const FaultSpec& a, const FaultSpec& b) {
    return a.target.host && a.target.host == b.target.host;
}

/// Two ways of doing something to one NIC that do not go together at a time.
std::optional<Conflict> conflict_of_mechanisms(const FaultSpec& a, const FaultSpec& b, const std::string& both) {
    const auto either_is = [&](Mechanism mechanism) {
        return a.strength.mechanism == mechanism || b.strength.mechanism == mechanism;
    };
    if (!overlap(a, b)) {
        return std::nullopt;
    }
    if (either_is(Mechanism::kVfRate) && either_is(Mechanism::kDevlinkRate)) {
        return Conflict{both + " limit the same function by vf_rate and by devlink_rate, which do not know each other",
                        "use one of the two mechanisms"};
    }
    if (either_is(Mechanism::kPciRemove)) {
        return Conflict{both + " act on the same NIC, which pci_remove takes away with all that is on it",
                        "let them act one after the other"};
    }
    return std::nullopt;
}

std::optional<Conflict> conflict_on_nic(const FaultSpec& a, const FaultSpec& b) {
    const std::string both = fmt::format("{} and {}", quote(b.name), quote(a.name));
    if (takes_link_down(a) && takes_link_down(b) && overlap(a, b)) {
        return Conflict{both + " take the same link down at the same time",
                        "write one link_down with a longer \"for\""};
    }
    if (auto conflict = conflict_of_mechanisms(a, b, both)) {
        return conflict;
    }
    if (both_are(a, b, FaultKind::kReroute) && overlap(a, b)) {
        return Conflict{both + " reroute the same NIC at the same time", "a NIC's traffic can go one way at a time"};
    }
    const bool both_loss = both_are(a, b, FaultKind::kLoss);
    if (both_loss && (a.strength.bursts || b.strength.bursts) && share_a_side(a.direction, b.direction) &&
        overlap(a, b)) {
        return Conflict{both + " lose packets of the same direction at the same time, one of them in bursts",
                        "losses compose only where each packet is lost by itself"};
    }
    return std::nullopt;
}

std::optional<Conflict> conflict_of_reroute(const FaultSpec& reroute, const FaultSpec& down) {
    if (reroute.kind != FaultKind::kReroute || !takes_link_down(down) || reroute.strength.via_nic != down.target.nic ||
        !overlap(reroute, down)) {
        return std::nullopt;
    }
    return Conflict{
        fmt::format("{} takes down the NIC that {} sends its traffic through", quote(down.name), quote(reroute.name)),
        "reroute through another NIC, or let them act one after the other"};
}

/// Whether a fault begins after a kill, so that there is nobody it could act on.
bool begins_after(const FaultSpec& fault, const FaultSpec& kill) {
    if (!fault.at_iteration || !kill.at_iteration) {
        return false;
    }
    return *fault.at_iteration != *kill.at_iteration ? *fault.at_iteration > *kill.at_iteration
                                                     : fault.offset >= kill.offset;
}

std::optional<Conflict> conflict_on_rank(const FaultSpec& a, const FaultSpec& b) {
    const std::string both = fmt::format("{} and {}", quote(b.name), quote(a.name));
    if (both_are(a, b, FaultKind::kKill)) {
        return Conflict{both + " kill the same rank", "a rank can be killed once"};
    }
    for (const auto& [kill, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        if (kill->kind == FaultKind::kKill && begins_after(*other, *kill)) {
            return Conflict{
                fmt::format("{} acts on the rank that {} has killed by then", quote(other->name), quote(kill->name)),
                "let it act before the kill, or on another rank"};
        }
    }
    if (both_are(a, b, FaultKind::kLate) && overlap(a, b)) {
        return Conflict{both + " make the same rank late in the same iteration", "write one with a larger \"by\""};
    }
    return std::nullopt;
}

} // namespace

std::optional<Nanoseconds> length_of(const FaultSpec& fault) {
    if (fault.kind == FaultKind::kFlap) {
        return fault.flap ? std::optional(fault.flap->period * fault.flap->count) : std::nullopt;
    }
    return fault.duration;
}

bool overlap(const FaultSpec& a, const FaultSpec& b) {
    if (!a.at_iteration || !b.at_iteration) {
        return true; // one of them lasts for the whole phase
    }
    if (a.at_iteration != b.at_iteration) {
        return false;
    }
    if (a.kind == FaultKind::kLate && b.kind == FaultKind::kLate) {
        return true; // both at the beginning
    }
    const std::optional<Nanoseconds> a_length = length_of(a);
    const std::optional<Nanoseconds> b_length = length_of(b);
    return a_length && b_length && a.offset < b.offset + *b_length && b.offset < a.offset + *a_length;
}

std::optional<Conflict> conflict_of(const FaultSpec& a, const FaultSpec& b) {
    const TargetKind kind = target_kind(a.kind);
    if (kind != target_kind(b.kind) || !same_host(a, b)) {
        return std::nullopt;
    }
    std::optional<Conflict> conflict;
    if (kind == TargetKind::kNic) {
        conflict = a.target.nic == b.target.nic ? conflict_on_nic(a, b) : std::nullopt;
        for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
            conflict = conflict ? conflict : conflict_of_reroute(*one, *other);
        }
    } else if (kind == TargetKind::kRank && a.target.rank == b.target.rank) {
        conflict = conflict_on_rank(a, b);
    }
    return conflict;
}

} // namespace railbreak::scenarios
