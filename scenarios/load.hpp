// Scenario files: from text to a checked Scenario.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"
#include "scenarios/known_algorithms.hpp"
#include "scenarios/model.hpp"
#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

/// Reads and checks a scenario. `source_name` stands in the messages (a path, or "-" for standard input).
/// `known` are the algorithms and options that workload.algorithms may use. What is wrong comes as up to
/// DiagnosticSink::kLimit diagnostics; rules that relate values are checked only when every single value is right.
[[nodiscard]] Checked<Scenario> load_scenario(std::string_view text, std::string_view source_name,
                                              const KnownAlgorithms& known);

/// The same for a text that was parsed. Scenario::source_text stays empty.
[[nodiscard]] Checked<Scenario> load_scenario_tree(const YamlNode& root, const std::string& source_name,
                                                   const KnownAlgorithms& known);

/// The text of a regular file of at most kMaxFileBytes and one more, by which a larger one is known. `what` stands in
/// the messages: "a scenario file".
[[nodiscard]] Checked<std::string> read_text_file(const std::string& path, std::string_view what);

/// The same for a file, which must be a regular one of at most kMaxFileBytes.
[[nodiscard]] Checked<Scenario> load_scenario_file(const std::string& path, const KnownAlgorithms& known);

} // namespace railbreak::scenarios
