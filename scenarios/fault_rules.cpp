#include "scenarios/fault_rules.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "scenarios/fault_expand.hpp"
#include "scenarios/fault_keys.hpp"
#include "scenarios/fault_overlap.hpp"
#include "scenarios/limits.hpp"
#include "scenarios/plan.hpp"
#include "scenarios/rule_reporter.hpp"

namespace railbreak::scenarios {

namespace {

constexpr std::string_view kHowToTime =
    "write \"during: degraded\", or \"at: {iteration: 1, offset: 200ms}\" with \"for: 300ms\"";

class FaultRuleChecker : private RuleReporter {
public:
    FaultRuleChecker(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink)
        : RuleReporter(origins, sink), scenario_(scenario), cluster_(scenario.cluster) {}

    void check() {
        std::set<std::string_view> names;
        for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
            const std::string path = fmt::format("faults[{}]", i);
            const FaultSpec& fault = scenario_.faults[i];
            if (!names.insert(fault.name).second) {
                report(path + ".name", fmt::format("{} names two faults", quote(fault.name)),
                       "give every fault a name of its own");
            }
            check_target(fault, path);
            check_strength(fault, path);
            check_time(fault, path);
        }
        check_random_targets();
        check_conflicts();
    }

private:
    void check_target(const FaultSpec& fault, const std::string& path) {
        const TargetSpec& target = fault.target;
        const TargetKind kind = target_kind(fault.kind);
        if (kind == TargetKind::kRank && !written(path + ".target.host")) {
            if (const std::int32_t rank = *target.host * cluster_.ranks_per_host + target.rank;
                rank >= cluster_.ranks()) {
                report(path + ".target.rank", fmt::format("there is no rank {}", rank),
                       fmt::format("allowed: 0 to {} ({} hosts with {} ranks each)", cluster_.ranks() - 1,
                                   cluster_.hosts, cluster_.ranks_per_host));
            }
            return;
        }
        if (target.host && *target.host >= cluster_.hosts) {
            report(
                path + ".target.host", fmt::format("there is no host {}", *target.host),
                fmt::format("allowed: 0 to {} (cluster.hosts is {}), or random", cluster_.hosts - 1, cluster_.hosts));
        }
        if (target.nic >= cluster_.nics_per_host) {
            report(path + ".target.nic", fmt::format("there is no NIC {}", target.nic),
                   fmt::format("allowed: 0 to {} (cluster.nics_per_host is {})", cluster_.nics_per_host - 1,
                               cluster_.nics_per_host));
        }
        if (target.rank >= cluster_.ranks_per_host) {
            report(path + ".target.rank", fmt::format("a host has no rank {}", target.rank),
                   fmt::format("allowed beside a host: 0 to {} (cluster.ranks_per_host is {})",
                               cluster_.ranks_per_host - 1, cluster_.ranks_per_host));
        }
    }

    void check_strength(const FaultSpec& fault, const std::string& path) {
        switch (fault.kind) {
        case FaultKind::kCap: check_cap(fault, path); break;
        case FaultKind::kFlap: check_flap(fault, path); break;
        case FaultKind::kDelay: check_delay(fault, path); break;
        case FaultKind::kLoss: check_loss(fault, path); break;
        case FaultKind::kReorder: check_reorder(fault, path); break;
        case FaultKind::kPartition: check_partition(fault, path); break;
        case FaultKind::kMtu: check_mtu(fault, path); break;
        case FaultKind::kReroute: check_reroute(fault, path); break;
        case FaultKind::kLate: check_late(fault, path); break;
        case FaultKind::kLinkDown:
        case FaultKind::kCorrupt:
        case FaultKind::kDuplicate:
        case FaultKind::kBlackhole:
        case FaultKind::kPause:
        case FaultKind::kKill:
        case FaultKind::kCpu:
        case FaultKind::kDiskFull: break;
        }
    }

