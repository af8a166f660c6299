// Faults on real veth devices in private namespaces: applied, failed and killed at every step; the host must end as it
// was.
#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <random>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/composer.hpp"
#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"
#include "injectors/shaping.hpp"
#include "injectors/stepped_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

FaultRequest cap(std::int32_t id, Direction direction, BitRate rate) {
    return {.id = id, .kind = FaultKind::kCap, .nic = "nic0", .direction = direction, .rate = rate};
}
FaultRequest down(std::int32_t id) {
    return {.id = id, .kind = FaultKind::kLinkDown, .nic = "nic0"};
}

TEST_F(InjectorLab, CapsBothDirectionsOfADefaultNicAndGivesItBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(cap(1, Direction::kBoth, mbit(100)));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_GT(applied->observed_at, Nanoseconds(0));
    EXPECT_GE(applied->observed_at, applied->applied_at);
    EXPECT_EQ(applied->mechanism, "htb root + ifb behind clsact ingress u32/mirred");
    EXPECT_EQ(applied->realism, "port");
    EXPECT_EQ(applied->data_path, "kernel TCP");
    const std::map<std::string, std::string> readback(applied->readback.begin(), applied->readback.end());
    EXPECT_EQ(readback.at("send_rate_bits_per_s"), "100000000");
    EXPECT_EQ(readback.at("receive_rate_bits_per_s"), "100000000");
    EXPECT_NE(snapshot(), before);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_GE(reverted->restored_at, reverted->reverted_at);
    EXPECT_GT(reverted->reverted_at, applied->observed_at);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.revert(1).has_value()); // undo is idempotent
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(InjectorLab, ChangesTheLabsClassInPlaceAndGivesItBackExactly) {
    shape_like_the_lab(500'000'000);
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(cap(1, Direction::kSend, mbit(250)));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "htb class rate in place");
    const auto lab = read_htb_class(*channel_, nic_, kLabHtbClass);
    ASSERT_TRUE(lab.has_value());
    EXPECT_EQ(lab->rate, mbit(250));
    EXPECT_GE(burst_bytes(lab->buffer_ticks, lab->rate), ByteCount::bytes(15'990)); // the burst did not shrink
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, NeverRaisesTheLabsRate) {
    shape_like_the_lab(100'000'000);
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(cap(1, Direction::kSend, mbit(900))).has_value());
    EXPECT_EQ(read_htb_class(*channel_, nic_, kLabHtbClass).value().rate, mbit(100));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, TakesTheLinkDownAndGivesBackAllThatItLost) {
    // With the search for duplicate addresses that hosts normally have.
    std::ofstream("/proc/sys/net/ipv6/conf/nic0/accept_dad") << "1";
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(down(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "admin down");
    // The kernel really forgot something; otherwise there would be nothing to test.
    EXPECT_LT(snapshot().size() + 5, before.size());
    const Nanoseconds asked = monotonic_now();
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    std::printf("link restored and compared in %.1f ms\n",
                static_cast<double>((reverted->restored_at - asked).count()) / 1e6);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, FailsAtEveryEffectOfACap) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80)))), 5);
}
TEST_F(InjectorLab, FailsAtEveryEffectOfALabCap) {
    shape_like_the_lab(500'000'000);
    EXPECT_GT(fail_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80)))), 5);
}
TEST_F(InjectorLab, FailsAtEveryEffectOfLinkDown) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(down(1))), 5);
}

TEST_F(InjectorLab, GuardRestoresWhenTheAgentIsKilledAtAnyEffectOfACap) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80))), false), 5);
}
TEST_F(InjectorLab, GuardRestoresWhenTheAgentIsKilledAtAnyEffectOfALabCap) {
    shape_like_the_lab(500'000'000);
    EXPECT_GT(kill_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80))), false), 5);
}
TEST_F(InjectorLab, GuardRestoresWhenTheAgentIsKilledAtAnyEffectOfLinkDown) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(down(1)), false), 5);
}
TEST_F(InjectorLab, GuardRestoresWhenTheAgentIsKilledAtAnyEffectOfOverlappingFaults) {
    EXPECT_GT(kill_at_every_effect(
                  [](FaultKeeper& keeper) {
                      return keeper.apply(cap(1, Direction::kSend, mbit(80))) && keeper.apply(down(2)) &&
                             keeper.apply(cap(3, Direction::kBoth, mbit(40))) && keeper.revert(1) && keeper.revert(2) &&
                             keeper.revert(3);
                  },
                  false),
              5);
}
TEST_F(InjectorLab, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffectOfACap) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80))), true), 5);
}
TEST_F(InjectorLab, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffectOfALabCap) {
    shape_like_the_lab(500'000'000);
    EXPECT_GT(kill_at_every_effect(apply_and_revert(cap(1, Direction::kBoth, mbit(80))), true), 5);
}
TEST_F(InjectorLab, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffectOfLinkDown) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(down(1)), true), 5);
}

