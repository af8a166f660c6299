// Reads one expectation of a scenario file. Internal to scenarios.
#pragma once

#include <vector>

#include "scenarios/fields.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Reads an element of "expect" and adds what it says: one expectation, or two for an overhead in both port models.
/// What is wrong with a value is reported; rules that relate values are check_expectation_rules().
void read_expectation(DiagnosticSink& sink, FieldReader& fields, const Field& map, std::int32_t place,
                      std::vector<Expectation>& expectations);

} // namespace railbreak::scenarios