    void check_cap(const FaultSpec& fault, const std::string& path) {
        check_mechanism(fault, path);
        if (fault.rate.has_value() == fault.fraction.has_value()) {
            report(path, fault.rate ? "a cap has both rate and fraction" : "a cap needs rate or fraction",
                   "write one of \"rate: 250Mbit/s\" and \"fraction: 1/2\"");
            return;
        }
        if (fault.rate && *fault.rate > cluster_.rate) {
            report(
                path + ".rate",
                fmt::format("{} is above the rate of the NIC ({})", text_of(path + ".rate"), to_string(cluster_.rate)),
                "a cap can only slow a NIC down");
        }
        if (fault.fraction && fraction_of(cluster_.rate, *fault.fraction) < kMinRate) {
            report(
                path + ".fraction",
                fmt::format("{} of {} is below the lowest rate", text_of(path + ".fraction"), to_string(cluster_.rate)),
                fmt::format("allowed: at least {} remain", to_string(kMinRate)));
        }
    }

    void check_mechanism(const FaultSpec& fault, const std::string& path) {
        const Mechanism mechanism = fault.strength.mechanism.value_or(Mechanism::kTrafficControl);
        if (!can_slow(mechanism, fault.direction)) {
            const bool sends = can_slow(mechanism, Direction::kSend);
            report(written(path + ".direction") ? path + ".direction" : path + ".mechanism",
                   fmt::format("{} slows {}, not \"{}\"", to_string(mechanism),
                               sends ? "only what the NIC sends" : "both sides of a port alike",
                               to_string(fault.direction)),
                   fmt::format("allowed with \"mechanism: {}\": direction: {}", to_string(mechanism),
                               sends ? "send" : "both"));
        }
    }

    void check_flap(const FaultSpec& fault, const std::string& path) {
        if (written(path + ".duty") == written(path + ".down")) {
            report(path, written(path + ".duty") ? "a flap has both duty and down" : "a flap needs duty or down",
                   "write one of \"down: 100ms\" and \"duty: 1/4\" (part of the period that the link is down)");
            return;
        }
        const FlapSpec& flap = *fault.flap;
        if (flap.down < kMinFlapDown) {
            report(path + ".duty",
                   fmt::format("{} of {} is {}, less than a link takes to go down and come back",
                               text_of(path + ".duty"), railbreak::to_string(flap.period),
                               railbreak::to_string(flap.down)),
                   fmt::format("allowed: at least {}", railbreak::to_string(kMinFlapDown)));
            return;
        }
        const Nanoseconds latest_end = flap.down + part_of(flap.period, flap.jitter);
        if (latest_end + kMinFlapUp > flap.period) {
            report(path,
                   fmt::format("the link of {} would be down again before it has come back: down for {} and up to {} "
                               "late, of a period of {}",
                               quote(fault.name), railbreak::to_string(flap.down),
                               railbreak::to_string(latest_end - flap.down), railbreak::to_string(flap.period)),
                   fmt::format("allowed: at least {} of each period are left", railbreak::to_string(kMinFlapUp)));
        }
    }

    void check_delay(const FaultSpec& fault, const std::string& path) {
        if (fault.strength.jitter > fault.strength.delay) {
            report(path + ".jitter",
                   fmt::format("{} is more than the delay ({}): packets would have to leave before they are sent",
                               text_of(path + ".jitter"), text_of(path + ".delay")),
                   "allowed: at most the delay");
        }
    }

    void check_loss(const FaultSpec& fault, const std::string& path) {
        if (written(path + ".probability") == fault.strength.bursts.has_value()) {
            report(path,
                   fault.strength.bursts ? "a loss has both probability and bursts"
                                         : "a loss needs probability or bursts",
                   "write one of \"probability: 1%\" and \"bursts: {good_to_bad: 1%, bad_to_good: 25%}\"");
        }
    }

    void check_reorder(const FaultSpec& fault, const std::string& path) {
        if (fault.strength.delay == Nanoseconds::zero() && fault.strength.probability > 0) {
            report(path + ".delay", "nothing can be overtaken without a delay",
                   "write the time by which the packets that are not sent at once are held back");
        }
    }

