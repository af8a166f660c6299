// Reads one fault of a scenario file. Internal to scenarios.
#pragma once

#include "scenarios/fields.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Reads an element of "faults". `cluster` tells on which host a rank is that is named by its number alone. What is
/// wrong with a value is reported; rules that relate values are check_fault_rules().
void read_fault(DiagnosticSink& sink, FieldReader& fields, const ClusterSpec& cluster, const Field& map,
                FaultSpec& fault);

} // namespace railbreak::scenarios
