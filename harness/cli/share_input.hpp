// Shares on the command line ("3%", "0.03", "3/100"), and the options of comparisons that are made of them.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "harness/analyse/comparison.hpp"

namespace railbreak::cli {

/// A share between `least` and `most`; kUsage for anything else.
[[nodiscard]] Result<double> parse_share(std::string_view text, double least, double most);

/// How to compare, from --measure, --confidence and --tolerance; kUsage names the option that is wrong.
[[nodiscard]] Result<analyse::CompareOptions> compare_options(std::string_view measure, std::string_view confidence,
                                                              std::string_view tolerance);

} // namespace railbreak::cli
