// Values that an option has without CLI11 checking them: because they are many and the command's own error is better,
// or because it checks them with everything else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace railbreak::cli {

/// For Option::check(): lets everything pass, and tells help texts, completion and manual pages of these values.
[[nodiscard]] inline CLI::Validator offered(const std::vector<std::string>& values) {
    return {[](std::string&) { return std::string(); }, fmt::format("{{{}}}", fmt::join(values, ","))};
}

} // namespace railbreak::cli
