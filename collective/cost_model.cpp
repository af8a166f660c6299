#include "collective/cost_model.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.hpp"

namespace railbreak::collective {

namespace {

/// One phase as the head of the header describes it.
struct Phase {
    double streams = 0;  ///< c
    double ring_ns = 0;  ///< x
    double visit_ns = 0; ///< z: of all flows in one pause and direction
    double visit_flows = 1;
};

double phase_cost(const CostInput& input, const Phase& phase) {
    const double healthy = input.ranks - 1;
    const double pause = input.slowdown * phase.visit_ns + phase.visit_flows * input.overhead_ns;
    const double hops = (healthy - 1) * phase.streams * (phase.ring_ns + input.overhead_ns);
    const double link = hops + (input.shared ? phase.visit_ns : pause);
    const double chain = (healthy - 1) * (phase.ring_ns + input.overhead_ns + input.latency_ns);
    return std::max({link, healthy * pause, chain});
}

double uniform_cost(const CostInput& input, double segments, double section, double visit, double flows) {
    // In the first phase the straggler only sends, in the last it only receives.
    const double ends = 2 * phase_cost(input, {1, section, section, 1});
    return ends + (segments - 1) * phase_cost(input, {2, section, visit, flows}) + input.latency_ns;
}

} // namespace

double ring_cost_ns(const CostInput& input) {
    const double section = input.vector_ns / input.ranks;
    const double hop =
        std::max(input.slowdown * section + input.overhead_ns, section + input.overhead_ns + input.latency_ns);
    return 2 * (input.ranks - 1) * hop;
}

double optcc_cost_ns(const CostInput& input, OptccPlan plan, std::int64_t segments) {
    RB_CHECK(input.ranks >= 3 && segments >= 1, "a straggler, two healthy ranks, one segment");
    const double healthy = input.ranks - 1;
    const auto k = static_cast<double>(segments);
    switch (plan) {
    case OptccPlan::kUniform: {
        const double section = input.vector_ns / (k * healthy);
        return uniform_cost(input, k, section, section, 1);
    }
    case OptccPlan::kBalanced: {
        const Phase phase{2, input.vector_ns / ((k + 1) * healthy), input.vector_ns / (k * healthy), 1};
        return (k + 1) * phase_cost(input, phase) + input.latency_ns;
    }
    case OptccPlan::kStar: {
        // A pause of 2 sections carries one section and a chunk: l (section + chunk) = 2 sections.
        const double chunk_share = std::max(0.0, 2 / input.slowdown - 1);
        const double section = input.vector_ns / (k * (healthy + chunk_share));
        return uniform_cost(input, k, section, section * (1 + chunk_share), 2);
    }
    }
    return std::numeric_limits<double>::infinity();
}

PlanChoice cheapest_plan(const CostInput& input, std::optional<OptccPlan> plan, std::optional<std::int64_t> segments) {
    CostInput careful = input;
    careful.slowdown *= kSlowdownMargin;
    const std::vector<OptccPlan> plans =
        plan ? std::vector<OptccPlan>{*plan} : std::vector<OptccPlan>{OptccPlan::kBalanced, OptccPlan::kUniform};
    PlanChoice best;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t k = segments.value_or(1); k <= segments.value_or(kMostSegments); ++k) {
        for (const OptccPlan candidate : plans) {
            const double cost = optcc_cost_ns(careful, candidate, k);
            if (cost < least) {
                least = cost;
                best = {candidate, k};
            }
        }
    }
    return best;
}

} // namespace railbreak::collective
