// Rules that relate values of expectations: to the algorithms, to the iterations, to the faults. Internal to scenarios.
#pragma once

#include "scenarios/fields.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Reports every expectation that cannot be judged, or that could not fail.
void check_expectation_rules(const Scenario& scenario, const Origins& origins, DiagnosticSink& sink);

} // namespace railbreak::scenarios
