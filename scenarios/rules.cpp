#include "scenarios/rules.hpp"

#include <fmt/format.h>

#include "scenarios/expectation_rules.hpp"
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
    }

private:
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

    const Scenario& scenario_;
    const KnownAlgorithms& known_;
};

} // namespace

void check_rules(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink) {
    RuleChecker(scenario, origins, known, sink).check();
    check_expectation_rules(scenario, origins, sink);
    check_fault_rules(scenario, origins, sink);
}

} // namespace railbreak::scenarios
