// Packet faults by netem, where the kernel has it: what is asked for is in the qdisc, and datagrams feel it.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>

#include "injectors/packet_mechanism.hpp"
#include "injectors/shaping.hpp"
#include "tests/lab/packet_bench.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::Each;
using ::testing::Lt;

class NetemFault : public PacketBench {
protected:
    void SetUp() override {
        PacketBench::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        if (const std::string why = missing(KernelFeature::kNetem); !why.empty()) {
            GTEST_SKIP() << why;
        }
    }
    /// The netem of that side of nic0.
    [[nodiscard]] std::optional<QdiscRecord> netem(Direction side) const {
        const std::int32_t ifb = index_of((side == Direction::kSend ? "rbifbs" : "rbifbr") + std::to_string(nic_));
        const auto qdiscs = ifb == 0 ? std::vector<QdiscRecord>() : ops_->qdiscs(ifb).value();
        const QdiscRecord* found = find_handle(qdiscs, kOwnNetem);
        return found == nullptr ? std::nullopt : std::optional(*found);
    }
    /// Applies the fault, sends datagrams, and reverts it. Gives the numbers that arrived; waits for `expected` of
    /// them, or for all that the netem has not counted as lost. What was told stands in `evidence_`.
    std::vector<std::uint32_t> act(const FaultRequest& request, std::uint32_t count,
                                   std::optional<std::size_t> expected);
    FaultEvidence evidence_;
};

std::vector<std::uint32_t> NetemFault::act(const FaultRequest& request, std::uint32_t count,
                                           std::optional<std::size_t> expected) {
    const auto before = snapshot();
    const DatagramPath path = open_path(request.direction);
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(request);
    EXPECT_TRUE(applied.has_value()) << applied.error().to_line();
    const auto present = netem(request.direction);
    EXPECT_TRUE(present.has_value());
    if (present) {
        EXPECT_EQ(present->netem, netem_shape(request.packets, std::nullopt));
    }
    auto arrived = exchange_in_order(path, count, expected.value_or(0));
    const Deadline deadline = Deadline::after(kPatience);
    const auto missing = [&] { return arrived.size() + netem(request.direction)->dropped_packets < count; };
    while (!expected && missing() && !deadline.passed()) {
        (void)readable(path.to.get(), std::chrono::milliseconds(100));
        const auto more = exchange_in_order(path, 0, 0);
        arrived.insert(arrived.end(), more.begin(), more.end());
    }
    const auto reverted = keeper.revert(request.id);
    EXPECT_TRUE(reverted.has_value()) << reverted.error().to_line();
    evidence_ = reverted.value_or(FaultEvidence{});
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    return arrived;
}

std::uint64_t count_of(const FaultEvidence& evidence, const std::string& name) {
    const std::string value = value_of(evidence, name);
    EXPECT_NE(value, "none") << name;
    return value == "none" ? 0 : std::stoull(value);
}

