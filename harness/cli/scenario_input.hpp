// What several commands need before they can start: a scenario or suite read from a file, the place of the database.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "harness/cli/commands.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"
#include "scenarios/suite_expand.hpp"

namespace railbreak::cli {

/// The algorithms that a scenario may use, with their options.
[[nodiscard]] scenarios::KnownAlgorithms known_algorithms();
/// Reads a scenario file, or standard input for "-".
[[nodiscard]] scenarios::Checked<scenarios::Scenario> load(const std::string& path);
/// The same; tells every diagnostic on stderr, a line each, when there is something wrong. With --json the object of
/// schema "railbreak-error" is printed, too.
[[nodiscard]] std::optional<scenarios::Scenario> read_scenario(const CommonOptions& common, const std::string& path);
/// What a file may be.
using ScenarioOrSuite = std::variant<scenarios::Scenario, scenarios::SuitePlan>;
/// Reads a scenario or a suite, told apart by the key "suite"; or standard input for "-".
[[nodiscard]] scenarios::Checked<ScenarioOrSuite> load_any(const std::string& path,
                                                           const scenarios::SuiteChoices& choices);
/// The same with everything told, as read_scenario().
[[nodiscard]] std::optional<ScenarioOrSuite> read_any(const CommonOptions& common, const std::string& path,
                                                      const scenarios::SuiteChoices& choices);
/// Empty for a decimal number of 64 bits. CLI11 alone wraps -1 around and cuts what is too large.
[[nodiscard]] std::string what_is_wrong_with_seed(const std::string& text);
/// Fills in the default place of the database; tells why there is none and gives false.
[[nodiscard]] bool choose_database(CommonOptions& common);
[[nodiscard]] int exit_code_of_bad_input();
[[nodiscard]] int exit_code_of_bad_usage();

} // namespace railbreak::cli
