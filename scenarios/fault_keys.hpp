// Which keys a fault of each kind takes, besides those that every fault has. The reader and the rules share it.
#pragma once

#include <span>
#include <string_view>

#include "scenarios/fault_model.hpp"
#include "scenarios/format.hpp"

namespace railbreak::scenarios {

/// The keys of faults that belong to some kinds only.
[[nodiscard]] std::span<const std::string_view> particular_fault_keys();

/// Those of a kind. Where one of several is required, none is marked.
[[nodiscard]] std::span<const KeySpec> fault_keys(FaultKind kind);

/// The kind with its article: "a cap", "an mtu fault".
[[nodiscard]] std::string_view with_article(FaultKind kind);

} // namespace railbreak::scenarios
