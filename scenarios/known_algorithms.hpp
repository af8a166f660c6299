// What a scenario may say about algorithms. The scenario format knows none itself: whoever loads a scenario brings the
// list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// An option of an algorithm.
struct KnownOption {
    std::string name;   ///< "k"
    std::string values; ///< what it may be, for messages: "1..1048576"
};

/// An algorithm by its name in the registry.
struct KnownAlgorithm {
    std::string name;
    std::vector<KnownOption> options{};
};

/// Every algorithm that a scenario may use.
struct KnownAlgorithms {
    std::vector<KnownAlgorithm> list;
    /// Asks whether an algorithm takes the values of its options on the scenario's healthy cluster; an Error's message
    /// and advice are shown at the algorithm's place in the file. May be empty: then values are not checked.
    std::function<Result<void>(const Scenario& scenario, const AlgorithmSpec& algorithm)> check_options;
};

} // namespace railbreak::scenarios
