#include "injectors/fault_state.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace railbreak::injectors {
namespace {

using S = FaultState;
using E = FaultEvent;

constexpr std::array kStates{S::kPlanned, S::kChecked,  S::kJournalled, S::kApplied, S::kObserved,
                             S::kUndoing, S::kReverted, S::kRestored,   S::kDropped};
constexpr std::array kEvents{E::kPreflightPassed, E::kJournalWritten, E::kApplyDone, E::kSeen,
                             E::kFailed,          E::kRevert,         E::kUndone,    E::kVerified};

FaultState walk(std::initializer_list<FaultEvent> events) {
    FaultState state = S::kPlanned;
    for (const FaultEvent event : events) {
        const auto next = next_state(state, event);
        EXPECT_TRUE(next.has_value()) << to_string(state) << " + " << to_string(event);
        state = next.value_or(state);
    }
    return state;
}

TEST(FaultState, LeadsThroughTheWholeLife) {
    EXPECT_EQ(
        walk({E::kPreflightPassed, E::kJournalWritten, E::kApplyDone, E::kSeen, E::kRevert, E::kUndone, E::kVerified}),
        S::kRestored);
}

TEST(FaultState, DropsWithoutUndoWhenPreflightFails) {
    EXPECT_EQ(walk({E::kFailed}), S::kDropped);
    EXPECT_FALSE(undo_owed(S::kDropped));
}

TEST(FaultState, OwesAnUndoAfterAnyFailureBehindTheJournal) {
    EXPECT_EQ(walk({E::kPreflightPassed, E::kFailed}), S::kUndoing);
    EXPECT_EQ(walk({E::kPreflightPassed, E::kJournalWritten, E::kFailed}), S::kUndoing);
    EXPECT_EQ(walk({E::kPreflightPassed, E::kJournalWritten, E::kApplyDone, E::kFailed}), S::kUndoing);
    EXPECT_TRUE(undo_owed(S::kUndoing));
}

TEST(FaultState, TriesTheUndoAgainUntilItIsVerified) {
    EXPECT_EQ(walk({E::kPreflightPassed, E::kJournalWritten, E::kRevert, E::kFailed, E::kUndone, E::kFailed, E::kUndone,
                    E::kVerified, E::kRevert}),
              S::kRestored);
}

TEST(FaultState, LeavesAnOwedUndoOnlyByVerification) {
    for (const FaultState state : kStates) {
        for (const FaultEvent event : kEvents) {
            const auto next = next_state(state, event);
            if (next && undo_owed(state) && !undo_owed(*next)) {
                EXPECT_EQ(state, S::kReverted);
                EXPECT_EQ(event, E::kVerified);
            }
        }
    }
}

TEST(FaultState, RefusesEveryEventThatMakesNoSense) {
    std::size_t allowed = 0;
    for (const FaultState state : kStates) {
        for (const FaultEvent event : kEvents) {
            if (const auto next = next_state(state, event)) {
                ++allowed;
            } else {
                EXPECT_EQ(next.error().kind(), ErrorKind::kInternal);
            }
        }
    }
    EXPECT_EQ(allowed, 19U);
    EXPECT_FALSE(next_state(S::kPlanned, E::kApplyDone).has_value()); // never without a journal entry
    EXPECT_FALSE(next_state(S::kChecked, E::kApplyDone).has_value());
}

} // namespace
} // namespace railbreak::injectors
