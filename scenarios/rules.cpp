#include "scenarios/rules.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/limits.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::scenarios {

namespace {

class RuleChecker {
public:
    RuleChecker(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink)
        : scenario_(scenario), origins_(origins), known_(known), sink_(sink) {}

    void check() {
        check_cluster();
        check_workload();
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
        check_overlaps();
        for (std::size_t i = 0; i < scenario_.expectations.size(); ++i) {
            check_expectation(scenario_.expectations[i], fmt::format("expect[{}]", i));
        }
    }

private:
    [[nodiscard]] bool written(const std::string& path) const { return origins_.contains(path); }
    [[nodiscard]] std::string text_of(const std::string& path) const {
        const auto found = origins_.find(path);
        return quote(found == origins_.end() ? "" : found->second.text);
    }

    /// Reports at `path`, or at the nearest enclosing value that the file has.
    void report(const std::string& path, std::string_view what, std::string allowed) {
        std::string at = path;
        while (!at.empty() && !written(at)) {
            const std::size_t cut = at.find_last_of(".[");
            at.resize(cut == std::string::npos ? 0 : cut);
        }
        const auto found = origins_.find(at);
        sink_.add(found == origins_.end() ? Position{} : found->second.at, fmt::format("{}: {}", path, what),
                  std::move(allowed));
    }

    [[nodiscard]] bool runs(std::string_view label) const {
        const std::vector<AlgorithmSpec>& algorithms = scenario_.workload.algorithms;
        return std::ranges::find(algorithms, label, &AlgorithmSpec::label) != algorithms.end();
    }

    void check_cluster() {
        if (written("cluster.local_rate") && scenario_.cluster.ranks_per_host == 1) {
            report("cluster.local_rate", "one rank on a host has nobody to send to inside it",
                   "remove the key, or set ranks_per_host above 1");
        }
    }

    void check_workload() {
        const WorkloadSpec& workload = scenario_.workload;
        const std::uint64_t element = size_of(workload.dtype);
        if (workload.bytes.bytes() % element != 0) {
            report("workload.bytes",
                   fmt::format("{} is {} bytes, not a whole number of {} elements of {} bytes",
                               text_of("workload.bytes"), workload.bytes.bytes(), to_string(workload.dtype), element),
                   fmt::format("allowed: a multiple of {} bytes", element));
        }
        for (std::size_t i = 0; i < workload.algorithms.size(); ++i) {
            const AlgorithmSpec& algorithm = workload.algorithms[i];
            const std::string path = fmt::format("workload.algorithms[{}]", i);
            if (algorithm.name.starts_with("optcc") && scenario_.cluster.hosts < 3) {
                report(path,
                       fmt::format("{} needs at least 3 hosts, but cluster.hosts is {}", quote(algorithm.name),
                                   scenario_.cluster.hosts),
                       "add a host or leave the algorithm out");
            } else if (!algorithm.options.empty() && known_.check_options) {
                if (const Result<void> taken = known_.check_options(scenario_, algorithm); !taken) {
                    report(path, one_line(taken.error().message()), one_line(taken.error().advice()));
                }
            }
        }
        const IterationCounts& counts = workload.iterations;
        if (counts.steady + counts.degraded + counts.recovered == 0) {
            report("workload.iterations", "no iteration is measured",
                   "at least one of steady, degraded and recovered must be above 0");
        }
    }

    void check_target(const FaultSpec& fault, const std::string& path) {
        if (fault.target.host && *fault.target.host >= scenario_.cluster.hosts) {
            report(path + ".target.host", fmt::format("there is no host {}", *fault.target.host),
                   fmt::format("allowed: 0 to {} (cluster.hosts is {}), or random", scenario_.cluster.hosts - 1,
                               scenario_.cluster.hosts));
        }
        if (fault.target.nic >= scenario_.cluster.nics_per_host) {
            report(path + ".target.nic", fmt::format("there is no NIC {}", fault.target.nic),
                   fmt::format("allowed: 0 to {} (cluster.nics_per_host is {})", scenario_.cluster.nics_per_host - 1,
                               scenario_.cluster.nics_per_host));
        }
    }

