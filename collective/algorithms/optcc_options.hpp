// What the user may fix about an OptCC plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collective/algorithm.hpp"
#include "collective/algorithms/optcc.hpp"

namespace railbreak::collective {

/// Values of the options; an empty one is for the algorithm to choose.
struct OptccOptions {
    std::optional<OptccPlan> plan;
    std::optional<std::int64_t> segments;
    std::optional<bool> late_first_link;
    [[nodiscard]] bool any() const { return plan || segments || late_first_link; }
};

/// The options plan, k and late, for help texts.
[[nodiscard]] std::vector<OptionHelp> optcc_option_help();
/// The option k of the four patterns.
[[nodiscard]] std::vector<OptionHelp> optcc_pattern_option_help();

/// Reads the options of the request, of those that `known` lists. Error (kInput) for a name that is not among them or a
/// value that makes no sense; it names `algorithm`.
[[nodiscard]] Result<OptccOptions> parse_optcc_options(const PlanRequest& request, std::string_view algorithm,
                                                       const std::vector<OptionHelp>& known);

} // namespace railbreak::collective
