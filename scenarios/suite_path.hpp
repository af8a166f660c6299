// Places in a scenario's YAML tree, as suites name them, and putting values there.
//
// "workload.bytes" goes through maps by their keys. In a list the next word is the name of an element
// ("faults.half-rate.fraction"), or all of them ("faults.*.fraction"); "[0]" counts them from 0 ("faults[0].target").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "scenarios/yaml_tree.hpp"

namespace railbreak::scenarios {

/// Why a value cannot be put at a place.
struct PathProblem {
    std::string what;
    std::string allowed;
};

/// What is wrong with the form of a path, if anything.
[[nodiscard]] tl::expected<void, PathProblem> check_path(std::string_view path);

/// The path with a short form written out: "hosts", "bytes", "dtype" and "algorithms" stand for their places in cluster
/// and workload; "host", "nic", "rank", "kind", "fraction" and "rate" for those of the scenario's only fault.
[[nodiscard]] std::string long_path(std::string_view path);

/// Puts the value at every place that the path names; maps on the way that are not there are made. A value of kind
/// kNull takes the key away. What is put takes the position of what was there, or of the map that it is added to, so
/// that errors about it name the scenario's line. Gives those positions.
[[nodiscard]] tl::expected<std::vector<Position>, PathProblem> put_value(YamlNode& root, std::string_view path,
                                                                         const YamlNode& value);

/// The node at a path that names one place; null when there is none.
[[nodiscard]] const YamlNode* find_value(const YamlNode& root, std::string_view path);

} // namespace railbreak::scenarios
