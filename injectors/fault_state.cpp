#include "injectors/fault_state.hpp"

#include <array>
#include <string>

namespace railbreak::injectors {

namespace {

struct Transition {
    FaultState from;
    FaultEvent event;
    FaultState to;
};

using S = FaultState;
using E = FaultEvent;
constexpr std::array kTransitions{
    Transition{S::kPlanned, E::kPreflightPassed, S::kChecked},
    Transition{S::kPlanned, E::kFailed, S::kDropped},
    Transition{S::kChecked, E::kJournalWritten, S::kJournalled},
    // A failed journal write may have left a readable record, so it is owed an undo like any other.
    Transition{S::kChecked, E::kFailed, S::kUndoing},
    Transition{S::kJournalled, E::kApplyDone, S::kApplied},
    Transition{S::kJournalled, E::kFailed, S::kUndoing},
    Transition{S::kJournalled, E::kRevert, S::kUndoing},
    Transition{S::kApplied, E::kSeen, S::kObserved},
    Transition{S::kApplied, E::kFailed, S::kUndoing},
    Transition{S::kApplied, E::kRevert, S::kUndoing},
    Transition{S::kObserved, E::kRevert, S::kUndoing},
    Transition{S::kUndoing, E::kUndone, S::kReverted},
    Transition{S::kUndoing, E::kFailed, S::kUndoing},
    Transition{S::kUndoing, E::kRevert, S::kUndoing},
    Transition{S::kReverted, E::kVerified, S::kRestored},
    Transition{S::kReverted, E::kFailed, S::kUndoing},
    Transition{S::kReverted, E::kRevert, S::kUndoing},
    // Undo is idempotent: asking again for what is already as before is no error.
    Transition{S::kRestored, E::kRevert, S::kRestored},
    Transition{S::kDropped, E::kRevert, S::kDropped},
};

} // namespace

std::string_view to_string(FaultState state) {
    switch (state) {
    case S::kPlanned: return "planned";
    case S::kChecked: return "checked";
    case S::kJournalled: return "journalled";
    case S::kApplied: return "applied";
    case S::kObserved: return "observed";
    case S::kUndoing: return "undoing";
    case S::kReverted: return "reverted";
    case S::kRestored: return "restored";
    case S::kDropped: return "dropped";
    }
    return "?";
}

std::string_view to_string(FaultEvent event) {
    switch (event) {
    case E::kPreflightPassed: return "preflight_passed";
    case E::kJournalWritten: return "journal_written";
    case E::kApplyDone: return "apply_done";
    case E::kSeen: return "seen";
    case E::kFailed: return "failed";
    case E::kRevert: return "revert";
    case E::kUndone: return "undone";
    case E::kVerified: return "verified";
    }
    return "?";
}

Result<FaultState> next_state(FaultState state, FaultEvent event) {
    for (const Transition& transition : kTransitions) {
        if (transition.from == state && transition.event == event) {
            return transition.to;
        }
    }
    return fail(ErrorKind::kInternal, "a fault that is " + std::string(to_string(state)) + " cannot take the event " +
                                          std::string(to_string(event)));
}

bool undo_owed(FaultState state) {
    switch (state) {
    case S::kJournalled:
    case S::kApplied:
    case S::kObserved:
    case S::kUndoing:
    case S::kReverted: return true;
    case S::kPlanned:
    case S::kChecked:
    case S::kRestored:
    case S::kDropped: return false;
    }
    return true;
}

} // namespace railbreak::injectors