TEST_F(InjectorLab, AgentLearnsThatItsGuardIsDeadAndRevertsItself) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(cap(1, Direction::kBoth, mbit(50))).has_value());
    ASSERT_TRUE(keeper.apply(down(2)).has_value());
    EXPECT_TRUE(keeper.check_guard().has_value());
    ASSERT_EQ(kill(keeper.guard_pid(), SIGKILL), 0);
    ASSERT_TRUE(readable(keeper.guard_fd(), kPatience));
    EXPECT_FALSE(keeper.check_guard().has_value());
    EXPECT_FALSE(keeper.apply(cap(3, Direction::kSend, mbit(5))).has_value());
    const auto reverted = keeper.revert_all();
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_EQ(reverted->size(), 2U);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, GuardRestoresWhenTheLeaseRunsOut) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options("run", std::chrono::milliseconds(2500)));
    ASSERT_TRUE(keeper.apply(cap(1, Direction::kBoth, mbit(50))).has_value());
    ASSERT_TRUE(keeper.apply(down(2)).has_value());
    ASSERT_TRUE(keeper.renew_lease().has_value());
    ASSERT_TRUE(readable(keeper.guard_fd(), kPatience));
    EXPECT_FALSE(keeper.check_guard().has_value());
    expect_as_before(before, 0);
    EXPECT_EQ(keeper.lease_left(), Nanoseconds(0));
    EXPECT_FALSE(keeper.renew_lease().has_value());
    EXPECT_TRUE(keeper.revert_all().has_value()); // the agent undoes too, and finds nothing to do
    expect_as_before(before, 1);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, GuardRestoresWhenItIsToldToEnd) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(down(1)).has_value());
    ASSERT_EQ(kill(keeper.guard_pid(), SIGTERM), 0);
    wait_ended(keeper.guard_pid(), kPatience);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, UndoesNothingOnADeviceThatIsGone) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(cap(1, Direction::kBoth, mbit(50))).has_value());
    ASSERT_TRUE(delete_link(*channel_, nic_).has_value());
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    ASSERT_FALSE(reverted->readback.empty());
    EXPECT_THAT(reverted->readback.back().second, HasSubstr("gone"));
    EXPECT_EQ(index_of("rbifbr" + std::to_string(nic_)), 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, RefusesForeignTrafficControlAndLeavesItAlone) {
    ASSERT_TRUE(add_htb(*channel_, nic_, tc_handle(1, 0), 1));
    ASSERT_TRUE(add_clsact(*channel_, nic_));
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const Direction direction : {Direction::kSend, Direction::kReceive, Direction::kBoth}) {
        const auto refused = keeper.apply(cap(1, direction, mbit(50)));
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
        EXPECT_THAT(refused.error().message(), HasSubstr(direction == Direction::kReceive ? "clsact" : "htb 1:"));
    }
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, LeavesWhatOthersPutInItsPlace) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(cap(1, Direction::kSend, mbit(50))).has_value());
    ASSERT_TRUE(delete_qdisc(*channel_, nic_, kTcRoot, kOwnHtb));
    ASSERT_TRUE(add_htb(*channel_, nic_, tc_handle(1, 0), 1));
    const auto foreign = snapshot();
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_THAT(reverted->readback.back().second, HasSubstr("htb 1:"));
    expect_as_before(foreign, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, RefusesANicThatMustNotBeTouched) {
    add_route(AF_INET, "", 0, "10.10.0.2", RT_TABLE_MAIN, static_cast<std::uint32_t>(nic1_));
    const auto before = snapshot();
    KeeperOptions with_control = options();
    with_control.protected_nics = {"nic0"};
    FaultKeeper keeper = open_keeper(*ops_, with_control);
    std::map<std::string, std::string> reasons{
        {"nic0", "control connection"}, {"nic1", "default route"}, {"lo", "loopback"}};
    for (const auto& [nic, reason] : reasons) {
        const auto refused = keeper.apply({.id = 1, .kind = FaultKind::kLinkDown, .nic = nic});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
        EXPECT_THAT(refused.error().message(), HasSubstr(reason));
    }
    const auto unknown = keeper.apply({.id = 1, .kind = FaultKind::kLinkDown, .nic = "nic7"});
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().kind(), ErrorKind::kRefused);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(InjectorLab, RefusesASecondRunOnTheSameNic) {
    shape_like_the_lab(500'000'000); // in-place caps leave no tag that the second run could see
    const auto before = snapshot();
    FaultKeeper first = open_keeper(*ops_, options("first"));
    ASSERT_TRUE(first.apply(cap(1, Direction::kSend, mbit(200))).has_value());
    const auto during = snapshot();
    FaultKeeper second = open_keeper(*ops_, options("second"));
    EXPECT_EQ(second.leftovers().busy.size(), 1U);
    for (const FaultRequest& request : {cap(1, Direction::kReceive, mbit(5)), down(2)}) {
        const auto refused = second.apply(request);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
        EXPECT_THAT(refused.error().message(), HasSubstr("first"));
    }
    expect_as_before(during, 0);
    ASSERT_TRUE(first.close().has_value());
    expect_as_before(before, 1);
    EXPECT_TRUE(second.apply(cap(1, Direction::kReceive, mbit(5))).has_value());
    EXPECT_TRUE(second.close().has_value());
    expect_as_before(before, 2);
}

