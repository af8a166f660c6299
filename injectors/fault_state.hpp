// The life of one fault as a state machine:
//   planned -> checked -> journalled -> applied -> observed -> reverted -> restored
// A failure before the journal entry ends in `dropped` (nothing was touched). A failure after it goes to `undoing`,
// because any step may have changed something even when it failed; from there only a verified undo leads out.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"

namespace railbreak::injectors {

enum class FaultState : std::uint8_t {
    kPlanned,    ///< wanted
    kChecked,    ///< preflight found nothing against it
    kJournalled, ///< undo record on disk and with the guard
    kApplied,    ///< the kernel acknowledged every change
    kObserved,   ///< read back; the fault holds
    kUndoing,    ///< something failed or the hold ended; must be brought back
    kReverted,   ///< the kernel acknowledged every step of the undo
    kRestored,   ///< read back as before: the end
    kDropped,    ///< given up before anything was touched: the end
};
/// "planned", "checked", ...
[[nodiscard]] std::string_view to_string(FaultState state);

enum class FaultEvent : std::uint8_t {
    kPreflightPassed,
    kJournalWritten,
    kApplyDone,
    kSeen,     ///< observe succeeded
    kFailed,   ///< the present step failed
    kRevert,   ///< the hold is over, or undo is asked for
    kUndone,   ///< all undo steps acknowledged
    kVerified, ///< former state read back
};
/// "preflight_passed", ...
[[nodiscard]] std::string_view to_string(FaultEvent event);

/// The state after `event`, or kInternal when the event makes no sense in `state`.
[[nodiscard]] Result<FaultState> next_state(FaultState state, FaultEvent event);

/// True when a fault in this state may have changed the host, so that undo is owed.
[[nodiscard]] bool undo_owed(FaultState state);

} // namespace railbreak::injectors
