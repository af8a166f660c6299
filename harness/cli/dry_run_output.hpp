// A forecast as text and as JSON.
#pragma once

#include <string>

#include "harness/controller/dry_run.hpp"

namespace railbreak::cli {

/// Host by host: every fault with what would be changed and how it would be undone; ends in a newline.
[[nodiscard]] std::string forecast_text(const controller::Forecast& forecast);
/// One object of schema "railbreak-forecast", version 1; ends in a newline.
[[nodiscard]] std::string forecast_json(const controller::Forecast& forecast);

} // namespace railbreak::cli
