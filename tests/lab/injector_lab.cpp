#include "tests/lab/injector_lab.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/stepped_host_ops.hpp"

namespace railbreak::injectors {

using ::testing::IsEmpty;

KeeperOptions InjectorLab::options(const std::string& run, Nanoseconds lease) const {
    KeeperOptions options;
    options.run_id = run;
    options.host_name = "host";
    options.journal_folder = folder_;
    options.lease = lease;
    return options;
}

FaultKeeper InjectorLab::open_keeper(HostOps& ops, const KeeperOptions& options) {
    auto keeper = FaultKeeper::open(options, ops);
    EXPECT_TRUE(keeper.has_value()) << keeper.error().to_line();
    return std::move(keeper.value());
}

void InjectorLab::expect_as_before(const std::vector<std::string>& before, int step) const {
    const auto now = snapshot();
    std::vector<std::string> lost;
    std::vector<std::string> added;
    std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(lost));
    std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(added));
    EXPECT_THAT(lost, IsEmpty()) << "step " << step;
    EXPECT_THAT(added, IsEmpty()) << "step " << step;
}

bool InjectorLab::run_agent(const Script& script, int kill_at, bool guard_too) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t agent = fork();
    if (agent == 0) {
        bool armed = false;
        int effects = 0;
        pid_t guard = 0;
        SteppedHostOps stepped(*ops_, [&](std::string_view) {
            if (armed && ++effects == kill_at) {
                if (guard_too) {
                    kill(guard, SIGKILL);
                }
                kill(getpid(), SIGKILL);
            }
            return Result<void>();
        });
        auto keeper = FaultKeeper::open(options(), stepped);
        if (!keeper) {
            _exit(3);
        }
        guard = keeper->guard_pid();
        if (write(theirs.get(), &guard, sizeof guard) != static_cast<ssize_t>(sizeof guard)) {
            _exit(4);
        }
        armed = true;
        _exit(script(*keeper) && keeper->close() ? 0 : 5);
    }
    theirs.reset();
    pid_t guard = 0;
    if (!readable(ours.get(), kPatience) ||
        read(ours.get(), &guard, sizeof guard) != static_cast<ssize_t>(sizeof guard)) {
        ADD_FAILURE() << "the agent did not start";
        return true;
    }
    const int status = wait_ended(agent, kPatience);
    const Nanoseconds ended = monotonic_now();
    wait_ended(guard, kPatience);
    slowest_undo_ = std::max(slowest_undo_, monotonic_now() - ended);
    if (WIFEXITED(status)) {
        EXPECT_EQ(WEXITSTATUS(status), 0);
        return true;
    }
    EXPECT_EQ(WTERMSIG(status), SIGKILL);
    return false;
}

int InjectorLab::kill_at_every_effect(const ScriptMaker& make, bool guard_too) {
    std::vector<std::string> before;
    int step = 1;
    for (;; ++step) {
        const Script script = make();
        before = snapshot();
        if (run_agent(script, step, guard_too) || HasFailure()) {
            break;
        }
        if (guard_too) {
            const auto report = FaultKeeper::recover(*ops_, folder_);
            if (!report) {
                ADD_FAILURE() << report.error().to_line();
                return step;
            }
            EXPECT_TRUE(report->complete());
            EXPECT_THAT(report->busy, IsEmpty());
        }
        expect_as_before(before, step);
        // The guard does not know an entry that was written but not yet handed over; undoing it changes nothing. After
        // that nothing is left.
        const auto again = FaultKeeper::recover(*ops_, folder_);
        EXPECT_TRUE(again.has_value() && again->complete());
        expect_as_before(before, step);
        EXPECT_THAT(list_journals(folder_).value(), IsEmpty()) << "step " << step;
    }
    expect_as_before(before, step);
    return step - 1;
}

int InjectorLab::fail_at_every_effect(const ScriptMaker& make) {
    bool reached = true; // an effect whose failure is made good within the call is not the last one
    int step = 1;
    for (; reached && !HasFailure(); ++step) {
        const Script script = make();
        const auto before = snapshot();
        int effects = 0;
        bool armed = false;
        SteppedHostOps stepped(*ops_, [&](std::string_view effect) -> Result<void> {
            return armed && ++effects == step ? fail(ErrorKind::kHarness, "made to fail: " + std::string(effect))
                                              : Result<void>();
        });
        FaultKeeper keeper = open_keeper(stepped, options());
        armed = true;
        const bool whole = script(keeper);
        reached = effects >= step;
        EXPECT_TRUE(whole || reached) << "step " << step;
        // Only one effect fails, so that the next try must succeed.
        const auto reverted = keeper.revert_all();
        EXPECT_TRUE(reverted.has_value() || keeper.revert_all().has_value()) << "step " << step;
        EXPECT_THAT(keeper.open_faults(), IsEmpty());
        expect_as_before(before, step);
        EXPECT_TRUE(keeper.close().has_value() || keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
    }
    return step - 2;
}

Script apply_and_revert(FaultRequest request) {
    return [request](FaultKeeper& keeper) { return keeper.apply(request) && keeper.revert(request.id); };
}

} // namespace railbreak::injectors
