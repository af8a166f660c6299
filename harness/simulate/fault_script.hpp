// What the faults of a plan do to the rates of NICs, and the record of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "collective/simulate/simulate.hpp"
#include "harness/controller/damage.hpp"
#include "harness/record/rows.hpp"
#include "scenarios/model.hpp"

namespace railbreak::simulate {

/// Refuses (kRefused, naming the fault) a plan with a fault that the model cannot play: it knows the rates of ports and
/// when ranks begin, but no packets, no processes and no disks.
[[nodiscard]] Result<void> check_playable(const scenarios::Plan& plan);

/// The time during which a fault acts within an iteration, from the iteration's start.
struct Span {
    Nanoseconds from{0};
    std::optional<Nanoseconds> until; ///< empty: beyond the iteration
};

/// When the fault acts within degraded iteration `iteration`: from start to end if it lasts for the whole phase, at
/// its offset if that is its iteration, else not at all. 0 stands for an iteration that no timed fault hits.
[[nodiscard]] std::optional<Span> acts_in(const scenarios::PlannedFault& fault, std::int32_t iteration);

/// When each rank begins degraded iteration `iteration`; empty when all begin at once. 0: as in acts_in().
[[nodiscard]] std::vector<Nanoseconds> rank_starts(const scenarios::Plan& plan, std::int32_t iteration);

/// The rates of the NICs in degraded iteration `iteration`, in order of time. Of several caps on one side of a NIC the
/// lowest acts; a link that is down moves nothing in either direction, nor does a NIC that drops what passes in one of
/// them: what the other side never acknowledges is not sent for long.
[[nodiscard]] std::vector<collective::RateChange> rate_changes(const scenarios::Plan& plan, std::int32_t iteration);

/// What the faults that last for the whole degraded phase do to each NIC: what plans are made for.
[[nodiscard]] controller::NicSlowdowns phase_damage(const scenarios::Plan& plan);

/// The record of a fault that acted in the simulation: ordered, applied and seen at `from`, undone at `until`, by the
/// simulation's clock; both at once, for nothing real was touched. `goodput` is that of a healthy NIC.
[[nodiscard]] record::InjectionRow injection_row(const scenarios::Plan& plan, const scenarios::PlannedFault& fault,
                                                 BitRate goodput, Nanoseconds from, Nanoseconds until);

} // namespace railbreak::simulate
