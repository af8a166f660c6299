// A run's figures as JSON text, for keeping them after the run itself is gone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/record/statistics.hpp"

namespace railbreak::record {

/// The figures as a JSON array with an object for each algorithm and phase, every double in full; the keys are the
/// names of PhaseStatistics. What is not there is left out, and so is the phase "comparison", whose forms have no time
/// in common.
[[nodiscard]] std::string figures_json(const std::vector<PhaseStatistics>& figures);

/// The figures that figures_json() wrote; of any other text as much as can be read as such.
[[nodiscard]] std::vector<PhaseStatistics> parse_figures(std::string_view json);

} // namespace railbreak::record
