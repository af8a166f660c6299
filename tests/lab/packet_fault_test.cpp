// Packet faults on a real cable between two namespaces, by the packet program: what happens to every single datagram.
#include <algorithm>
#include <array>
#include <map>

#include <gmock/gmock.h>

#include "injectors/shaping.hpp"
#include "tests/lab/packet_bench.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;

constexpr std::array kSides{Direction::kSend, Direction::kReceive};

FaultRequest packets(std::int32_t id, FaultKind kind, Direction direction, const PacketTreatment& treatment) {
    return {.id = id, .kind = kind, .nic = "nic0", .direction = direction, .packets = treatment};
}
FaultRequest loss(std::int32_t id, Direction direction, Millionths part) {
    return packets(id, FaultKind::kLoss, direction, {.loss = part});
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
        no_netem_ = std::make_unique<WithoutNetem>(*ops_);
    }
    /// Applies the fault, sends datagrams against it, and looks whether exactly those arrive that the program's
    /// arithmetic lets through; then reverts it. Gives the evidence.
    FaultEvidence act_exactly(const FaultRequest& request, std::uint32_t count);

    std::unique_ptr<WithoutNetem> no_netem_;
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
        const std::map<std::string, std::string> readback(evidence.readback.begin(), evidence.readback.end());
        EXPECT_EQ(readback.at(word + "_loss_millionths"), "100000");
        EXPECT_EQ(readback.at(word + "_seen_packets"), "2000");
        // 200 are expected; 5 standard deviations are 67.
        EXPECT_NEAR(std::stod(readback.at(word + "_lost_packets")), 200, 67);
    }
}

} // namespace
} // namespace railbreak::injectors