TEST_F(InjectorLab, NextStartUndoesWhatADeadRunLeft) {
    const auto before = snapshot();
    const auto hold = [](FaultKeeper& keeper) {
        return keeper.apply(cap(1, Direction::kBoth, mbit(80))) && keeper.apply(down(2)) && keeper.revert(2);
    };
    ASSERT_FALSE(run_agent(hold, 27, true)); // in the middle of the second fault
    EXPECT_NE(snapshot(), before);
    FaultKeeper keeper = open_keeper(*ops_, options("next"));
    expect_as_before(before, 0);
    ASSERT_FALSE(keeper.leftovers().faults.empty());
    EXPECT_EQ(keeper.leftovers().faults[0].run_id, "run");
    EXPECT_TRUE(keeper.leftovers().complete());
    EXPECT_TRUE(keeper.close().has_value());
}

/// Rate of the receive cap on nic0, empty without one.
std::optional<BitRate> received_rate(HostOps& ops, std::int32_t nic) {
    const auto ifb = find_own_ifb(ops, "rbifbr" + std::to_string(nic)).value();
    return ifb ? class_rate(ops, ifb->ifindex, kOwnHtbClass).value() : std::nullopt;
}

/// Random faults start and end on one NIC; after each step the NIC is what the open faults together mean, and after
/// the last it is as it was.
TEST_F(InjectorLab, OverlappingFaultsEndInTheOriginalStateInAnyOrder) {
    for (std::uint32_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
        const auto before = snapshot();
        std::mt19937 random(seed);
        const auto draw = [&](std::uint32_t below) { return static_cast<std::int32_t>(random() % below); };
        FaultKeeper keeper = open_keeper(*ops_, options());
        std::map<std::int32_t, FaultRequest> active;
        for (int step = 0; step < 12 || !active.empty(); ++step) {
            const std::int32_t id = draw(4);
            if (active.erase(id) != 0) {
                const auto reverted = keeper.revert(id);
                ASSERT_TRUE(reverted.has_value()) << "seed " << seed << ": " << reverted.error().to_line();
            } else if (step < 12) {
                const bool is_down = draw(4) == 0;
                const auto request =
                    is_down ? down(id)
                            : cap(id, static_cast<Direction>(draw(3)), mbit(static_cast<std::uint64_t>(10 + draw(90))));
                const auto applied = keeper.apply(request);
                ASSERT_TRUE(applied.has_value()) << "seed " << seed << ": " << applied.error().to_line();
                active[id] = request;
            }
            std::vector<FaultRequest> faults;
            for (const auto& [each, fault] : active) {
                faults.push_back(fault);
            }
            const WantedState wanted = compose(faults).value();
            EXPECT_EQ(class_rate(*ops_, nic_, kOwnHtbClass).value(), wanted.send) << "seed " << seed;
            EXPECT_EQ(received_rate(*ops_, nic_), wanted.receive) << "seed " << seed;
        }
        expect_as_before(before, static_cast<int>(seed));
        EXPECT_TRUE(keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
    }
}

} // namespace
} // namespace railbreak::injectors
