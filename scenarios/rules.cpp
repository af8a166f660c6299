#include "scenarios/rules.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/fault_rules.hpp"
#include "scenarios/rule_reporter.hpp"

namespace railbreak::scenarios {

namespace {

class RuleChecker : private RuleReporter {
public:
    RuleChecker(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink)
        : RuleReporter(origins, sink), scenario_(scenario), known_(known) {}

    void check() {
        check_cluster();
        check_workload();
        for (std::size_t i = 0; i < scenario_.expectations.size(); ++i) {
            check_expectation(scenario_.expectations[i], fmt::format("expect[{}]", i));
        }
    }

private:
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
        expectation.outcome ? check_outcome(expectation, path) : check_limits(expectation, path);
        if (expectation.phase == Phase::kWarmup) {
            report(path + ".phase", "warm-up iterations are recorded but never judged",
                   "allowed: steady, degraded, recovered");
        } else if (iterations_of(expectation.phase) == 0) {
            report(path + ".phase",
                   fmt::format("there is nothing to judge: workload.iterations.{} is 0", to_string(expectation.phase)),
                   "allowed: a phase with iterations");
        }
    }

    void check_limits(const Expectation& expectation, const std::string& path) {
        if (!written(path + ".metric")) {
            report(path, "an expectation needs a metric or an outcome",
                   "write \"metric: vs_steady\" with min or max, or \"outcome: error\"");
            return;
        }
        if (!expectation.min && !expectation.max) {
            report(path, "an expectation needs a limit", "add \"min\", \"max\" or both");
        }
        if (expectation.min && expectation.max && *expectation.min > *expectation.max) {
            report(path + ".min", fmt::format("{} is above max ({})", text_of(path + ".min"), text_of(path + ".max")),
                   "allowed: min at most max");
        }
        if (expectation.within) {
            report(path + ".within", "a metric has no \"within\"", "remove the key, or write \"outcome: error\"");
        }
        check_reference(expectation, path);
    }

    void check_outcome(const Expectation& expectation, const std::string& path) {
        for (const char* key : {"metric", "min", "max"}) {
            if (written(path + "." + key)) {
                report(path + "." + key, fmt::format("an expected outcome has no {}", key), "write two expectations");
            }
        }
        if (expectation.phase == Phase::kSteady || expectation.phase == Phase::kRecovered) {
            report(path + ".phase", "no fault acts in that phase: an error there is always a failure",
                   "allowed with an outcome: degraded");
        }
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
    const KnownAlgorithms& known_;
};

} // namespace

void check_rules(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink) {
    RuleChecker(scenario, origins, known, sink).check();
    check_fault_rules(scenario, origins, sink);
}

} // namespace railbreak::scenarios
