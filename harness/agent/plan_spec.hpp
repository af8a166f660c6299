// A plan request in a form that travels: the controller decides, every rank computes its own part of the very same
// schedule from it.
#pragma once

#include "collective/algorithm.hpp"
#include "harness/launch/rpc.hpp"

namespace railbreak::agent {

/// Name of an algorithm and the request it plans for.
struct PlanSpec {
    std::string algorithm;
    collective::PlanRequest request;
};

[[nodiscard]] launch::Json to_json(const PlanSpec& spec);
/// Error (kHarness) when a member is missing or malformed.
[[nodiscard]] Result<PlanSpec> plan_spec_from_json(const launch::Json& json);
/// Looks the algorithm up and plans.
[[nodiscard]] Result<collective::Plan> make_plan(const PlanSpec& spec);

} // namespace railbreak::agent
