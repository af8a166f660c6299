// Packet faults on a real cable between two namespaces, by the packet program: what happens to every single datagram.
#include <algorithm>
#include <array>
#include <csignal>
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/program_loader.hpp"
#include "injectors/shaping.hpp"
#include "tests/lab/packet_bench.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::array kSides{Direction::kSend, Direction::kReceive};

FaultRequest packets(std::int32_t id, FaultKind kind, Direction direction, const PacketTreatment& treatment) {
    return {.id = id, .kind = kind, .nic = "nic0", .direction = direction, .packets = treatment};
}
FaultRequest loss(std::int32_t id, Direction direction, Millionths part) {
    return packets(id, FaultKind::kLoss, direction, {.loss = part});
}

std::string value_of(const FaultEvidence& evidence, const std::string& name) {
    for (const auto& [each, value] : evidence.readback) {
        if (each == name) {
            return value;
        }
    }
    return "none";
}

class PacketFault : public PacketBench {
protected:
    void SetUp() override {
        PacketBench::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        if (const std::string why = missing(KernelFeature::kPacketProgram); !why.empty()) {
            GTEST_SKIP() << why;
        }
        no_netem_ = std::make_unique<WithoutFeatures>(*ops_, std::vector{KernelFeature::kNetem});
    }
    /// Applies the fault, sends datagrams against it, and looks whether exactly those arrive that the program's
    /// arithmetic lets through; then reverts it. Gives the evidence.
    FaultEvidence act_exactly(const FaultRequest& request, std::uint32_t count);

    std::unique_ptr<WithoutFeatures> no_netem_;
};

FaultEvidence PacketFault::act_exactly(const FaultRequest& request, std::uint32_t count) {
    const auto before = snapshot();
    const DatagramPath path = open_path(request.direction);
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    const auto applied = keeper.apply(request);
    EXPECT_TRUE(applied.has_value()) << applied.error().to_line();
    if (!applied) {
        return {};
    }
    const PacketProgramRecord start = program(request.direction);
    EXPECT_EQ(start.program.treatment, request.packets);
    const auto expected = let_through(start.program, start.counts.seen, count);
    EXPECT_EQ(exchange(path, count, expected.size()), expected);
    const PacketProgramCounts counts = program(request.direction).counts;
    EXPECT_EQ(counts.seen - start.counts.seen, count);
    EXPECT_EQ(expected.size(), count - counts.lost - counts.corrupted + counts.duplicated);
    const auto reverted = keeper.revert(request.id);
    EXPECT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    return reverted.value_or(FaultEvidence{});
}