    void check_partition(const FaultSpec& fault, const std::string& path) {
        std::set<std::int32_t> seen;
        for (std::size_t i = 0; i < fault.strength.peers.size(); ++i) {
            const std::int32_t peer = fault.strength.peers[i];
            const std::string at = fmt::format("{}.peers[{}]", path, i);
            if (peer >= cluster_.hosts) {
                report(at, fmt::format("there is no host {}", peer),
                       fmt::format("allowed: 0 to {} (cluster.hosts is {})", cluster_.hosts - 1, cluster_.hosts));
            } else if (fault.target.host == peer) {
                report(at, fmt::format("host {} is the target itself", peer), "name hosts that it cannot reach");
            } else if (!seen.insert(peer).second) {
                report(at, fmt::format("host {} stands twice", peer), "name each host once");
            }
        }
        if (!fault.target.host) {
            report(path + ".target.host", "the target of a partition cannot be random: it could be one of the peers",
                   "name a host");
        }
    }

    void check_mtu(const FaultSpec& fault, const std::string& path) {
        if (fault.strength.mtu_bytes > cluster_.mtu_bytes) {
            report(path + ".mtu",
                   fmt::format("{} is above the MTU of the NIC ({} bytes)", text_of(path + ".mtu"), cluster_.mtu_bytes),
                   fmt::format("allowed: {} to {} bytes (cluster.mtu)", kMinMtu.bytes(), cluster_.mtu_bytes));
        }
    }

    void check_reroute(const FaultSpec& fault, const std::string& path) {
        if (cluster_.nics_per_host < 2) {
            report(path, "a host with one NIC has no other to send through", "set cluster.nics_per_host above 1");
        } else if (fault.strength.via_nic >= cluster_.nics_per_host) {
            report(path + ".via", fmt::format("there is no NIC {}", fault.strength.via_nic),
                   fmt::format("allowed: 0 to {} (cluster.nics_per_host is {})", cluster_.nics_per_host - 1,
                               cluster_.nics_per_host));
        } else if (fault.strength.via_nic == fault.target.nic) {
            report(path + ".via", fmt::format("NIC {} is the one that is rerouted", fault.target.nic),
                   "name another NIC of the host");
        }
    }

    void check_late(const FaultSpec& fault, const std::string& path) {
        if (fault.strength.late >= scenario_.workload.iteration_timeout && !error_expected()) {
            report(path + ".by", fmt::format("{} is not below the iteration's time-out", text_of(path + ".by")),
                   fmt::format("allowed: below workload.iteration_timeout ({}), unless \"outcome: error\" is expected "
                               "of every algorithm's degraded phase",
                               railbreak::to_string(scenario_.workload.iteration_timeout)));
        }
    }

    /// Whether every algorithm's degraded phase is expected to end with an error.
    [[nodiscard]] bool error_expected() const {
        Plan plan;
        plan.expectations = scenario_.expectations;
        const std::vector<std::string> labels = scenario_.workload.labels();
        return std::all_of(labels.begin(), labels.end(),
                           [&](const std::string& label) { return plan.expects_error(label); });
    }

    /// Whether the host of a NIC that carries nothing for the whole phase has another one that does. A random host has
    /// no other faults.
    [[nodiscard]] bool other_nic_alive(const FaultSpec& fault) const {
        std::set<std::int32_t> dead{fault.target.nic};
        for (const FaultSpec& other : scenario_.faults) {
            if (target_kind(other.kind) == TargetKind::kNic && stops_traffic(other.kind, other.strength) &&
                !other.at_iteration && fault.target.host && other.target.host == fault.target.host) {
                dead.insert(other.target.nic);
            }
        }
        return std::ssize(dead) < cluster_.nics_per_host;
    }

    void check_time(const FaultSpec& fault, const std::string& path) {
        const IterationCounts& counts = scenario_.workload.iterations;
        const bool during = written(path + ".during");
        if (during == fault.at_iteration.has_value()) {
            report(path, during ? "a fault has both during and at" : "a fault needs during or at",
                   std::string(kHowToTime));
            return;
        }
        if (counts.degraded == 0) {
            report(path, "the fault has no iteration to act on: workload.iterations.degraded is 0",
                   "allowed: at least 1 degraded iteration, or no faults");
        }
        if (during) {
            check_during(fault, path);
            return;
        }
        if (counts.degraded > 0 && *fault.at_iteration > counts.degraded) {
            report(path + ".at.iteration", fmt::format("there is no degraded iteration {}", *fault.at_iteration),
                   fmt::format("allowed: 1 to {} (workload.iterations.degraded)", counts.degraded));
        }
        if (fault.kind == FaultKind::kLate && written(path + ".at.offset")) {
            report(path + ".at.offset", "a late rank is late at the beginning of the iteration",
                   "remove the key: \"by\" says how late");
        }
        check_end(fault, path);
    }

