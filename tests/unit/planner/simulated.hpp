// A schedule with the flows of its simulation, for tests of what shows them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "collective/bounds.hpp"
#include "harness/planner/export.hpp"
#include "tests/unit/planner/sample_schedules.hpp"

namespace railbreak::planner::test {

struct Simulated {
    std::unique_ptr<const collective::Schedule> schedule;
    collective::SimulationOptions options;
    std::vector<collective::SimulatedFlow> flows;
    Nanoseconds makespan{0};
    std::optional<BoundTime> bound;

    [[nodiscard]] PlanExport plan() const { return {*schedule, options, bound}; }
};

/// OptCC for five servers of which the last has half the rate, two segments: the smallest case that shows everything.
/// An element takes 100 ns.
inline Simulated simulated_optcc(collective::PortModel model, bool shared) {
    Simulated sample;
    sample.schedule = optcc(collective::OptccPlan::kUniform, 5, 2, 8000, shared);
    sample.options.model = model;
    sample.options.topology = collective::one_straggler(5, 4, Rational(2));
    sample.options.healthy_goodput = BitRate::bits_per_s(320'000'000);
    sample.options.on_flow = [&](const collective::SimulatedFlow& flow) { sample.flows.push_back(flow); };
    const Result<collective::SimulationResult> result = collective::simulate(*sample.schedule, sample.options);
    EXPECT_TRUE(result) << result.error().to_line();
    sample.options.on_flow = nullptr;
    sample.makespan = result->makespan;
    const double bound = collective::bounds::theorem6<double>(5, 2.0) * 8000 * 100;
    sample.bound = BoundTime{Nanoseconds(static_cast<std::int64_t>(bound)), "theorem 6"};
    return sample;
}

} // namespace railbreak::planner::test
