// When faults of a scenario act at the same time, and which of them cannot. Internal to scenarios.
#pragma once

#include <optional>
#include <string>

#include "scenarios/model.hpp"

namespace railbreak::scenarios {

/// How long after its start the last effect of a fault with `at` ends; nothing when the file does not say, which is an
/// error of its own, and for a fault that ends by itself.
[[nodiscard]] std::optional<Nanoseconds> length_of(const FaultSpec& fault);

/// Whether both act at the same time in some degraded iteration.
[[nodiscard]] bool overlap(const FaultSpec& a, const FaultSpec& b);

/// A pair that cannot be composed.
struct Conflict {
    std::string what;   ///< one sentence that names both
    std::string advice; ///< what to write instead
};

/// Why `b` cannot act beside `a`, which stands before it in the file; nothing when they compose. Every pair that is not
/// named here composes: see injectors/composer.hpp for how.
[[nodiscard]] std::optional<Conflict> conflict_of(const FaultSpec& a, const FaultSpec& b);

} // namespace railbreak::scenarios
