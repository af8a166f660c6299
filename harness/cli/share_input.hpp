// Shares on the command line: "3%", "0.03", "3/100".
#pragma once

#include <string_view>

#include "base/error.hpp"

namespace railbreak::cli {

/// A share between `least` and `most`; kUsage for anything else.
[[nodiscard]] Result<double> parse_share(std::string_view text, double least, double most);

} // namespace railbreak::cli
