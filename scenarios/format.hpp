// The keys of format version 1, section by section: the one place that the reader takes them from. A test holds the
// JSON Schema against this table.
#pragma once

#include <span>
#include <string_view>

namespace railbreak::scenarios {

/// One key of a section.
struct KeySpec {
    std::string_view name;
    bool required = false;
};

/// One map of the format. `path` names its place: "" is the whole file, "faults[]" one element of the list "faults".
struct Section {
    std::string_view path;
    std::span<const KeySpec> keys;
};

/// Every section, the whole file first.
[[nodiscard]] std::span<const Section> format_sections();

/// The section with that path, which must exist.
[[nodiscard]] const Section& format_section(std::string_view path);

} // namespace railbreak::scenarios
