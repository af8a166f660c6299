// Merges the faults that are active on one interface into one wanted state.
//
// Undoing a fault is "compose what remains and go there", so faults may start and end in any order and the last one
// always leads back to the original state. Two caps on one direction give the lower rate. A link that is down carries
// nothing, so it wins over a cap in effect; the cap's qdiscs stay in place underneath and act again once it is up.
#pragma once

#include <optional>
#include <span>

#include "injectors/fault.hpp"

namespace railbreak::injectors {

/// What an interface should be like. Default: as found.
struct WantedState {
    std::optional<BitRate> send;    ///< cap on what the host sends; empty: none
    std::optional<BitRate> receive; ///< cap on what the host receives; empty: none
    bool down = false;
    bool operator==(const WantedState&) const = default;
};

/// One active fault, reduced to what composing needs.
struct ActiveFault {
    FaultKind kind = FaultKind::kCap;
    Direction direction = Direction::kBoth;
    BitRate rate;
};

/// The one state that all of `faults` together mean. Order does not matter.
[[nodiscard]] WantedState compose(std::span<const ActiveFault> faults);

} // namespace railbreak::injectors
