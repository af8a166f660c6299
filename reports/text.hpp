// Plain text for terminals: aligned columns, wrapped lines, nothing but printable ASCII. Internal to reports.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace railbreak::reports {

/// Widest line of a text report.
inline constexpr std::size_t kColumns = 120;

/// The text with everything but printable ASCII replaced by '?': names and messages in the database come from files and
/// hosts and must not steer a terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Rows as lines with aligned columns, two spaces between them; no spaces at the ends. `alignment` has one letter for
/// each column: l or r. Where a line would exceed kColumns, the last column's cells are cut, then the widest column's;
/// a cut cell ends in '~'.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows, std::string_view alignment,
                                  std::string_view indent = "");

/// `text` broken at spaces (and where it has none, anywhere) into lines of at most kColumns. Lines after the first are
/// indented by `hanging` spaces.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t hanging);

} // namespace railbreak::reports
