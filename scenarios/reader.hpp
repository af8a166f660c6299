// From the YAML tree to the typed Scenario: one value at a time. What needs two values to be wrong is in rules.hpp.
#pragma once

#include "scenarios/fields.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Reads the document's root. What is wrong goes to the sink; the result is complete only if the sink stays empty.
[[nodiscard]] Scenario read_scenario(const YamlNode& root, const KnownAlgorithms& known, DiagnosticSink& sink,
                                     Origins& origins);

} // namespace railbreak::scenarios
