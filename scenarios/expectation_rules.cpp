#include "scenarios/expectation_rules.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/rule_reporter.hpp"

namespace railbreak::scenarios {

namespace {

class ExpectationRules : private RuleReporter {
public:
    ExpectationRules(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink)
        : RuleReporter(origins, sink), scenario_(scenario) {}

    void check() {
        std::int32_t last = -1;
        for (const Expectation& expectation : scenario_.expectations) {
            if (expectation.place != last) { // an overhead in both models is one element of the file
                check(expectation, fmt::format("expect[{}]", expectation.place));
            }
            last = expectation.place;
        }
    }

private:
    [[nodiscard]] bool runs(std::string_view label) const {
        const std::vector<AlgorithmSpec>& algorithms = scenario_.workload.algorithms;
        return std::ranges::find(algorithms, label, &AlgorithmSpec::label) != algorithms.end();
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

    void check(const Expectation& expectation, const std::string& path) {
        if (expectation.algorithm && !runs(*expectation.algorithm)) {
            report(path + ".algorithm", fmt::format("{} does not run in this scenario", quote(*expectation.algorithm)),
                   fmt::format("allowed: {}", fmt::join(scenario_.workload.labels(), ", ")));
        }
        if (expectation.outcome) {
            check_outcome(expectation, path);
            check_phase(expectation, path);
        } else if (!written(path + ".metric")) {
            report(path, "an expectation needs a metric or an outcome",
                   "write \"metric: vs_steady\" with min or max, or \"outcome: error\"");
        } else {
            check_limits(expectation, path);
            check_keys(expectation, path);
            is_of_a_fault(expectation.metric) ? check_fault(expectation, path) : check_phase(expectation, path);
            check_reference(expectation, path);
        }
    }

    void check_phase(const Expectation& expectation, const std::string& path) {
        if (!written(path + ".phase")) {
            report(path, "key \"phase\" is missing",
                   "add \"phase: steady\", \"phase: degraded\" or \"phase: recovered\"");
        } else if (expectation.phase == Phase::kWarmup) {
            report(path + ".phase", "warm-up iterations are recorded but never judged",
                   "allowed: steady, degraded, recovered");
        } else if (iterations_of(expectation.phase) == 0) {
            report(path + ".phase",
                   fmt::format("there is nothing to judge: workload.iterations.{} is 0", to_string(expectation.phase)),
                   "allowed: a phase with iterations");
        }
    }

    void check_limits(const Expectation& expectation, const std::string& path) {
        if (!written(path + ".min") && !written(path + ".max") && !written(path + ".baseline")) {
            report(path, "an expectation needs a limit", "add \"min\", \"max\" or \"baseline\"");
        }
        const bool swapped =
            (expectation.min && expectation.max && *expectation.min > *expectation.max) ||
            (expectation.min_time && expectation.max_time && *expectation.min_time > *expectation.max_time);
        if (swapped) {
            report(path + ".min", fmt::format("{} is above max ({})", text_of(path + ".min"), text_of(path + ".max")),
                   "allowed: min at most max");
        }
        if (expectation.within) {
            report(path + ".within", "a metric has no \"within\"", "remove the key, or write \"outcome: error\"");
        }
    }

    /// Keys that not every metric has.
    void check_keys(const Expectation& expectation, const std::string& path) {
        const std::string_view metric = to_string(expectation.metric);
        const auto forbid = [&](std::string_view key, std::string_view why) {
            if (written(fmt::format("{}.{}", path, key))) {
                report(fmt::format("{}.{}", path, key), fmt::format("{} has no {}: {}", metric, key, why),
                       "remove the key");
            }
        };
        if (is_of_a_fault(expectation.metric)) {
            forbid("phase", "it is measured for each fault, not over a phase");
        } else {
            forbid("fault", "it is measured over a phase");
        }
        if (!has_band(expectation.metric)) {
            forbid("band", "it compares nothing with the steady phase");
        }
        if (expectation.metric == Metric::kCorrectness) {
            forbid("max", "no result can be too right");
            forbid("baseline", "what is right does not depend on earlier runs");
            if (expectation.min && *expectation.min > 1) {
                report(path + ".min", fmt::format("{} is more than all iterations", text_of(path + ".min")),
                       "allowed: 0 to 1");
            }
        }
        if (expectation.metric == Metric::kCollateral) {
            forbid("min", "no NIC needs to change");
            forbid("baseline", "what may change does not depend on earlier runs");
        }
    }

    void check_fault(const Expectation& expectation, const std::string& path) {
        const std::vector<FaultSpec>& faults = scenario_.faults;
        if (faults.empty()) {
            report(path + ".metric",
                   fmt::format("{} is measured for each fault, and there is none", to_string(expectation.metric)),
                   "add a fault, or use another metric");
        } else if (expectation.fault &&
                   std::ranges::find(faults, *expectation.fault, &FaultSpec::name) == faults.end()) {
            std::vector<std::string_view> names;
            std::ranges::transform(faults, std::back_inserter(names), &FaultSpec::name);
            report(path + ".fault", fmt::format("there is no fault {}", quote(*expectation.fault)),
                   fmt::format("allowed: {}", fmt::join(names, ", ")));
        }
        const bool within_phase =
            std::ranges::all_of(faults, [](const FaultSpec& one) { return one.at_iteration.has_value(); });
        if (expectation.metric == Metric::kRecoveryTime && !within_phase &&
            scenario_.workload.iterations.recovered == 0) {
            report(path + ".metric", "no iteration comes after the fault: workload.iterations.recovered is 0",
                   "allowed: at least 1 recovered iteration");
        }
    }

    void check_outcome(const Expectation& expectation, const std::string& path) {
        for (const char* key : {"metric", "min", "max", "baseline", "band", "fault", "model"}) {
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
        if (!vs_healthy && expectation.metric != Metric::kVsSteady && !has_band(expectation.metric)) {
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
        if (!has_band(expectation.metric) && expectation.phase == Phase::kSteady &&
            (!vs_healthy || expectation.algorithm == "ring")) {
            report(path + ".metric", fmt::format("{} of the steady phase compares it with itself", metric),
                   "use another phase or metric");
        }
    }

    const Scenario& scenario_;
};

} // namespace

void check_expectation_rules(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink) {
    ExpectationRules(scenario, origins, sink).check();
}

} // namespace railbreak::scenarios
