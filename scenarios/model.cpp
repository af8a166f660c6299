#include "scenarios/model.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace railbreak::scenarios {

std::string default_label(const AlgorithmSpec& algorithm) {
    std::string options;
    for (const auto& [name, value] : algorithm.options) {
        options += fmt::format("{}{}={}", options.empty() ? "" : ",", name, value);
    }
    return options.empty() ? algorithm.name : fmt::format("{}({})", algorithm.name, options);
}

std::vector<std::string> WorkloadSpec::labels() const {
    std::vector<std::string> labels;
    for (const AlgorithmSpec& algorithm : algorithms) {
        labels.push_back(algorithm.label);
    }
    return labels;
}

std::string_view to_string(Phase phase) {
    switch (phase) {
    case Phase::kWarmup: return "warmup";
    case Phase::kSteady: return "steady";
    case Phase::kDegraded: return "degraded";
    case Phase::kRecovered: return "recovered";
    }
    return "unknown";
}

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
    case Outcome::kError: return "error";
    }
    return "unknown";
}

bool Plan::expects_error(std::string_view algorithm) const {
    return std::any_of(expectations.begin(), expectations.end(), [&](const Expectation& expectation) {
        return expectation.outcome == Outcome::kError && expectation.phase == Phase::kDegraded &&
               expectation.algorithm.value_or(std::string(algorithm)) == algorithm;
    });
}

std::string_view to_string(Metric metric) {
    switch (metric) {
    case Metric::kOverheadExclusive: return "overhead_exclusive";
    case Metric::kOverheadFluid: return "overhead_fluid";
    case Metric::kVsHealthy: return "vs_healthy";
    case Metric::kVsSteady: return "vs_steady";
    case Metric::kTime: return "time";
    case Metric::kCorrectness: return "correctness";
    case Metric::kRecoveryTime: return "recovery_time";
    case Metric::kDetectionTime: return "detection_time";
    case Metric::kCollateral: return "collateral";
    }
    return "unknown";
}

bool is_of_a_fault(Metric metric) {
    return has_band(metric) || metric == Metric::kCollateral;
}

bool is_duration(Metric metric) {
    return has_band(metric) || metric == Metric::kTime;
}

bool has_band(Metric metric) {
    return metric == Metric::kRecoveryTime || metric == Metric::kDetectionTime;
}

std::string_view to_string(Side side) {
    switch (side) {
    case Side::kBoth: return "both";
    case Side::kAbove: return "above";
    case Side::kBelow: return "below";
    }
    return "unknown";
}

} // namespace railbreak::scenarios
