// From a suite to its items: every combination of parameters put into its scenario, which is then read as strictly as
// any other. Parameters with listed values vary before those that walk the cluster; of both kinds the last one in the
// file varies fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/diagnostic.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::scenarios {

/// What the command line chooses of a suite.
struct SuiteChoices {
    std::optional<std::uint64_t> seed{}; ///< in the place of the file's
    std::string only{};                  ///< glob(7) pattern of the items' names; empty: all of them
    bool no_faults = false;              ///< see SuitePlan::faults
};

/// Reads the scenarios of a suite and makes its items. An error stands at the place in the suite that leads to it and
/// tells the scenario's own place: "s.yaml:9:24: half[fraction=2]: ../half.yaml:20:15: faults[0].fraction: ...".
[[nodiscard]] Checked<SuitePlan> expand_suite(const Suite& suite, const KnownAlgorithms& known,
                                              const SuiteChoices& choices = {});

/// The glob(7) pattern that matches this name of an item and no other: SuiteChoices::only for it alone.
[[nodiscard]] std::string pattern_of(std::string_view item_name);

/// What makes two plans of suites differ, in one line; empty when nothing does. Both are SuitePlan::canonical_json.
[[nodiscard]] std::string difference_of_suite_plans(const std::string& former, const std::string& present);

/// SuiteItem::params as a JSON object: {"host":"3"}.
[[nodiscard]] std::string params_json(const std::vector<std::pair<std::string, std::string>>& params);

} // namespace railbreak::scenarios
