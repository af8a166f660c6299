// Faults on real processes: standing still, killed; applied, failed and killed at every step. The host must end as it
// was, with no cgroup left, and a process whose pid is another's now is never touched.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/find_netns.hpp"
#include "injectors/journal.hpp"
#include "injectors/restore.hpp"
#include "tests/lab/process_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string name_of(const ::testing::TestParamInfo<Surroundings>& info) {
    return std::string(to_string(info.param));
}

class PauseFault : public ProcessLab {
protected:
    /// A freezer takes the children too, SIGSTOP the process alone.
    bool with_child() const { return GetParam() != Surroundings::kNone; }
};

TEST_P(PauseFault, StandsStillWithAllThreadsAndGoesOn) {
    const auto before = snapshot();
    bool seen_running = false; // the proof of standing still would be none if it held for a running process too
    for (int i = 0; i < 20 && !seen_running; ++i) {
        seen_running = !worker_->none_counts(with_child());
    }
    EXPECT_TRUE(seen_running);
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(pause(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, pause_mechanism());
    EXPECT_EQ(applied->realism, "process");
    EXPECT_TRUE(worker_->none_counts(with_child()));
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(worker_->all_count());
    EXPECT_TRUE(keeper.revert(1).has_value());
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_P(PauseFault, TellsBeforehandWhatItWillDo) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto preview = keeper.preview(pause(1));
    ASSERT_TRUE(preview.has_value()) << preview.error().to_line();
    EXPECT_EQ(preview->mechanism, pause_mechanism());
    EXPECT_FALSE(preview->steps.changes.empty());
    EXPECT_FALSE(preview->steps.undo.empty());
    const auto killing = keeper.preview(kill_it(2));
    ASSERT_TRUE(killing.has_value());
    ASSERT_EQ(killing->steps.undo.size(), 1U);
    EXPECT_THAT(killing->steps.undo.front(), HasSubstr("cannot be undone"));
    expect_as_before(before, 0);
    EXPECT_TRUE(worker_->all_count());
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_P(PauseFault, FailsAtEveryEffect) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(pause(1))), 5);
    EXPECT_TRUE(worker_->all_count());
}

TEST_P(PauseFault, GuardLetsItGoWhenTheAgentIsKilledAtAnyEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(pause(1)), false), 5);
    EXPECT_TRUE(worker_->all_count());
}

TEST_P(PauseFault, RecoveryLetsItGoWhenAgentAndGuardAreKilledAtAnyEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(pause(1)), true), 5);
    EXPECT_TRUE(worker_->all_count());
}

TEST_P(PauseFault, TwoOfThemEndInAnyOrder) {
    const auto before = snapshot();
    for (const std::int32_t first : {1, 2}) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        ASSERT_TRUE(keeper.apply(pause(1)).has_value());
        ASSERT_TRUE(keeper.apply(pause(2)).has_value());
        ASSERT_TRUE(keeper.revert(first).has_value());
        EXPECT_TRUE(worker_->none_counts(with_child()));
        ASSERT_TRUE(keeper.revert(3 - first).has_value());
        expect_as_before(before, first);
        EXPECT_TRUE(worker_->all_count());
        EXPECT_TRUE(keeper.close().has_value());
    }
}

