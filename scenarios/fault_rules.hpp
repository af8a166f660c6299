// Rules that relate values of faults: to the cluster, to the iterations, to each other. Internal to scenarios.
#pragma once

#include "scenarios/fields.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Reports every fault that cannot be made as written, and every pair that cannot act at the same time.
void check_fault_rules(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink);

} // namespace railbreak::scenarios
