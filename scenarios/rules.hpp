// The rules of a scenario that concern more than one value: targets that exist, faults that can be composed,
// expectations that can be judged.
#pragma once

#include "scenarios/fields.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Checks a scenario whose single values are right; reports every rule that it breaks.
void check_rules(const Scenario& scenario, const Origins& origins, const KnownAlgorithms& known, DiagnosticSink& sink);

} // namespace railbreak::scenarios
