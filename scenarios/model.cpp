#include "scenarios/model.hpp"

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

std::string_view to_string(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "cap";
    case FaultKind::kLinkDown: return "link_down";
    }
    return "unknown";
}

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kSend: return "send";
    case Direction::kReceive: return "receive";
    case Direction::kBoth: return "both";
    }
    return "unknown";
}

std::string_view to_string(Metric metric) {
    switch (metric) {
    case Metric::kOverheadExclusive: return "overhead_exclusive";
    case Metric::kOverheadFluid: return "overhead_fluid";
    case Metric::kVsHealthy: return "vs_healthy";
    case Metric::kVsSteady: return "vs_steady";
    }
    return "unknown";
}

} // namespace railbreak::scenarios
