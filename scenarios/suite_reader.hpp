// Suite files: from text to a checked Suite. The scenarios that it names are not looked at here; see suite_expand.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "scenarios/diagnostic.hpp"
#include "scenarios/format.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::scenarios {

/// Reads a suite. `source_name` stands in the messages (a path, or "-" for standard input).
[[nodiscard]] Checked<Suite> load_suite(std::string_view text, std::string_view source_name);

/// Whether a text is meant as a suite: a YAML map with the key "suite". Anything else is to be read as a scenario.
[[nodiscard]] bool is_suite(std::string_view text);

/// The keys of the format, section by section. A test holds the JSON Schema against this table.
[[nodiscard]] std::span<const Section> suite_sections();

} // namespace railbreak::scenarios
