// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace railbreak::scenarios {

/// The word of `known` with the fewest single-letter edits (swap of neighbours counts as one) from `word`, when that
/// is few enough to be a slip of the finger; empty otherwise. The view points into `known`.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c".
[[nodiscard]] std::string join(std::span<const std::string_view> words);

} // namespace railbreak::scenarios
