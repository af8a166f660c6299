// A YAML tree as text again.
#pragma once

#include <string>

#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

/// The tree as a YAML document that parse_yaml() reads back as the same tree, positions apart. Outer maps and lists
/// stand in lines of their own, short inner ones in braces. What could be read in two ways is put in quotes.
[[nodiscard]] std::string write_yaml(const YamlNode& root);

/// A node in one line: "{host: 3, nic: 0}", "[ring, optcc]", "1/2".
[[nodiscard]] std::string flow_yaml(const YamlNode& node);

} // namespace railbreak::scenarios
