// What several commands need before they can start: a scenario read from a file, the place of the database.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/commands.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"

namespace railbreak::cli {

/// The algorithms that a scenario may use, with their options.
[[nodiscard]] scenarios::KnownAlgorithms known_algorithms();
/// Reads a scenario file, or standard input for "-".
[[nodiscard]] scenarios::Checked<scenarios::Scenario> load(const std::string& path);
/// The same; tells every diagnostic on stderr, a line each, when there is something wrong. With --json the object of
/// schema "railbreak-error" is printed, too.
[[nodiscard]] std::optional<scenarios::Scenario> read_scenario(const CommonOptions& common, const std::string& path);
/// Empty for a decimal number of 64 bits. CLI11 alone wraps -1 around and cuts what is too large.
[[nodiscard]] std::string what_is_wrong_with_seed(const std::string& text);
/// Fills in the default place of the database; tells why there is none and gives false.
[[nodiscard]] bool choose_database(CommonOptions& common);
[[nodiscard]] int exit_code_of_bad_input();
[[nodiscard]] int exit_code_of_bad_usage();

} // namespace railbreak::cli