TEST_F(NetemFault, LosesPacketsAndCountsThem) {
    for (const Direction side : kSides) {
        const std::string lost = std::string(to_string(side)) + "_lost_packets";
        EXPECT_EQ(act(packets(1, FaultKind::kLoss, side, {.loss = kMillion}), 200, std::nullopt).size(), 0U);
        EXPECT_EQ(count_of(evidence_, lost), 200U);
        // 300 are expected; 5 standard deviations are 73.
        const auto arrived = act(packets(1, FaultKind::kLoss, side, {.loss = 300'000}), 1000, std::nullopt);
        EXPECT_NEAR(static_cast<double>(count_of(evidence_, lost)), 300, 73);
        EXPECT_EQ(arrived.size() + count_of(evidence_, lost), 1000U);
        EXPECT_EQ(count_of(evidence_, std::string(to_string(side)) + "_passed_packets"), arrived.size());
        EXPECT_EQ(evidence_.mechanism, "netem on an ifb behind clsact " +
                                           std::string(side == Direction::kSend ? "egress" : "ingress") +
                                           " u32/mirred");
    }
}

TEST_F(NetemFault, LosesInBursts) {
    const GilbertElliott chain{
        .good_to_bad = 20'000, .bad_to_good = 200'000, .loss_in_bad = 900'000, .loss_in_good = 10'000};
    for (const Direction side : kSides) {
        const auto arrived = act(packets(1, FaultKind::kLoss, side, {.bursts = chain}), 4000, std::nullopt);
        // 364 are expected; see the same test of the packet program.
        EXPECT_EQ(arrived.size() + count_of(evidence_, std::string(to_string(side)) + "_lost_packets"), 4000U);
        EXPECT_NEAR(static_cast<double>(count_of(evidence_, std::string(to_string(side)) + "_lost_packets")), 364, 220);
    }
}

TEST_F(NetemFault, DoublesPackets) {
    for (const Direction side : kSides) {
        const auto arrived = act(packets(1, FaultKind::kDuplicate, side, {.duplicate = kMillion}), 200, 400);
        ASSERT_EQ(arrived.size(), 400U);
        for (std::uint32_t number = 0; number < 200; ++number) {
            EXPECT_EQ(std::count(arrived.begin(), arrived.end(), number), 2) << number;
        }
    }
}

TEST_F(NetemFault, DelaysEveryPacketByAtLeastTheDelay) {
    constexpr auto kDelay = std::chrono::milliseconds(60);
    for (const Direction side : kSides) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        ASSERT_TRUE(
            keeper
                .apply(packets(1, FaultKind::kDelay, side, {.delay = kDelay, .jitter = std::chrono::milliseconds(10)}))
                .has_value());
        const DatagramPath path = open_path(side);
        const Nanoseconds sent = monotonic_now();
        EXPECT_EQ(exchange(path, 1, 1).size(), 1U);
        EXPECT_GE(monotonic_now() - sent, kDelay - std::chrono::milliseconds(10));
        ASSERT_TRUE(keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
    }
}

TEST_F(NetemFault, SomePacketsOvertakeOthers) {
    for (const Direction side : kSides) {
        const PacketTreatment treatment{.delay = std::chrono::milliseconds(30), .reorder = 500'000};
        auto arrived = act(packets(1, FaultKind::kReorder, side, treatment), 200, 200);
        EXPECT_FALSE(std::is_sorted(arrived.begin(), arrived.end()));
        std::sort(arrived.begin(), arrived.end());
        std::vector<std::uint32_t> all(200);
        std::iota(all.begin(), all.end(), 0U);
        EXPECT_EQ(arrived, all);
    }
}

/// netem turns a bit anywhere in the frame. That of the sender's hardware address harms nobody; every other is noticed.
TEST_F(NetemFault, DamagedPacketsThatAreSentAreDiscarded) {
    const auto arrived = act(packets(1, FaultKind::kCorrupt, Direction::kSend, {.corrupt = kMillion}), 500, 0);
    EXPECT_LT(arrived.size(), 250U);
    EXPECT_THAT(arrived, Each(Lt(500U)));
    EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
}

/// The program does it behind the netem's back: see packet_mechanism.hpp.
TEST_F(NetemFault, DamagesWhatArrivesByTheProgramBesideANetem) {
    if (const std::string why = missing(KernelFeature::kPacketProgram); !why.empty()) {
        GTEST_SKIP() << why;
    }
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(packets(1, FaultKind::kCorrupt, Direction::kReceive, {.corrupt = 250'000})).has_value());
    EXPECT_FALSE(netem(Direction::kReceive));
    ASSERT_TRUE(
        keeper.apply(packets(2, FaultKind::kDuplicate, Direction::kReceive, {.duplicate = kMillion})).has_value());
    const PacketProgramRecord now = program(Direction::kReceive);
    EXPECT_EQ(now.program.treatment, (PacketTreatment{.corrupt = 250'000}));
    const std::uint64_t errors = counter_of_receiver(Direction::kReceive, "Ip", "InHdrErrors");
    const auto whole = let_through(now.program, now.counts.seen, 400);
    const auto arrived = exchange(open_path(Direction::kReceive), 400, 2 * whole.size());
    EXPECT_EQ(arrived.size(), 2 * whole.size());
    const std::uint64_t damaged = program(Direction::kReceive).counts.corrupted;
    EXPECT_EQ(damaged, 400 - whole.size());
    // The netem doubles damaged packets too.
    EXPECT_EQ(counter_of_receiver(Direction::kReceive, "Ip", "InHdrErrors") - errors, 2 * damaged);
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_TRUE(netem(Direction::kReceive));
    // It stays for the sake of the redirect.
    EXPECT_EQ(program(Direction::kReceive).program.treatment, PacketTreatment{});
    EXPECT_TRUE(program(Direction::kReceive).program.ends_redirect);
    ASSERT_TRUE(keeper.revert(2).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(NetemFault, WhatLeavesIsGoneFromTheQdiscWhatStaysStays) {
    const auto before = snapshot();
    for (const Direction side : kSides) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        const PacketTreatment first{.delay = std::chrono::milliseconds(3), .reorder = 250'000};
        const PacketTreatment second{.duplicate = 20'000};
        const PacketTreatment third{.bursts = GilbertElliott{10'000, 300'000}};
        ASSERT_TRUE(keeper.apply(packets(1, FaultKind::kReorder, side, first)).has_value());
        ASSERT_TRUE(keeper.apply(packets(2, FaultKind::kDuplicate, side, second)).has_value());
        ASSERT_TRUE(keeper.apply(packets(3, FaultKind::kLoss, side, third)).has_value());
        PacketTreatment all = first;
        all.duplicate = second.duplicate;
        all.bursts = third.bursts;
        EXPECT_EQ(netem(side)->netem->treatment, all);
        ASSERT_TRUE(keeper.revert(1).has_value());
        all.delay = all.jitter = Nanoseconds(0);
        all.reorder = 0;
        EXPECT_EQ(netem(side)->netem->treatment, all);
        ASSERT_TRUE(keeper.revert(3).has_value());
        EXPECT_EQ(netem(side)->netem->treatment, second);
        ASSERT_TRUE(keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
        expect_as_before(before, 0);
    }
}

TEST_F(NetemFault, HangsBelowACapAndAloneWithoutOne) {
    const auto before = snapshot();
    const FaultRequest cap{.id = 1,
                           .kind = FaultKind::kCap,
                           .nic = "nic0",
                           .direction = Direction::kBoth,
                           .rate = BitRate::bits_per_s(20'000'000)};
    const FaultRequest late = packets(2, FaultKind::kDelay, Direction::kBoth, {.delay = std::chrono::milliseconds(2)});
    const auto received_rate = [&] {
        const std::int32_t ifb = index_of("rbifbr" + std::to_string(nic_));
        return ifb == 0 ? std::nullopt : class_rate(*ops_, ifb, kOwnHtbClass).value();
    };
    for (const bool cap_first : {true, false}) {
        for (const bool cap_leaves_first : {true, false}) {
            FaultKeeper keeper = open_keeper(*ops_, options());
            ASSERT_TRUE(keeper.apply(cap_first ? cap : late).has_value());
            ASSERT_TRUE(keeper.apply(cap_first ? late : cap).has_value());
            EXPECT_EQ(received_rate(), cap.rate);
            EXPECT_EQ(netem(Direction::kReceive)->parent, kOwnHtbClass);
            EXPECT_EQ(netem(Direction::kSend)->parent, kTcRoot);
            for (const Direction side : kSides) {
                EXPECT_EQ(exchange(open_path(side), 100, 100).size(), 100U);
            }
            ASSERT_TRUE(keeper.revert(cap_leaves_first ? cap.id : late.id).has_value());
            if (cap_leaves_first) {
                EXPECT_EQ(received_rate(), std::nullopt);
                EXPECT_EQ(netem(Direction::kReceive)->parent, kTcRoot);
            } else {
                EXPECT_EQ(received_rate(), cap.rate);
                EXPECT_FALSE(netem(Direction::kReceive));
                EXPECT_FALSE(netem(Direction::kSend));
            }
            EXPECT_EQ(exchange(open_path(Direction::kReceive), 100, 100).size(), 100U);
            ASSERT_TRUE(keeper.close().has_value());
            wait_ended(keeper.guard_pid(), kPatience);
            expect_as_before(before, 0);
        }
    }
}

TEST_F(NetemFault, FailsAndDiesAtEveryEffect) {
    const PacketTreatment treatment{.delay = std::chrono::milliseconds(1), .loss = 1'000};
    const Script script = [treatment](FaultKeeper& keeper) {
        const FaultRequest cap{.id = 2,
                               .kind = FaultKind::kCap,
                               .nic = "nic0",
                               .direction = Direction::kReceive,
                               .rate = BitRate::bits_per_s(50'000'000)};
        return keeper.apply(packets(1, FaultKind::kDelay, Direction::kBoth, treatment)) && keeper.apply(cap) &&
               keeper.revert(1) && keeper.revert(2);
    };
    EXPECT_GT(fail_at_every_effect(script), 10);
    EXPECT_GT(kill_at_every_effect(script, false), 10);
}

} // namespace
} // namespace railbreak::injectors