TEST_F(PacketFault, LosesExactlyTheDrawnPacketsOfEachSide) {
    for (const Direction side : kSides) {
        const FaultEvidence evidence = act_exactly(loss(1, side, 100'000), 2000);
        EXPECT_EQ(evidence.mechanism,
                  "packet program at clsact " + std::string(side == Direction::kSend ? "egress" : "ingress"));
        const std::string word(to_string(side));
        EXPECT_EQ(value_of(evidence, word + "_loss_millionths"), "100000");
        EXPECT_EQ(value_of(evidence, word + "_seen_packets"), "2000");
        // 200 are expected; 5 standard deviations are 67.
        EXPECT_NEAR(std::stod(value_of(evidence, word + "_lost_packets")), 200, 67);
    }
}

TEST_F(PacketFault, LosesInBurstsAsTheChainSays) {
    const GilbertElliott chain{
        .good_to_bad = 20'000, .bad_to_good = 200'000, .loss_in_bad = 900'000, .loss_in_good = 10'000};
    for (const Direction side : kSides) {
        const FaultEvidence evidence = act_exactly(packets(1, FaultKind::kLoss, side, {.bursts = chain}), 4000);
        const std::string word(to_string(side));
        EXPECT_EQ(value_of(evidence, word + "_burst_bad_to_good_millionths"), "200000");
        // In the long run one packet in eleven meets the bad state: 364 of 4000 are lost. Bursts have a mean of 5
        // packets, which makes the spread about three times that of single losses: 4 standard deviations are 220.
        EXPECT_NEAR(std::stod(value_of(evidence, word + "_lost_packets")), 364, 220);
    }
}

TEST_F(PacketFault, DoublesExactlyTheDrawnPacketsOnce) {
    for (const Direction side : kSides) {
        const FaultEvidence evidence =
            act_exactly(packets(1, FaultKind::kDuplicate, side, {.duplicate = 200'000}), 1000);
        // 5 standard deviations are 63.
        EXPECT_NEAR(std::stod(value_of(evidence, std::string(to_string(side)) + "_duplicated_packets")), 200, 63);
        act_exactly(packets(1, FaultKind::kDuplicate, side, {.duplicate = kMillion}), 200);
    }
}

TEST_F(PacketFault, CorruptsSoThatTheReceiverDiscardsEveryDamagedPacket) {
    for (const Direction side : kSides) {
        const std::uint64_t errors = counter_of_receiver(side, "Ip", "InHdrErrors");
        const FaultEvidence evidence = act_exactly(packets(1, FaultKind::kCorrupt, side, {.corrupt = 300'000}), 1000);
        const std::uint64_t damaged =
            std::stoull(value_of(evidence, std::string(to_string(side)) + "_corrupted_packets"));
        EXPECT_NEAR(static_cast<double>(damaged), 300, 73); // 5 standard deviations
        EXPECT_EQ(counter_of_receiver(side, "Ip", "InHdrErrors") - errors, damaged);
    }
}

TEST_F(PacketFault, FaultsJoinOnOneSideAndLeaveInAnyOrder) {
    for (const Direction side : kSides) {
        const auto before = snapshot();
        const DatagramPath path = open_path(side);
        FaultKeeper keeper = open_keeper(*no_netem_, options());
        ASSERT_TRUE(keeper.apply(loss(1, side, 200'000)).has_value());
        ASSERT_TRUE(keeper.apply(packets(2, FaultKind::kDuplicate, side, {.duplicate = 300'000})).has_value());
        ASSERT_TRUE(keeper.apply(packets(3, FaultKind::kCorrupt, side, {.corrupt = 100'000})).has_value());
        ASSERT_TRUE(keeper.apply(loss(4, side, 500'000)).has_value());
        const PacketTreatment together{.loss = 600'000, .corrupt = 100'000, .duplicate = 300'000};
        PacketProgramRecord now = program(side);
        EXPECT_EQ(now.program.treatment, together);
        auto expected = let_through(now.program, now.counts.seen, 1000);
        EXPECT_EQ(exchange(path, 1000, expected.size()), expected);
        ASSERT_TRUE(keeper.revert(1).has_value());
        ASSERT_TRUE(keeper.revert(3).has_value());
        now = program(side);
        EXPECT_EQ(now.program.treatment, (PacketTreatment{.loss = 500'000, .duplicate = 300'000}));
        expected = let_through(now.program, now.counts.seen, 500);
        EXPECT_EQ(exchange(path, 500, expected.size()), expected);
        ASSERT_TRUE(keeper.revert_all().has_value());
        expect_as_before(before, 0);
        EXPECT_EQ(exchange(path, 100, 100).size(), 100U);
        EXPECT_TRUE(keeper.close().has_value());
    }
}

/// Both sides at once: two programs, one clsact.
TEST_F(PacketFault, TreatsBothSidesAndEachLeavesByItself) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    ASSERT_TRUE(keeper.apply(loss(1, Direction::kBoth, 250'000)).has_value());
    ASSERT_TRUE(keeper.apply(packets(2, FaultKind::kDuplicate, Direction::kSend, {.duplicate = 100'000})).has_value());
    const PacketProgramRecord sending = program(Direction::kSend);
    const PacketProgramRecord receiving = program(Direction::kReceive);
    EXPECT_EQ(sending.program.treatment, (PacketTreatment{.loss = 250'000, .duplicate = 100'000}));
    EXPECT_EQ(receiving.program.treatment, (PacketTreatment{.loss = 250'000}));
    EXPECT_NE(sending.program.seed, receiving.program.seed);
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_EQ(program(Direction::kSend).program.treatment, (PacketTreatment{.duplicate = 100'000}));
    EXPECT_FALSE(ops_->packet_program(nic_, TcDirection::kIngress, kProgramPriority).value().has_value());
    ASSERT_TRUE(keeper.revert(2).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

/// Sends so many bytes over a connection and gives how many were sent again; every byte must arrive as it was.
std::uint32_t stream_bytes(const DatagramPath& stream, std::size_t count) {
    const auto byte_at = [](std::size_t i) { return static_cast<char>((i * 2654435761U) >> 13); };
    std::vector<char> chunk(16'384);
    std::size_t sent = 0;
    std::size_t received = 0;
    std::size_t wrong = 0;
    const Deadline deadline = Deadline::after(std::chrono::minutes(2));
    while (received < count && !deadline.passed()) {
        std::array<pollfd, 2> waiters{pollfd{stream.from.get(), static_cast<short>(sent < count ? POLLOUT : 0), 0},
                                      pollfd{stream.to.get(), POLLIN, 0}};
        EXPECT_GE(poll(waiters.data(), waiters.size(), deadline.poll_timeout_ms()), 0);
        if ((waiters[0].revents & POLLOUT) != 0) {
            const std::size_t now = std::min(chunk.size(), count - sent);
            for (std::size_t i = 0; i < now; ++i) {
                chunk[i] = byte_at(sent + i);
            }
            const ssize_t done = ::send(stream.from.get(), chunk.data(), now, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += done > 0 ? static_cast<std::size_t>(done) : 0;
        }
        if ((waiters[1].revents & POLLIN) != 0) {
            const ssize_t done = recv(stream.to.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
            for (std::size_t i = 0; done > 0 && i < static_cast<std::size_t>(done); ++i) {
                wrong += chunk[i] != byte_at(received + i) ? 1 : 0;
            }
            received += done > 0 ? static_cast<std::size_t>(done) : 0;
        }
    }
    EXPECT_EQ(received, count);
    EXPECT_EQ(wrong, 0U);
    tcp_info info{};
    socklen_t size = sizeof info;
    EXPECT_EQ(getsockopt(stream.from.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_total_retrans;
}

/// A stack that were told of a drop would keep quiet about it and send nothing again.
TEST_F(PacketFault, TcpSeesLossAndDamageAsLossAndDeliversTheRightBytes) {
    const auto before = snapshot();
    for (const Direction side : kSides) {
        for (const FaultKind kind : {FaultKind::kLoss, FaultKind::kCorrupt}) {
            FaultKeeper keeper = open_keeper(*no_netem_, options());
            const DatagramPath stream = open_stream(side);
            const PacketTreatment treatment =
                kind == FaultKind::kLoss ? PacketTreatment{.loss = 50'000} : PacketTreatment{.corrupt = 50'000};
            ASSERT_TRUE(keeper.apply(packets(1, kind, side, treatment)).has_value());
            const std::uint32_t again = stream_bytes(stream, 2'000'000);
            const PacketProgramCounts counts = program(side).counts;
            EXPECT_GT(counts.lost + counts.corrupted, 0U);
            EXPECT_GE(again, counts.lost + counts.corrupted) << to_string(kind) << " " << to_string(side);
            ASSERT_TRUE(keeper.close().has_value());
            wait_ended(keeper.guard_pid(), kPatience);
        }
    }
    expect_as_before(before, 0);
}

/// Waits on the clock itself.
void wait_until_boottime(Nanoseconds when) {
    const UniqueFd timer(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC));
    itimerspec at{};
    at.it_value.tv_sec = when.count() / 1'000'000'000;
    at.it_value.tv_nsec = when.count() % 1'000'000'000;
    ASSERT_EQ(timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &at, nullptr), 0);
    ASSERT_TRUE(readable(timer.get(), kPatience));
}

TEST_F(PacketFault, EndsByItselfAtTheDeadlineWhenAgentAndGuardAreDead) {
    const auto before = snapshot();
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t agent = fork();
    if (agent == 0) {
        auto keeper = FaultKeeper::open(options("dead", std::chrono::seconds(2)), *no_netem_);
        const bool applied = keeper && keeper->apply(loss(1, Direction::kBoth, kMillion));
        const pid_t guard = applied ? keeper->guard_pid() : 0;
        (void)!write(theirs.get(), &guard, sizeof guard);
        if (applied) {
            kill(guard, SIGKILL);
        }
        kill(getpid(), SIGKILL);
    }
    theirs.reset();
    pid_t guard = 0;
    ASSERT_TRUE(readable(ours.get(), kPatience));
    ASSERT_EQ(read(ours.get(), &guard, sizeof guard), static_cast<ssize_t>(sizeof guard));
    ASSERT_GT(guard, 0) << "the fault was not applied";
    wait_ended(agent, kPatience);
    wait_ended(guard, kPatience);
    for (const Direction side : kSides) {
        EXPECT_EQ(program(side).program.treatment.loss, kMillion);
        wait_until_boottime(program(side).program.deadline_boottime);
        const std::uint64_t lost = program(side).counts.lost;
        EXPECT_EQ(exchange(open_path(side), 500, 500).size(), 500U);
        EXPECT_EQ(program(side).counts.lost, lost);
    }
    const auto report = FaultKeeper::recover(*ops_, folder_);
    ASSERT_TRUE(report.has_value()) << report.error().to_line();
    EXPECT_TRUE(report->complete());
    expect_as_before(before, 0);
}

TEST_F(PacketFault, RenewingTheLeaseMovesTheDeadlineAndNothingElse) {
    FaultKeeper keeper = open_keeper(*no_netem_, options());
    ASSERT_TRUE(keeper.apply(loss(1, Direction::kBoth, 300'000)).has_value());
    for (const Direction side : kSides) {
        const DatagramPath path = open_path(side);
        const PacketProgramRecord first = program(side);
        EXPECT_GT(first.program.deadline_boottime, ops_->boottime());
        auto expected = let_through(first.program, first.counts.seen, 200);
        EXPECT_EQ(exchange(path, 200, expected.size()), expected);
        ASSERT_TRUE(keeper.renew_lease().has_value());
        const PacketProgramRecord second = program(side);
        EXPECT_GT(second.program.deadline_boottime, first.program.deadline_boottime);
        EXPECT_LE(second.program.deadline_boottime, ops_->boottime() + std::chrono::minutes(10));
        EXPECT_EQ(second.program.treatment, first.program.treatment);
        // Neither the counts nor the sequence of chances began again.
        EXPECT_EQ(second.counts.seen, first.counts.seen + 200);
        expected = let_through(second.program, second.counts.seen, 200);
        EXPECT_EQ(exchange(path, 200, expected.size()), expected);
    }
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PacketFault, GoesTogetherWithCapsInEveryOrder) {
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
            EXPECT_EQ(ops_->packet_program(nic_, TcDirection::kIngress, kProgramPriority).value().has_value(),
                      cap_leaves_first);
            ASSERT_TRUE(keeper.close().has_value());
            wait_ended(keeper.guard_pid(), kPatience);
            expect_as_before(before, 0);
        }
    }
}

TEST_F(PacketFault, FiltersOfOthersSurvive) {
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

TEST_F(PacketFault, AFilterThatCameLaterKeepsTheClsactAndIsNoted) {
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

TEST_F(PacketFault, RefusesDelayWithoutNetemFirstAndJoining) {
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

TEST_F(PacketFault, TellsBeforehandWhatItWillDo) {
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

TEST_F(PacketFault, AForeignProgramOfTheSamePriorityIsNotOurs) {
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
