// Packet faults beside caps and beside what others have put on the NIC, and their refusal where they cannot be made.
#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <unistd.h>

#include "injectors/program_loader.hpp"
#include "injectors/shaping.hpp"
#include "tests/lab/packet_bench.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class PacketCompany : public ProgramBench {};

TEST_F(PacketCompany, GoesTogetherWithCapsInEveryOrder) {
    const auto before = snapshot();
    const FaultRequest cap{.id = 1,
                           .kind = FaultKind::kCap,
                           .nic = "nic0",
                           .direction = Direction::kBoth,
                           .rate = BitRate::bits_per_s(20'000'000)};
    const FaultRequest lossy = loss(2, Direction::kBoth, 200'000);
    const auto capped = [&] {
        const std::int32_t ifb = index_of("rbifbr" + std::to_string(nic_));
        return ifb != 0 && class_rate(*ops_, ifb, kOwnHtbClass).value() == cap.rate &&
               class_rate(*ops_, nic_, kOwnHtbClass).value() == cap.rate;
    };
    for (const bool cap_first : {true, false}) {
        for (const bool cap_leaves_first : {true, false}) {
            FaultKeeper keeper = open_keeper(*no_netem_, options());
            ASSERT_TRUE(keeper.apply(cap_first ? cap : lossy).has_value());
            ASSERT_TRUE(keeper.apply(cap_first ? lossy : cap).has_value());
            EXPECT_TRUE(capped());
            for (const Direction side : kSides) {
                const PacketProgramRecord now = program(side);
                const auto expected = let_through(now.program, now.counts.seen, 300);
                EXPECT_EQ(exchange(open_path(side), 300, expected.size()), expected);
            }
            ASSERT_TRUE(keeper.revert(cap_leaves_first ? cap.id : lossy.id).has_value());
            EXPECT_EQ(capped(), !cap_leaves_first);
            const PacketTreatment left = cap_leaves_first ? lossy.packets : PacketTreatment{};
            EXPECT_EQ(program(Direction::kReceive).program.treatment, left);
            EXPECT_EQ(program(Direction::kReceive).program.ends_redirect, !cap_leaves_first);
            ASSERT_TRUE(keeper.close().has_value());
            wait_ended(keeper.guard_pid(), kPatience);
            expect_as_before(before, 0);
        }
    }
}

TEST_F(PacketCompany, FiltersOfOthersSurvive) {
    ASSERT_TRUE(add_clsact(*channel_, nic_));
    ASSERT_TRUE(add_redirect(*channel_, nic_, TcDirection::kEgress, 7, nic1_));
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    // Theirs would see what leaves before ours.
    const auto refused = keeper.apply(loss(1, Direction::kSend, 10'000));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("u32 filter of priority 7"));
    expect_as_before(before, 0);
    ASSERT_TRUE(keeper.apply(loss(1, Direction::kReceive, 10'000)).has_value());
    EXPECT_NE(snapshot(), before);
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 1);
    // Also when it is the last filter that goes, the qdisc is theirs.
    ASSERT_TRUE(keeper.apply(loss(1, Direction::kReceive, 10'000)).has_value());
    ASSERT_TRUE(delete_redirect(*channel_, nic_, TcDirection::kEgress, 7));
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_THAT(snapshot(), Contains(HasSubstr("qdisc of nic0: clsact")));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PacketCompany, AFilterThatCameLaterKeepsTheClsactAndIsNoted) {
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    ASSERT_TRUE(keeper.apply(loss(1, Direction::kReceive, 10'000)).has_value());
    ASSERT_TRUE(add_redirect(*channel_, nic_, TcDirection::kIngress, 7, nic1_));
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_THAT(value_of(*reverted, "note"), HasSubstr("filters of others"));
    const auto filters = ops_->filters(nic_).value();
    EXPECT_FALSE(filters.empty());
    EXPECT_TRUE(
        std::all_of(filters.begin(), filters.end(), [](const FilterRecord& each) { return each.priority == 7; }));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PacketCompany, RefusesDelayWithoutNetemFirstAndJoining) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    const PacketTreatment late{.delay = std::chrono::milliseconds(1)};
    const PacketTreatment reordered{.delay = std::chrono::milliseconds(1), .reorder = 10'000};
    for (const bool joining : {false, true}) {
        const auto now = snapshot();
        for (const Direction side : kSides) {
            for (const auto& request :
                 {packets(5, FaultKind::kDelay, side, late), packets(6, FaultKind::kReorder, side, reordered)}) {
                for (const auto& refused :
                     {keeper.apply(request).map([](const auto&) {}), keeper.preview(request).map([](const auto&) {})}) {
                    ASSERT_FALSE(refused.has_value());
                    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
                    EXPECT_THAT(refused.error().message(), HasSubstr("the test hides netem"));
                }
            }
        }
        expect_as_before(now, joining ? 1 : 0);
        if (!joining) {
            ASSERT_TRUE(keeper.apply(loss(1, Direction::kBoth, 10'000)).has_value());
        }
    }
    EXPECT_TRUE(keeper.close().has_value());
    expect_as_before(before, 2);
}

TEST_F(PacketCompany, TellsBeforehandWhatItWillDo) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    const auto preview = keeper.preview(loss(1, Direction::kReceive, 15'000));
    ASSERT_TRUE(preview.has_value()) << preview.error().to_line();
    EXPECT_EQ(preview->steps.changes,
              (std::vector<std::string>{"nic0: clsact qdisc with the packet program on what arrives (1.5% lost)"}));
    EXPECT_EQ(preview->steps.undo, (std::vector<std::string>{"nic0: filter and clsact qdisc deleted"}));
    EXPECT_EQ(preview->realism, "port");
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PacketCompany, AForeignProgramOfTheSamePriorityIsNotOurs) {
    EXPECT_FALSE(ops_->packet_program(nic_, TcDirection::kIngress, kProgramPriority).value().has_value());
    ASSERT_TRUE(add_clsact(*channel_, nic_));
    ASSERT_TRUE(add_redirect(*channel_, nic_, TcDirection::kIngress, kProgramPriority, nic1_));
    EXPECT_FALSE(ops_->packet_program(nic_, TcDirection::kIngress, kProgramPriority).value().has_value());
    const auto gone = ops_->remove_program(nic_, TcDirection::kIngress, kProgramPriority);
    ASSERT_FALSE(gone.has_value());
    EXPECT_EQ(kernel_errno(gone.error()), ENOENT);
    EXPECT_FALSE(ops_->filters(nic_).value().empty());
}

/// Neither netem nor programs: packets are left alone, and caps work all the same.
TEST_F(PacketBench, RefusesPacketFaultsByNameWhereThereIsNoMeansForThem) {
    const auto before = snapshot();
    WithoutFeatures bare(*ops_, {KernelFeature::kNetem, KernelFeature::kPacketProgram});
    FaultKeeper keeper = open_keeper(bare, options());
    const FaultRequest cap{.id = 1,
                           .kind = FaultKind::kCap,
                           .nic = "nic0",
                           .direction = Direction::kBoth,
                           .rate = BitRate::bits_per_s(20'000'000)};
    for (const bool joining : {false, true}) {
        const auto now = snapshot();
        for (const Direction side : kSides) {
            const auto refused = keeper.apply(loss(2, side, 10'000));
            ASSERT_FALSE(refused.has_value());
            EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
            EXPECT_THAT(refused.error().message(), HasSubstr("the test hides netem"));
            EXPECT_THAT(refused.error().message(), HasSubstr("the test hides packet_program"));
        }
        expect_as_before(now, joining ? 1 : 0);
        if (!joining) {
            ASSERT_TRUE(keeper.apply(cap).has_value());
        }
    }
    EXPECT_TRUE(keeper.close().has_value());
    expect_as_before(before, 2);
}

/// In a user namespace of one's own, root has every capability there and none that programs need.
TEST(PacketProgramPermission, IsRefusedByNameInAUserNamespace) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t child = fork();
    if (child == 0) {
        std::string said = "no namespaces";
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
            auto channel = NetlinkChannel::open();
            const bool ready = channel && add_clsact(*channel, 1);
            const auto attached =
                ready ? attach_packet_program(*channel, 1, TcDirection::kEgress, kProgramPriority, PacketProgram{})
                      : fail(ErrorKind::kHarness, "no clsact");
            said = attached ? "attached"
                            : std::string(to_string(attached.error().kind())) + ": " + attached.error().to_line();
        }
        (void)!write(theirs.get(), said.data(), said.size());
        _exit(0);
    }
    theirs.reset();
    std::array<char, 500> text{};
    ASSERT_TRUE(readable(ours.get(), kPatience));
    const ssize_t size = read(ours.get(), text.data(), text.size());
    wait_ended(child, kPatience);
    const std::string said(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (said == "no namespaces") {
        GTEST_SKIP() << "user namespaces are not allowed here";
    }
    EXPECT_THAT(said, HasSubstr("refused: loading the packet program"));
    EXPECT_THAT(said, HasSubstr("CAP_BPF"));
}

} // namespace
} // namespace railbreak::injectors
