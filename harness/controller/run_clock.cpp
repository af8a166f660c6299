#include "harness/controller/run_clock.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace railbreak::controller {

using scenarios::Phase;

namespace {

std::string kind_of(std::string_view algorithm, std::string_view phase) {
    return fmt::format("{} {}", algorithm, phase);
}

/// Every algorithm comes near the time of a ring on healthy ports, or that times a factor which the clock learns.
Nanoseconds ring_time(const scenarios::Plan& plan) {
    const double ranks = static_cast<double>(plan.cluster.hosts) * plan.cluster.ranks_per_host;
    const double bits = 8.0 * static_cast<double>(plan.workload.bytes.bytes());
    const double seconds = 2 * (ranks - 1) / ranks * bits / static_cast<double>(plan.cluster.rate.bits_per_s());
    return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

} // namespace

RunClock::RunClock(const scenarios::Plan& plan) {
    const scenarios::IterationCounts& counts = plan.workload.iterations;
    const Nanoseconds estimate = ring_time(plan);
    for (const scenarios::AlgorithmSpec& algorithm : plan.workload.algorithms) {
        for (const auto& [phase, count] : {std::pair(Phase::kWarmup, counts.warmup),
                                           {Phase::kSteady, counts.steady},
                                           {Phase::kDegraded, plan.faults.empty() ? 0 : counts.degraded},
                                           {Phase::kRecovered, counts.recovered}}) {
            ahead_.insert(ahead_.end(), static_cast<std::size_t>(count),
                          {kind_of(algorithm.label, to_string(phase)), estimate});
        }
    }
}

void RunClock::finished(std::string_view algorithm, std::string_view phase, Nanoseconds took) {
    const auto found = std::ranges::find(ahead_, kind_of(algorithm, phase), &ExpectedItem::scenario);
    if (found != ahead_.end()) {
        clock_.finished(*found, took);
        ahead_.erase(ahead_.begin(), found + 1);
    }
}

} // namespace railbreak::controller
