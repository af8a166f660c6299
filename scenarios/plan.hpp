// From the scenario to the plan: every random choice made, every default and fraction turned into a number, written
// as canonical JSON and hashed. The same hash means the same experiment.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// Makes every choice from `seed`. Random hosts are drawn in the order of the file, without repetition, among the
/// hosts that no fault names. The canonical JSON does not hold the seed: two seeds that lead to the same choices give
/// the same plan and the same hash. Error (kInput): more random faults than free hosts, which load_scenario refuses.
[[nodiscard]] Result<Plan> expand(const Scenario& scenario, std::uint64_t seed);

/// Reads the canonical JSON of a plan back. Anything that expand() would not have written, byte for byte, is an Error
/// (kInput). The seed is not part of the JSON; the caller, who stored it beside, gives it.
[[nodiscard]] Result<Plan> plan_from_json(std::string_view text, std::uint64_t seed = 0);

/// The part of a rate that a fraction in (0, 1] leaves, rounded down to whole bits per second.
[[nodiscard]] BitRate fraction_of(BitRate rate, const Rational& fraction);

} // namespace railbreak::scenarios
