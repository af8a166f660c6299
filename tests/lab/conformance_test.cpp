// Every kind of fault against everything that can go wrong around it. Whatever happens, the host must end as it was.
//
// The suite prints its matrix: kinds down, cells across. A cell says how many effects were failed or killed at, or why
// it does not exist for that kind; nothing is left out in silence.
#include <algorithm>
#include <csignal>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/rtnetlink.h>
#include <sys/wait.h>

#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"
#include "tests/lab/conformance_targets.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Conformance : public ConformanceTargets, public ::testing::WithParamInterface<FaultForm> {
protected:
    /// Prints kinds down and cells across when all have run.
    static void TearDownTestSuite() {
        std::map<std::string, std::map<std::string, std::string>> rows;
        const ::testing::TestSuite& suite = *::testing::UnitTest::GetInstance()->current_test_suite();
        for (int i = 0; i < suite.total_test_count(); ++i) {
            const ::testing::TestInfo& info = *suite.GetTestInfo(i);
            if (!info.should_run()) {
                continue;
            }
            const std::string name = info.name();
            const std::size_t slash = name.find('/');
            std::string cell = info.result()->Failed() ? "FAILED" : "ok";
            for (int each = 0; each < info.result()->test_property_count() && !info.result()->Failed(); ++each) {
                cell = info.result()->GetTestProperty(each).value();
            }
            rows[name.substr(slash + 1)][name.substr(0, slash)] = cell;
        }
        for (const auto& [kind, cells] : rows) {
            fmt::print("conformance | {:17} |", kind);
            for (const auto& [cell, outcome] : cells) {
                fmt::print(" {} {} |", cell, outcome);
            }
            fmt::print("\n");
        }
    }

    void SetUp() override {
        ConformanceTargets::SetUp();
        if (!IsSkipped() && GetParam().request.kind == FaultKind::kDiskFull && !no_disk().empty()) {
            GTEST_SKIP() << no_disk();
        }
    }

    [[nodiscard]] bool on_nic() const { return target_kind(GetParam().request.kind) == TargetKind::kNic; }
    [[nodiscard]] FaultRequest request() { return aimed(GetParam().request); }
    [[nodiscard]] ScriptMaker once() {
        return [this] { return apply_and_revert(request()); };
    }
    void say(const std::string& cell) { RecordProperty("cell", cell); }

    /// A kernel or a privilege that this kind needs is missing here: then it must be refused with a reason and nothing
    /// may change. True when that was so, and the cell is done.
    [[nodiscard]] bool refused_here() {
        const FaultRequest asked = request();
        const auto before = snapshot();
        FaultKeeper keeper = open_keeper(*ops_, options("refusal"));
        const auto previewed = keeper.preview(asked);
        if (previewed) {
            EXPECT_FALSE(previewed->steps.changes.empty());
            EXPECT_FALSE(previewed->steps.undo.empty());
            EXPECT_FALSE(previewed->mechanism.empty());
        } else {
            EXPECT_EQ(previewed.error().kind(), ErrorKind::kRefused) << previewed.error().to_line();
            EXPECT_FALSE(keeper.apply(asked).has_value());
            say("refused: " + previewed.error().message());
        }
        expect_as_before(before, 0);
        EXPECT_TRUE(keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
        return !previewed;
    }
};

TEST_P(Conformance, A_Normal) {
    if (refused_here()) {
        return;
    }
    const FaultRequest asked = request();
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(asked);
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_GE(applied->observed_at, applied->applied_at);
    EXPECT_GT(applied->applied_at, Nanoseconds(0));
    EXPECT_FALSE(applied->readback.empty());
    EXPECT_FALSE(applied->mechanism.empty());
    EXPECT_FALSE(applied->realism.empty());
    if (asked.kind != FaultKind::kKill) {
        EXPECT_TRUE(snapshot() != before) << "nothing changed";
    }
    ASSERT_TRUE(keeper.renew_lease().has_value());
    const auto reverted = keeper.revert(asked.id);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_GE(reverted->restored_at, reverted->reverted_at);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.revert(asked.id).has_value()) << "undo is idempotent";
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
    say("ok");
}

TEST_P(Conformance, B_FailAtStep) {
    if (!refused_here()) {
        say(fmt::format("1..{}", fail_at_every_effect(once())));
    }
}

