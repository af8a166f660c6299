// Text from the database made harmless for files of other formats. Names and messages in it come from scenario files
// and hosts: they may hold anything. Internal to reports.
#pragma once

#include <string>
#include <string_view>

namespace railbreak::reports {

/// Valid UTF-8 without surprises: bytes that belong to no well-formed sequence, control characters other than tab and
/// newline, non-characters (U+FFFE, U+FFFF) and those that turn the direction of writing around (U+202A to U+202E,
/// U+2066 to U+2069) are each replaced by U+FFFD. Every character of the result is one that XML 1.0 allows.
[[nodiscard]] std::string legible(std::string_view text);

/// legible(), on one line: tabs and newlines become spaces.
[[nodiscard]] std::string one_line(std::string_view text);

} // namespace railbreak::reports
