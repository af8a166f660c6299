// An expectation as JSON. Internal to scenarios.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Only what says something stands there: old plans keep their hash.
[[nodiscard]] nlohmann::json to_json(const Expectation& expectation);
/// The inverse; throws when a member is missing or out of range.
[[nodiscard]] Expectation expectation_from(const nlohmann::json& object);

} // namespace railbreak::scenarios