TEST_P(Conformance, C_KillAgentAtStep) {
    if (!refused_here()) {
        say(fmt::format("1..{}", kill_at_every_effect(once(), false)));
    }
}

TEST_P(Conformance, D_KillAgentAndGuardThenRecover) {
    if (!refused_here()) {
        say(fmt::format("1..{}", kill_at_every_effect(once(), true)));
    }
}

TEST_P(Conformance, E_LeaseExpiry) {
    if (refused_here()) {
        return;
    }
    const FaultRequest asked = request();
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options("run", std::chrono::milliseconds(2500)));
    const auto applied = keeper.apply(asked);
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    ASSERT_TRUE(readable(keeper.guard_fd(), kPatience));
    EXPECT_FALSE(keeper.check_guard().has_value());
    expect_as_before(before, 0);
    EXPECT_FALSE(keeper.renew_lease().has_value());
    EXPECT_TRUE(keeper.revert_all().has_value());
    expect_as_before(before, 1);
    EXPECT_TRUE(keeper.close().has_value());
    say("ok");
}

TEST_P(Conformance, F_TargetDeletedMeanwhile) {
    if (refused_here()) {
        return;
    }
    if (GetParam().request.kind == FaultKind::kDiskFull) {
        say("n/a: a file system that holds the ballast cannot be unmounted");
        return;
    }
    const FaultRequest asked = request();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(asked);
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    if (on_nic()) {
        ASSERT_TRUE(delete_link(*channel_, nic_).has_value());
    } else {
        end_victim();
    }
    const auto reverted = keeper.revert(asked.id);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_THAT(own_things(), IsEmpty());
    EXPECT_TRUE(keeper.close().has_value());
    say("ok");
}

TEST_P(Conformance, G_ForeignStateIsThereAlready) {
    if (refused_here()) {
        return;
    }
    const FaultRequest asked = request();
    if (on_nic()) {
        constexpr TcHandle kForeign = tc_handle(1, 0);
        ASSERT_TRUE(add_htb(*channel_, nic_, kForeign, 1).has_value());
        ASSERT_TRUE(add_clsact(*channel_, nic_).has_value());
        ASSERT_TRUE(add_redirect(*channel_, nic_, TcDirection::kEgress, 77, nic1_).has_value());
        ASSERT_TRUE(add_redirect(*channel_, nic_, TcDirection::kIngress, 77, nic1_).has_value());
    } else if (asked.pid != 0) {
        ASSERT_EQ(kill(victim(), SIGSTOP), 0);
        int status = 0;
        ASSERT_EQ(waitpid(victim(), &status, WUNTRACED), victim());
    } else {
        say("n/a: files of others are never touched");
        return;
    }
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(asked);
    if (applied) {
        ASSERT_TRUE(keeper.revert(asked.id).has_value());
    } else {
        EXPECT_EQ(applied.error().kind(), ErrorKind::kRefused) << applied.error().to_line();
    }
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    say(applied ? "beside it" : "refused");
}

TEST_P(Conformance, H_TwoControllers) {
    if (refused_here()) {
        return;
    }
    const FaultRequest asked = request();
    const auto before = snapshot();
    FaultKeeper first = open_keeper(*ops_, options("first"));
    FaultKeeper second = open_keeper(*ops_, options("second"));
    const auto applied = first.apply(asked);
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    const auto during = snapshot();
    const auto refused = second.apply(asked);
    ASSERT_FALSE(refused.has_value());
    if (asked.kind != FaultKind::kKill) { // whose second victim is gone
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused) << refused.error().to_line();
        EXPECT_THAT(refused.error().message(), HasSubstr("first"));
    }
    expect_as_before(during, 0);
    ASSERT_TRUE(first.revert(asked.id).has_value());
    expect_as_before(before, 1);
    if (asked.kind != FaultKind::kKill) {
        const auto again = second.apply(asked);
        EXPECT_TRUE(again.has_value()) << again.error().to_line();
        EXPECT_TRUE(second.revert(asked.id).has_value());
        expect_as_before(before, 2);
    }
    EXPECT_TRUE(first.close().has_value());
    EXPECT_TRUE(second.close().has_value());
    say("second refused");
}

INSTANTIATE_TEST_SUITE_P(Kinds, Conformance, ::testing::ValuesIn(all_fault_forms()),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace railbreak::injectors
