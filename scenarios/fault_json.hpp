// A planned fault as JSON. Internal to scenarios.
#pragma once

#include <nlohmann/json.hpp>

#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Only what says something about the kind stands there: old plans keep their hash.
[[nodiscard]] nlohmann::json to_json(const PlannedFault& fault);
/// The inverse, for the fault number `id` of a plan on that cluster; throws when a member is missing or out of range.
[[nodiscard]] PlannedFault fault_from(const nlohmann::json& object, const ClusterSpec& cluster, std::int32_t id);
/// What the fault's kind says beside its target, rate, direction and times: {"delay_ns": ..., "jitter_ns": ...}.
[[nodiscard]] nlohmann::json strength_to_json(const PlannedFault& fault);

} // namespace railbreak::scenarios
