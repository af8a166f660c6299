// The canonical bytes of a plan.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// The plan as JSON with sorted keys, no spaces and only whole numbers; every key of a quantity ends in its unit.
/// Limits are in millionths. Absent values have no key.
[[nodiscard]] std::string canonical_json(const Plan& plan);

/// XXH3-128 of the bytes as 32 lower-case hex digits, high half first (the canonical form of xxHash).
[[nodiscard]] std::string plan_hash(std::string_view canonical_json);

} // namespace railbreak::scenarios