    void check_strength(const FaultSpec& fault, const std::string& path) {
        if (fault.kind == FaultKind::kLinkDown) {
            for (const char* key : {"direction", "rate", "fraction"}) {
                if (written(path + "." + key)) {
                    report(path + "." + key, fmt::format("a link_down has no {}", key),
                           "remove the key, or use kind: cap");
                }
            }
            return;
        }
        if (fault.rate.has_value() == fault.fraction.has_value()) {
            report(path, fault.rate ? "a cap has both rate and fraction" : "a cap needs rate or fraction",
                   "write one of \"rate: 250Mbit/s\" and \"fraction: 1/2\"");
            return;
        }
        if (fault.rate && *fault.rate > scenario_.cluster.rate) {
            report(path + ".rate",
                   fmt::format("{} is above the rate of the NIC ({})", text_of(path + ".rate"),
                               to_string(scenario_.cluster.rate)),
                   "a cap can only slow a NIC down");
        }
        if (fault.fraction && fraction_of(scenario_.cluster.rate, *fault.fraction) < kMinRate) {
            report(path + ".fraction",
                   fmt::format("{} of {} is below the lowest rate", text_of(path + ".fraction"),
                               to_string(scenario_.cluster.rate)),
                   fmt::format("allowed: at least {} remain", to_string(kMinRate)));
        }
    }

    /// Whether the host of a link that is down for the whole phase has another one that is not. A random host has no
    /// other faults.
    [[nodiscard]] bool other_nic_alive(const FaultSpec& fault) const {
        std::set<std::int32_t> dead{fault.target.nic};
        for (const FaultSpec& other : scenario_.faults) {
            if (other.kind == FaultKind::kLinkDown && !other.at_iteration && fault.target.host &&
                other.target.host == fault.target.host) {
                dead.insert(other.target.nic);
            }
        }
        return std::ssize(dead) < scenario_.cluster.nics_per_host;
    }

    void check_time(const FaultSpec& fault, const std::string& path) {
        const IterationCounts& counts = scenario_.workload.iterations;
        const bool during = written(path + ".during");
        if (during == fault.at_iteration.has_value()) {
            report(path, during ? "a fault has both during and at" : "a fault needs during or at",
                   "write \"during: degraded\", or \"at: {iteration: 1, offset: 200ms}\" with \"for: 300ms\"");
            return;
        }
        if (counts.degraded == 0) {
            report(path, "the fault has no iteration to act on: workload.iterations.degraded is 0",
                   "allowed: at least 1 degraded iteration, or no faults");
        }
        if (during) {
            if (fault.duration) {
                report(path + ".for", "\"during: degraded\" lasts from the first to the last degraded iteration",
                       "remove \"for\", or write \"at\" instead of \"during\"");
            }
            if (fault.kind == FaultKind::kLinkDown && !other_nic_alive(fault)) {
                report(
                    path + ".during", "a host without any link during a whole iteration blocks it until the time-out",
                    "leave a NIC of the host alive, or write \"at: {iteration: 1, offset: 200ms}\" and \"for: 300ms\"");
            }
            return;
        }
        if (counts.degraded > 0 && *fault.at_iteration > counts.degraded) {
            report(path + ".at.iteration", fmt::format("there is no degraded iteration {}", *fault.at_iteration),
                   fmt::format("allowed: 1 to {} (workload.iterations.degraded)", counts.degraded));
        }
        if (!fault.duration) {
            report(path + ".at", "a fault that starts at a time needs an end", "add \"for: 300ms\"");
        } else if (fault.offset + *fault.duration >= scenario_.workload.iteration_timeout) {
            report(path + ".for",
                   fmt::format("the fault ends {} after the iteration starts, not before the iteration's time-out",
                               railbreak::to_string(fault.offset + *fault.duration)),
                   fmt::format("allowed: offset + for below workload.iteration_timeout ({})",
                               railbreak::to_string(scenario_.workload.iteration_timeout)));
        }
    }

    /// A random host is one that no other fault names, so that whether faults collide never depends on the seed.
    void check_random_targets() {
        const std::int32_t free_hosts = scenario_.cluster.hosts - static_cast<std::int32_t>(named_hosts());
        std::int32_t random = 0;
        for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
            if (!scenario_.faults[i].target.host && ++random > free_hosts) {
                report(fmt::format("faults[{}].target.host", i),
                       "no host is left to choose: every random fault gets a host that no other fault has",
                       fmt::format("allowed here: {} random faults", free_hosts));
                return;
            }
        }
    }

