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

class PacketFault : public ProgramBench {
protected:
    /// Applies the fault, sends datagrams against it, and looks whether exactly those arrive that the program's
    /// arithmetic lets through; then reverts it. Gives the evidence.
    FaultEvidence act_exactly(const FaultRequest& request, std::uint32_t count);
    /// An agent applies the fault with a lease of two seconds, and dies with its guard.
    void die_holding(const FaultRequest& request);
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

void PacketFault::die_holding(const FaultRequest& request) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    UniqueFd theirs(ends[1]);
    const pid_t agent = fork();
    if (agent == 0) {
        auto keeper = FaultKeeper::open(options("dead", std::chrono::seconds(2)), *no_netem_);
        const bool applied = keeper && keeper->apply(request);
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
}

TEST_F(PacketFault, EndsByItselfAtTheDeadlineWhenAgentAndGuardAreDead) {
    const auto before = snapshot();
    die_holding(loss(1, Direction::kBoth, kMillion));
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

TEST_F(PacketFault, ACapOnWhatArrivesEndsByItselfAsWell) {
    const auto before = snapshot();
    die_holding({.id = 1,
                 .kind = FaultKind::kCap,
                 .nic = "nic0",
                 .direction = Direction::kReceive,
                 .rate = BitRate::bits_per_s(20'000'000)});
    const auto through_ifb = [&]() -> std::uint64_t {
        const auto qdiscs = ops_->qdiscs(index_of("rbifbr" + std::to_string(nic_))).value();
        const QdiscRecord* htb = find_handle(qdiscs, kOwnHtb);
        EXPECT_NE(htb, nullptr);
        return htb == nullptr ? 0 : htb->sent_bytes;
    };
    const PacketProgramRecord left = program(Direction::kReceive);
    EXPECT_TRUE(left.program.ends_redirect);
    wait_until_boottime(left.program.deadline_boottime);
    const std::uint64_t until_now = through_ifb();
    EXPECT_EQ(exchange(open_path(Direction::kReceive), 500, 500).size(), 500U);
    EXPECT_EQ(through_ifb(), until_now);
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

} // namespace
} // namespace railbreak::injectors
