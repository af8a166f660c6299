// Reads workload.algorithms: names, or maps with a name, options and a label.
#pragma once

#include <vector>

#include "scenarios/fields.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Appends the list's algorithms, labels filled in. What is wrong goes to the reader's sink.
void read_algorithms(FieldReader& fields, const KnownAlgorithms& known, const Field& list,
                     std::vector<AlgorithmSpec>& algorithms);

} // namespace railbreak::scenarios