    [[nodiscard]] std::size_t named_hosts() const {
        std::set<std::int32_t> named;
        for (const FaultSpec& fault : scenario_.faults) {
            if (fault.target.host) {
                named.insert(*fault.target.host);
            }
        }
        return named.size();
    }

    /// Caps on one NIC compose (the lowest rate holds) and so does a cap with a link that is down. Two link_down at
    /// the same time would be one fault with two beginnings and two ends.
    void check_overlaps() {
        for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const FaultSpec& a = scenario_.faults[j];
                const FaultSpec& b = scenario_.faults[i];
                const bool same_nic = a.target.host && a.target.host == b.target.host && a.target.nic == b.target.nic;
                const bool both_down = a.kind == FaultKind::kLinkDown && b.kind == FaultKind::kLinkDown;
                if (same_nic && both_down && overlap(a, b)) {
                    report(
                        fmt::format("faults[{}]", i),
                        fmt::format("{} and {} take the same link down at the same time", quote(b.name), quote(a.name)),
                        "write one link_down with a longer \"for\"");
                }
            }
        }
    }

    [[nodiscard]] static bool overlap(const FaultSpec& a, const FaultSpec& b) {
        if (!a.at_iteration || !b.at_iteration) {
            return true; // one of them lasts for the whole phase
        }
        if (!a.duration || !b.duration || a.at_iteration != b.at_iteration) {
            return false; // a link_down at a time without a duration is an error already
        }
        return a.offset < b.offset + *b.duration && b.offset < a.offset + *a.duration;
    }

    [[nodiscard]] std::int32_t iterations_of(Phase phase) const {
        const IterationCounts& counts = scenario_.workload.iterations;
        switch (phase) {
        case Phase::kWarmup: return counts.warmup;
        case Phase::kSteady: return counts.steady;
        case Phase::kDegraded: return counts.degraded;
        case Phase::kRecovered: return counts.recovered;
        }
        return 0;
    }

    void check_expectation(const Expectation& expectation, const std::string& path) {
        if (expectation.algorithm && !runs(*expectation.algorithm)) {
            report(path + ".algorithm", fmt::format("{} does not run in this scenario", quote(*expectation.algorithm)),
                   fmt::format("allowed: {}", fmt::join(scenario_.workload.labels(), ", ")));
        }
        if (!expectation.min && !expectation.max) {
            report(path, "an expectation needs a limit", "add \"min\", \"max\" or both");
        }
        if (expectation.min && expectation.max && *expectation.min > *expectation.max) {
            report(path + ".min", fmt::format("{} is above max ({})", text_of(path + ".min"), text_of(path + ".max")),
                   "allowed: min at most max");
        }
        if (expectation.phase == Phase::kWarmup) {
            report(path + ".phase", "warm-up iterations are recorded but never judged",
                   "allowed: steady, degraded, recovered");
        } else if (iterations_of(expectation.phase) == 0) {
            report(path + ".phase",
                   fmt::format("there is nothing to judge: workload.iterations.{} is 0", to_string(expectation.phase)),
                   "allowed: a phase with iterations");
        }
        check_reference(expectation, path);
    }

    /// Relative metrics need the iterations that they are relative to, and must not compare those with themselves.
    void check_reference(const Expectation& expectation, const std::string& path) {
        const bool vs_healthy = expectation.metric == Metric::kVsHealthy;
        if (!vs_healthy && expectation.metric != Metric::kVsSteady) {
            return;
        }
        const std::string metric(to_string(expectation.metric));
        if (scenario_.workload.iterations.steady == 0) {
            report(path + ".metric",
                   fmt::format("{} compares with the steady phase, but workload.iterations.steady is 0", metric),
                   "allowed: at least 1 steady iteration");
        }
        if (vs_healthy && !runs("ring")) {
            report(path + ".metric", "vs_healthy compares with the ring, which does not run in this scenario",
                   "add ring to workload.algorithms, or use vs_steady");
        }
        if (expectation.phase == Phase::kSteady && (!vs_healthy || expectation.algorithm == "ring")) {
            report(path + ".metric", fmt::format("{} of the steady phase compares it with itself", metric),
                   "use another phase or metric");
        }
    }

    const Scenario& scenario_;
    const Origins& origins_;
    const KnownAlgorithms& known_;
    DiagnosticSink& sink_;
};

} // namespace

void check_rules(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink) {
    RuleChecker(scenario, origins, known, sink).check();
}

} // namespace railbreak::scenarios
