// Blackhole and partition on real veth devices: what arrives and what does not, that the faults end by themselves, and
// that the host ends as it was.
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/drop_rules.hpp"
#include "injectors/journal.hpp"
#include "injectors/kernel_features.hpp"
#include "injectors/netlink.hpp"
#include "injectors/nft_records.hpp"
#include "injectors/traffic_control.hpp"
#include "tests/lab/datagrams.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

FaultRequest blackhole(std::int32_t id, Direction direction) {
    return {.id = id, .kind = FaultKind::kBlackhole, .nic = "nic0", .direction = direction};
}
FaultRequest partition(std::int32_t id, Direction direction, std::vector<std::string> peers) {
    return {.id = id, .kind = FaultKind::kPartition, .nic = "nic0", .direction = direction, .peers = std::move(peers)};
}

/// Value of a read-back, "" when it is missing.
std::string value_of(const FaultEvidence& evidence, const std::string& name) {
    for (const auto& [key, value] : evidence.readback) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

class DropFault : public InjectorLab {
protected:
    void SetUp() override {
        InjectorLab::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        const auto features = ops_->features();
        ASSERT_TRUE(features.has_value()) << features.error().to_line();
        for (const KernelFeature need : {KernelFeature::kNftIngress, KernelFeature::kNftEgress}) {
            if (!features->has(need)) {
                GTEST_SKIP() << features->missing(need);
            }
        }
    }

    struct Pair {
        DatagramEnd near;
        DatagramEnd far;
        /// Both ways work now, and the neighbours are known.
        [[nodiscard]] bool works() { return near.reaches(far) && far.reaches(near); }
    };
    Pair pair(const std::string& near, const std::string& far) const {
        return {DatagramEnd(host_netns_.get(), near), DatagramEnd(peer_netns_.get(), far)};
    }

    /// What the fault lets pass must be what `direction` says.
    static void expect_cut(Pair& pair, Direction direction) {
        const bool sends = direction == Direction::kReceive;
        const bool receives = direction == Direction::kSend;
        EXPECT_TRUE(sends ? pair.near.reaches(pair.far) : pair.near.is_cut_off_from(pair.far));
        EXPECT_TRUE(receives ? pair.far.reaches(pair.near) : pair.far.is_cut_off_from(pair.near));
    }
};

TEST_F(DropFault, BlackholeStopsEachDirectionOfBothFamilies) {
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    Pair ip6 = pair("fd09::1", "fd09::2");
    Pair other_nic = pair("10.10.0.1", "10.10.0.2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const Direction direction : kDirections) {
        ASSERT_TRUE(ip4.works() && ip6.works() && other_nic.works());
        const auto applied = keeper.apply(blackhole(1, direction));
        ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
        EXPECT_THAT(applied->mechanism, HasSubstr("nftables sets that end with the lease"));
        EXPECT_EQ(value_of(*applied, "send_drops"), direction == Direction::kReceive ? "0 peers" : "everything");
        expect_cut(ip4, direction);
        expect_cut(ip6, direction);
        EXPECT_TRUE(other_nic.works());
        const auto reverted = keeper.revert(1);
        ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
        expect_as_before(before, static_cast<int>(direction));
    }
    EXPECT_TRUE(ip4.works() && ip6.works());
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, PartitionStopsEachDirectionOfTheNamedPeersAlone) {
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    Pair ip6 = pair("fd09::1", "fd09::2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const Direction direction : kDirections) {
        ASSERT_TRUE(ip4.works() && ip6.works());
        const auto applied = keeper.apply(partition(1, direction, {"10.9.0.2", "10.9.0.200"}));
        ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
        expect_cut(ip4, direction);
        EXPECT_TRUE(ip6.works());
        ASSERT_TRUE(keeper.apply(partition(2, direction, {"fd09::2", "fd09:0::2"})).has_value());
        expect_cut(ip6, direction);
        ASSERT_TRUE(keeper.revert(1).has_value());
        EXPECT_TRUE(ip4.works());
        expect_cut(ip6, direction);
        ASSERT_TRUE(keeper.revert(2).has_value());
        expect_as_before(before, static_cast<int>(direction));
    }
    EXPECT_TRUE(ip4.works() && ip6.works());
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, ActsBehindAReceiveCapToo) {
    if (const auto features = ops_->features(); !features->has(KernelFeature::kIfb)) {
        GTEST_SKIP() << features->missing(KernelFeature::kIfb);
    }
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    Pair ip6 = pair("fd09::1", "fd09::2");
    ASSERT_TRUE(ip4.works() && ip6.works());
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const FaultRequest cap{.id = 9,
                           .kind = FaultKind::kCap,
                           .nic = "nic0",
                           .direction = Direction::kBoth,
                           .rate = BitRate::bits_per_s(100'000'000)};
    ASSERT_TRUE(keeper.apply(cap).has_value());
    ASSERT_TRUE(ip4.works() && ip6.works());
    for (const Direction direction : kDirections) {
        ASSERT_TRUE(keeper.apply(partition(1, direction, {"10.9.0.2", "fd09::2"})).has_value());
        expect_cut(ip4, direction);
        expect_cut(ip6, direction);
        ASSERT_TRUE(keeper.apply(blackhole(2, direction)).has_value());
        expect_cut(ip4, direction);
        expect_cut(ip6, direction);
        ASSERT_TRUE(keeper.revert(1).has_value());
        expect_cut(ip4, direction);
        ASSERT_TRUE(keeper.revert(2).has_value());
        ASSERT_TRUE(ip4.works() && ip6.works());
    }
    ASSERT_TRUE(keeper.revert(9).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, EndsByItselfWhenAgentAndGuardAreKilled) {
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    ASSERT_TRUE(ip4.works());
    const auto before = snapshot();
    const pid_t agent = fork();
    if (agent == 0) {
        auto keeper = FaultKeeper::open(options("run", std::chrono::seconds(5)), *ops_);
        if (keeper && keeper->apply(blackhole(1, Direction::kBoth))) {
            kill(keeper->guard_pid(), SIGKILL);
            kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    EXPECT_TRUE(WIFSIGNALED(wait_ended(agent, kPatience)));
    EXPECT_TRUE(ip4.near.is_cut_off_from(ip4.far)); // still within the lease
    EXPECT_TRUE(ip4.works());                       // waits until it is over
    EXPECT_NE(snapshot(), before);                  // what is left does nothing
    const auto report = FaultKeeper::recover(*ops_, folder_);
    ASSERT_TRUE(report.has_value()) << report.error().to_line();
    EXPECT_TRUE(report->complete());
    expect_as_before(before, 0);
}

/// When the element that stands for nic0 in `set` ends, by CLOCK_BOOTTIME; empty when it is not there.
std::optional<Nanoseconds> end_of_blackhole(HostOps& ops, const std::string& set) {
    const auto elements = read_nft_elements(ops, drop_tables().front(), set);
    EXPECT_TRUE(elements.has_value()) << elements.error().to_line();
    return elements && elements->size() == 1 ? std::optional(ops.boottime() + elements->front().left) : std::nullopt;
}

TEST_F(DropFault, SendersAreNotTold) {
    if (const auto features = ops_->features(); !features->has(KernelFeature::kNftForward)) {
        GTEST_SKIP() << features->missing(KernelFeature::kNftForward);
    }
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    ASSERT_TRUE(ip4.works());
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const FaultRequest& fault :
         {blackhole(1, Direction::kSend), partition(1, Direction::kSend, {"10.9.0.2", "fd09::2"})}) {
        ASSERT_TRUE(keeper.apply(fault).has_value());
        // With error reports asked for, a packet that the NIC's queue did not take is ENOBUFS.
        EXPECT_TRUE(ip4.near.may_send_to(ip4.far));
        EXPECT_TRUE(ip4.near.is_cut_off_from(ip4.far));
        const auto reverted = keeper.revert(1);
        ASSERT_TRUE(reverted.has_value());
        // Counted last, before the undo.
        EXPECT_GE(std::stoi("0" + value_of(*reverted, "dropped_packets")), 4);
    }
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, RenewingTheLeaseExtendsItAndKeepsItsCounters) {
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    ASSERT_TRUE(ip4.works());
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(blackhole(1, Direction::kReceive)).has_value());
    EXPECT_TRUE(ip4.far.is_cut_off_from(ip4.near));
    const std::string set = fmt::format("in_{}_all", nic_);
    const auto counted = [&] {
        const auto table = read_nft_table(*ops_, drop_tables().front());
        return table && !table->rules.empty() ? table->rules.front().packets : 0;
    };
    const auto first = end_of_blackhole(*ops_, set);
    const std::uint64_t dropped = counted();
    ASSERT_TRUE(first.has_value());
    EXPECT_GT(dropped, 0U);
    // Its end lies a lease ahead of now, and now has moved on.
    while (ops_->boottime() + std::chrono::minutes(10) < *first + std::chrono::seconds(2)) {
        EXPECT_TRUE(ip4.far.is_cut_off_from(ip4.near));
    }
    ASSERT_TRUE(keeper.renew_lease().has_value());
    const auto second = end_of_blackhole(*ops_, set);
    ASSERT_TRUE(second.has_value());
    EXPECT_GT(*second, *first);
    EXPECT_GE(counted(), dropped);
    EXPECT_TRUE(ip4.far.is_cut_off_from(ip4.near));
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_TRUE(ip4.works());
}

TEST_F(DropFault, GuardRestoresWhenTheAgentIsKilledAtAnyEffect) {
    kill_at_every_effect(apply_and_revert(partition(1, Direction::kBoth, {"10.9.0.2", "fd09::2"})), false);
}
TEST_F(DropFault, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffect) {
    kill_at_every_effect(apply_and_revert(blackhole(1, Direction::kBoth)), true);
}
TEST_F(DropFault, FailsAtEveryEffectOfOverlappingFaults) {
    fail_at_every_effect([](FaultKeeper& keeper) {
        return keeper.apply(partition(1, Direction::kBoth, {"10.9.0.2"})) &&
               keeper.apply(blackhole(2, Direction::kReceive)) &&
               keeper.apply({.id = 3, .kind = FaultKind::kBlackhole, .nic = "nic1"}) && keeper.revert(1) &&
               keeper.revert(2) && keeper.revert(3);
    });
}

TEST_F(DropFault, NicsShareTheTablesAndTheLastOneTakesThemAway) {
    Pair first = pair("10.9.0.1", "10.9.0.2");
    Pair second = pair("10.10.0.1", "10.10.0.2");
    ASSERT_TRUE(first.works() && second.works());
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    FaultRequest other = partition(2, Direction::kBoth, {"10.10.0.2"});
    other.nic = "nic1";
    ASSERT_TRUE(keeper.apply(blackhole(1, Direction::kBoth)).has_value());
    ASSERT_TRUE(keeper.apply(other).has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_TRUE(first.works());
    expect_cut(second, Direction::kBoth);
    ASSERT_TRUE(keeper.revert(2).has_value());
    EXPECT_TRUE(second.works());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, RefusesAForeignTableOfTheSameName) {
    for (const NftTable& table : drop_tables()) {
        ASSERT_TRUE(ops_->nft({nft_new_table(table, "somebody else's")}, "make a table").has_value());
        const auto before = snapshot();
        FaultKeeper keeper = open_keeper(*ops_, options());
        const auto refused = keeper.apply(blackhole(1, Direction::kBoth));
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
        EXPECT_THAT(refused.error().message(), HasSubstr("an nftables table railbreak, which railbreak did not make"));
        expect_as_before(before, 0);
        EXPECT_TRUE(keeper.close().has_value());
        ASSERT_TRUE(ops_->nft({nft_delete_table(table)}, "delete a table").has_value());
    }
}

TEST_F(DropFault, LeavesWhatOthersPutIntoTheTable) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(blackhole(1, Direction::kBoth)).has_value());
    const NftTable table = drop_tables().front();
    ASSERT_TRUE(ops_->nft({nft_new_chain(table, {"foreign", kNftIngressHook, 0, "nic1"})}, "add a chain").has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    const auto left = read_nft_table(*ops_, table);
    ASSERT_TRUE(left.has_value() && left->present);
    ASSERT_EQ(left->chains.size(), 1U);
    EXPECT_EQ(left->chains.front().name, "foreign");
    EXPECT_THAT(left->sets, IsEmpty());
    ASSERT_TRUE(ops_->nft({nft_delete_table(table)}, "delete a table").has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, CleansUpWhenTheDeviceIsGone) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(blackhole(1, Direction::kBoth)).has_value());
    ASSERT_TRUE(delete_link(*channel_, nic_).has_value());
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    for (const NftTable& table : drop_tables()) {
        EXPECT_FALSE(read_nft_table(*ops_, table).value().present);
    }
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, PutsBackWhatSomebodyTookAway) {
    Pair ip4 = pair("10.9.0.1", "10.9.0.2");
    ASSERT_TRUE(ip4.works());
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(blackhole(1, Direction::kBoth)).has_value());
    const NftTable table = drop_tables().front();
    ASSERT_TRUE(ops_->nft({nft_delete_chain(table, fmt::format("out_{}", nic_)),
                           nft_delete_set(table, fmt::format("out_{}_ip4", nic_))},
                          "take a part away")
                    .has_value());
    EXPECT_TRUE(ip4.near.reaches(ip4.far));
    ASSERT_TRUE(keeper.renew_lease().has_value());
    expect_cut(ip4, Direction::kBoth);
    ASSERT_TRUE(ops_->nft({nft_delete_table(table)}, "take all away").has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, SaysWhatItWouldDo) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto before = snapshot();
    const auto preview = keeper.preview(partition(1, Direction::kReceive, {"10.9.0.2"}));
    ASSERT_TRUE(preview.has_value()) << preview.error().to_line();
    ASSERT_EQ(preview->steps.changes.size(), 2U);
    EXPECT_THAT(preview->steps.changes[0], HasSubstr("what is received from 1 peer is dropped"));
    EXPECT_EQ(preview->steps.undo.size(), 1U);
    expect_as_before(before, 0);
    const auto wrong = keeper.apply(partition(1, Direction::kReceive, {"10.9.0.256"}));
    ASSERT_FALSE(wrong.has_value());
    EXPECT_EQ(wrong.error().kind(), ErrorKind::kInput);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(DropFault, TransactionsNameWhatFailedAndTakeNoEffect) {
    const NftTable table{kNftNetdev, "some_table"};
    const auto before = snapshot();
    const auto failed = ops_->nft({nft_new_table(table, "c"), nft_new_chain(table, {"in", kNftIngressHook, 0, "nic0"}),
                                   nft_delete_set(table, "no_such_set")},
                                  "make a table");
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(kernel_errno(failed.error()), ENOENT);
    EXPECT_THAT(failed.error().facts(), testing::Contains(std::pair<std::string, std::string>("nft", "DELSET")));
    EXPECT_THAT(failed.error().facts(), testing::Contains(std::pair<std::string, std::string>("message", "3")));
    expect_as_before(before, 0);

    const auto generation = read_nft_generation(*ops_);
    ASSERT_TRUE(generation.has_value());
    ASSERT_TRUE(ops_->nft({nft_begin(*generation), nft_new_table(table, "c")}, "make a table").has_value());
    const auto late = ops_->nft({nft_begin(*generation), nft_delete_table(table)}, "delete a table");
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(kernel_errno(late.error()), ERESTART);
    ASSERT_TRUE(ops_->nft({nft_delete_table(table)}, "delete a table").has_value());
    expect_as_before(before, 1);
}

/// A normal user, inside a user namespace of its own.
TEST(DropFaultWithoutRoot, StopsPacketsInAUserNamespace) {
    constexpr uid_t kNobodyInParticular = 4242;
    constexpr int kSkipped = 77;
    const pid_t child = fork();
    if (child == 0) {
        class Body : public DropFault {
        public:
            int run() {
                SetUp();
                if (IsSkipped()) {
                    return kSkipped;
                }
                TestBody();
                TearDown();
                return HasFailure() ? 1 : 0;
            }
            void TestBody() override {
                Pair ip4 = pair("10.9.0.1", "10.9.0.2");
                ASSERT_TRUE(ip4.works());
                const auto before = snapshot();
                FaultKeeper keeper = open_keeper(*ops_, options());
                const auto applied = keeper.apply(partition(1, Direction::kSend, {"10.9.0.2"}));
                ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
                expect_cut(ip4, Direction::kSend);
                ASSERT_TRUE(keeper.revert(1).has_value());
                EXPECT_TRUE(ip4.works());
                expect_as_before(before, 0);
                EXPECT_TRUE(keeper.close().has_value());
            }
        };
        const bool normal = geteuid() != 0 || (setresgid(kNobodyInParticular, kNobodyInParticular, 4242) == 0 &&
                                               setresuid(kNobodyInParticular, kNobodyInParticular, 4242) == 0);
        // The maps of its user namespace are its own to write only where it is dumpable.
        _exit(normal && prctl(PR_SET_DUMPABLE, 1) == 0 ? Body().run() : 2);
    }
    const int status = wait_ended(child, kPatience * 2);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kSkipped) {
        GTEST_SKIP() << "user namespaces are not allowed here, or the kernel lacks the hooks";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace railbreak::injectors