TEST_P(PauseFault, RefusesAProcessThatStandsStillAlready) {
    ASSERT_EQ(kill(worker_->pid(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(waitpid(worker_->pid(), &status, WUNTRACED), worker_->pid());
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply(pause(1));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("stands still already"));
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_P(PauseFault, LeavesNothingWhenTheProcessDiesMeanwhile) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(pause(1)).has_value());
    if (pause_mechanism() == "cgroup v1 freezer") {
        // What is frozen in cgroup v1 does not even die.
        ASSERT_EQ(kill(worker_->pid(), SIGKILL), 0);
    } else {
        worker_->end();
    }
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    const auto now = snapshot();
    EXPECT_FALSE(std::any_of(now.begin(), now.end(), [](const std::string& line) {
        return line.find("cgroup ") == 0 && line.find("railbreak-") != std::string::npos;
    }));
    const auto counted = worker_->counts()[2];
    for (const Deadline deadline = Deadline::after(kPatience); worker_->counts()[2] == counted && !deadline.passed();) {
        sched_yield();
    }
    EXPECT_GT(worker_->counts()[2], counted) << "the dead worker's child does not go on";
    EXPECT_TRUE(keeper.close().has_value());
}

INSTANTIATE_TEST_SUITE_P(In, PauseFault,
                         ::testing::Values(Surroundings::kUnified, Surroundings::kOld, Surroundings::kNone), name_of);

class ProcessFault : public ProcessLab {};

TEST_P(ProcessFault, IsKilledAndItsEntryCloses) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(kill_it(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "SIGKILL");
    int status = 0;
    ASSERT_EQ(waitpid(worker_->pid(), &status, WNOHANG), worker_->pid());
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_THAT(keeper.open_faults(), IsEmpty());
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_P(ProcessFault, RecoveryDoesNotKillAgain) {
    // The agent dies before the signal: the entry is there, the process lives, and must go on living.
    const Script killing = [this](FaultKeeper& keeper) { return keeper.apply(kill_it(1)).has_value(); };
    for (int effect = 1; effect <= 3; ++effect) { // the three of the journal's intent
        ASSERT_FALSE(run_agent(killing, effect, true));
        const auto report = FaultKeeper::recover(*ops_, folder_);
        ASSERT_TRUE(report.has_value());
        EXPECT_TRUE(report->complete());
        EXPECT_TRUE(worker_->all_count());
    }
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_P(ProcessFault, RefusesRailbreakItselfAndItsAncestors) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const pid_t pid : {1, getpid(), getppid(), static_cast<pid_t>(keeper.guard_pid())}) {
        for (const FaultKind kind : {FaultKind::kPause, FaultKind::kKill}) {
            const auto refused = keeper.apply({.id = 1, .kind = kind, .pid = pid});
            ASSERT_FALSE(refused.has_value());
            EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused) << pid;
        }
    }
    const auto nobody = keeper.apply({.id = 1, .kind = FaultKind::kKill, .pid = 0x7fff'fff0});
    ASSERT_FALSE(nobody.has_value());
    EXPECT_EQ(nobody.error().kind(), ErrorKind::kInput);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_P(ProcessFault, NeverTouchesAnotherProcessThatGotThePid) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    JournalEntry entry;
    entry.request = pause(1);
    entry.owner = "railbreak run";
    entry.boot_id = ops_->boot_id().value();
    entry.target.kind = TargetKind::kProcess;
    entry.target.process = ops_->process(worker_->pid()).value()->identity;
    entry.target.pid_namespace = own_pid_namespace();
    const FacetContext context{entry.target, entry.owner, Nanoseconds(0)};
    for (const FaultKind kind : {FaultKind::kPause, FaultKind::kKill}) {
        entry.request.kind = kind;
        for (const FacetKind part : facets_of(entry.request)) {
            entry.former.push_back({part, facet(part).plan(*ops_, context, entry.request).value()});
        }
    }
    ASSERT_EQ(kill(worker_->pid(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(waitpid(worker_->pid(), &status, WUNTRACED), worker_->pid());
    const auto before = snapshot();
    entry.target.process.start_ticks -= 1; // the one that was meant is dead
    const auto restored = restore_entry(*ops_, entry);
    ASSERT_TRUE(restored.has_value()) << restored.error().to_line();
    ASSERT_EQ(restored->size(), 1U);
    EXPECT_THAT(restored->front(), HasSubstr("is gone"));
    expect_as_before(before, 0); // it stands still as before: nobody sent SIGCONT
    for (const int signal : {SIGCONT, SIGKILL}) {
        const auto sent = ops_->signal_process(entry.target.process, signal);
        ASSERT_FALSE(sent.has_value());
        EXPECT_THAT(sent.error().to_line(), HasSubstr("ESRCH"));
    }
    expect_as_before(before, 1);
    EXPECT_TRUE(keeper.close().has_value());
}

INSTANTIATE_TEST_SUITE_P(In, ProcessFault, ::testing::Values(Surroundings::kUnified, Surroundings::kNone), name_of);

} // namespace
} // namespace railbreak::injectors
