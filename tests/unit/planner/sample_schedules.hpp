// Schedules of every shape there is, small enough to be written out.
#pragma once

#include <memory>
#include <vector>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/schedule.hpp"

namespace railbreak::planner::test {

inline std::unique_ptr<const collective::Schedule> optcc(collective::OptccPlan plan, collective::Rank ranks,
                                                         std::int64_t segments, std::int64_t elements,
                                                         bool shared = false) {
    collective::OptccParameters parameters{.servers = ranks,
                                           .stragglers = {ranks - 1},
                                           .elements = elements,
                                           .plan = plan,
                                           .segments = segments,
                                           .shared = shared};
    if (plan == collective::OptccPlan::kStar) {
        parameters.star_elements = {elements / 4};
    }
    return collective::make_optcc(parameters);
}

/// Every plan, on one lane and on several, also with servers of two ranks; the vectors divide evenly.
inline std::vector<std::unique_ptr<const collective::Schedule>> sample_schedules() {
    using collective::OptccPlan;
    std::vector<std::unique_ptr<const collective::Schedule>> samples;
    samples.push_back(collective::make_ring(2, 8));
    samples.push_back(collective::make_ring(5, 5));
    for (const bool shared : {false, true}) {
        samples.push_back(optcc(OptccPlan::kUniform, 5, 2, 8, shared));
        samples.push_back(optcc(OptccPlan::kBalanced, 3, 3, 24, shared));
        samples.push_back(optcc(OptccPlan::kBalanced, 5, 4, 320, shared));
    }
    samples.push_back(optcc(OptccPlan::kStar, 5, 2, 256));
    samples.push_back(collective::make_optcc({.servers = 6,
                                              .stragglers = {1, 4},
                                              .elements = 64,
                                              .plan = OptccPlan::kUniform,
                                              .segments = 4,
                                              .shared = true}));
    for (const bool shared : {false, true}) {
        samples.push_back(collective::make_optcc({.servers = 4,
                                                  .stragglers = {3},
                                                  .elements = 192,
                                                  .plan = OptccPlan::kUniform,
                                                  .segments = 2,
                                                  .shared = shared,
                                                  .ranks_per_server = 2,
                                                  .nics_per_server = 2}));
    }
    return samples;
}

} // namespace railbreak::planner::test