    void check_during(const FaultSpec& fault, const std::string& path) {
        if (fault.duration) {
            report(path + ".for", "\"during: degraded\" lasts from the first to the last degraded iteration",
                   "remove \"for\", or write \"at\" instead of \"during\"");
        }
        if (fault.kind == FaultKind::kFlap || fault.kind == FaultKind::kKill) {
            report(path + ".during", fmt::format("{} begins at a time", with_article(fault.kind)),
                   "write \"at: {iteration: 1, offset: 200ms}\"");
            return;
        }
        if (!stops_traffic(fault.kind, fault.strength)) {
            return;
        }
        if (target_kind(fault.kind) == TargetKind::kRank) {
            report(path + ".during", "a rank that stands still during a whole iteration blocks it until the time-out",
                   "write \"at: {iteration: 1, offset: 200ms}\" and \"for: 300ms\"");
        } else if (!other_nic_alive(fault)) {
            report(path + ".during", "a host without any link during a whole iteration blocks it until the time-out",
                   "leave a NIC of the host alive, or write \"at: {iteration: 1, offset: 200ms}\" and \"for: 300ms\"");
        }
    }

    void check_end(const FaultSpec& fault, const std::string& path) {
        if (ends_by_itself(fault.kind) || fault.kind == FaultKind::kFlap) {
            if (fault.duration) {
                report(path + ".for",
                       fault.kind == FaultKind::kFlap ? "a flap ends after \"count\" periods"
                                                      : fmt::format("{} ends by itself", with_article(fault.kind)),
                       "remove the key");
            }
        } else if (!fault.duration) {
            report(path + ".at", "a fault that starts at a time needs an end", "add \"for: 300ms\"");
            return;
        }
        const std::optional<Nanoseconds> length = length_of(fault);
        const bool may_outlast = stops_traffic(fault.kind, fault.strength) && error_expected();
        if (!length || may_outlast || fault.offset + *length < scenario_.workload.iteration_timeout) {
            return;
        }
        const bool flap = fault.kind == FaultKind::kFlap;
        report(path + (flap ? ".count" : ".for"),
               fmt::format("the fault ends {} after the iteration starts, not before the iteration's time-out",
                           railbreak::to_string(fault.offset + *length)),
               fmt::format("allowed: offset + {} below workload.iteration_timeout ({}){}",
                           flap ? "count * period" : "for", railbreak::to_string(scenario_.workload.iteration_timeout),
                           stops_traffic(fault.kind, fault.strength)
                               ? ", unless \"outcome: error\" is expected of every algorithm's degraded phase"
                               : ""));
    }

    /// A random host is one that no other fault names, so that whether faults collide never depends on the seed.
    void check_random_targets() {
        const std::int32_t free_hosts = cluster_.hosts - static_cast<std::int32_t>(named_hosts(scenario_).size());
        std::int32_t random = 0;
        for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
            if (is_random(scenario_.faults[i]) && ++random > free_hosts) {
                report(fmt::format("faults[{}].target.host", i),
                       "no host is left to choose: every random fault gets a host that no other fault has",
                       fmt::format("allowed here: {} random faults", free_hosts));
                return;
            }
        }
    }

    void check_conflicts() {
        for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (std::optional<Conflict> conflict = conflict_of(scenario_.faults[j], scenario_.faults[i])) {
                    report(fmt::format("faults[{}]", i), conflict->what, std::move(conflict->advice));
                }
            }
        }
    }

    const Scenario& scenario_;
    const ClusterSpec& cluster_;
};

} // namespace

void check_fault_rules(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink) {
    FaultRuleChecker(scenario, origins, sink).check();
}

} // namespace railbreak::scenarios
