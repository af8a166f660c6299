#include "injectors/composer.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace rc {

template <> struct Arbitrary<railbreak::injectors::FaultRequest> {
    static Gen<railbreak::injectors::FaultRequest> arbitrary() {
        using namespace railbreak::injectors; // NOLINT(google-build-using-namespace): a few lines of generator
        return gen::apply(
            [](std::size_t kind, std::size_t direction, std::uint64_t rate, std::uint32_t part) {
                FaultRequest fault;
                fault.kind = kFaultKinds.at(kind);
                fault.direction = kDirections.at(direction);
                fault.rate = railbreak::BitRate::bits_per_s(rate);
                fault.mtu_bytes = 576 + part % 1000;
                fault.cpu = 1 + part;
                fault.leave = railbreak::ByteCount::bytes(part);
                fault.via_nic = "other";
                fault.peers = {"10.0.0." + std::to_string(part % 4)};
                switch (fault.kind) {
                case FaultKind::kDelay: fault.packets.delay = std::chrono::microseconds(part); break;
                case FaultKind::kLoss: fault.packets.loss = part; break;
                case FaultKind::kCorrupt: fault.packets.corrupt = part; break;
                case FaultKind::kDuplicate: fault.packets.duplicate = part; break;
                case FaultKind::kReorder:
                    fault.packets.reorder = part;
                    fault.packets.delay = std::chrono::microseconds(1);
                    break;
                case FaultKind::kCap:
                case FaultKind::kLinkDown:
                case FaultKind::kBlackhole:
                case FaultKind::kPartition:
                case FaultKind::kMtu:
                case FaultKind::kReroute:
                case FaultKind::kPause:
                case FaultKind::kKill:
                case FaultKind::kCpu:
                case FaultKind::kDiskFull:
                case FaultKind::kPortSpeed:
                case FaultKind::kClassRate:
                case FaultKind::kVfRate:
                case FaultKind::kIbRate:
                case FaultKind::kIbDown:
                case FaultKind::kPcieSpeed: break;
                case FaultKind::kDevlinkRate: // hardly a set would be left that can be composed
                case FaultKind::kPciRemove: fault.kind = FaultKind::kClassRate; break;
                }
                return fault;
            },
            gen::inRange<std::size_t>(0, kFaultKinds.size()), gen::inRange<std::size_t>(0, 3),
            gen::inRange<std::uint64_t>(8000, 400'000'000'000), gen::inRange<std::uint32_t>(0, kMillion + 1));
    }
};

} // namespace rc

namespace railbreak::injectors {
namespace {

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

FaultRequest cap(Direction direction, BitRate rate) {
    FaultRequest fault;
    fault.direction = direction;
    fault.rate = rate;
    return fault;
}

FaultRequest lossy(Millionths loss, Direction direction = Direction::kSend) {
    FaultRequest fault;
    fault.kind = FaultKind::kLoss;
    fault.direction = direction;
    fault.packets.loss = loss;
    return fault;
}

FaultRequest of_kind(FaultKind kind) {
    FaultRequest fault;
    fault.kind = kind;
    return fault;
}

TEST(Composer, WantsNothingWithoutFaults) {
    EXPECT_EQ(compose({}).value(), WantedState{});
}

TEST(Composer, TakesTheLowerRateOfEachDirection) {
    const std::vector faults{cap(Direction::kBoth, mbit(300)), cap(Direction::kSend, mbit(200)),
                             cap(Direction::kReceive, mbit(400))};
    const WantedState wanted = compose(faults).value();
    EXPECT_EQ(wanted.send, mbit(200));
    EXPECT_EQ(wanted.receive, mbit(300));
    EXPECT_FALSE(wanted.down);
}

TEST(Composer, TakesTheLowerSpeedOfAPortAndLeavesCapsToThemselves) {
    FaultRequest speed = of_kind(FaultKind::kPortSpeed);
    speed.rate = mbit(1000);
    FaultRequest slower = speed;
    slower.rate = mbit(100);
    const std::vector faults{cap(Direction::kSend, mbit(300)), speed, slower};
    const WantedState wanted = compose(faults).value();
    EXPECT_EQ(wanted.port_speed, mbit(100));
    EXPECT_EQ(wanted.send, mbit(300));
    EXPECT_FALSE(wanted.receive.has_value());
}

TEST(Composer, LeavesTheOtherDirectionAlone) {
    const std::vector faults{cap(Direction::kReceive, mbit(5))};
    EXPECT_FALSE(compose(faults)->send.has_value());
}

TEST(Composer, KeepsACapUnderALinkThatIsDown) {
    const std::vector faults{of_kind(FaultKind::kLinkDown), cap(Direction::kSend, mbit(5))};
    const WantedState wanted = compose(faults).value();
    EXPECT_TRUE(wanted.down);
    EXPECT_EQ(wanted.send, mbit(5));
    EXPECT_FALSE(wanted.receive.has_value());
}

TEST(Composer, LetsLossesActIndependently) {
    const std::vector faults{lossy(500'000), lossy(500'000), lossy(100'000, Direction::kReceive)};
    const WantedState wanted = compose(faults).value();
    EXPECT_EQ(wanted.send_packets.loss, 750'000U);
    EXPECT_EQ(wanted.receive_packets.loss, 100'000U);
}

TEST(Composer, TakesALossOfZeroForNoneAtAll) {
    const std::vector faults{lossy(0)};
    EXPECT_FALSE(acts(compose(faults)->send_packets));
}

TEST(Composer, RefusesBurstsBesideAnotherLoss) {
    FaultRequest bursts = of_kind(FaultKind::kLoss);
    bursts.packets.bursts = GilbertElliott{10'000, 500'000};
    const std::vector either{bursts, lossy(1)};
    const std::vector other{lossy(1), bursts};
    EXPECT_EQ(compose(either).error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(compose(other).error().kind(), ErrorKind::kRefused);
}

TEST(Composer, UnitesPartitionsUnlessAllIsDropped) {
    FaultRequest one = of_kind(FaultKind::kPartition);
    one.peers = {"10.0.0.2", "10.0.0.1"};
    FaultRequest two = of_kind(FaultKind::kPartition);
    two.direction = Direction::kReceive;
    two.peers = {"10.0.0.2", "10.0.0.3"};
    const std::vector faults{one, two};
    const WantedState wanted = compose(faults).value();
    EXPECT_EQ(wanted.send_drops.peers, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
    EXPECT_EQ(wanted.receive_drops.peers, (std::vector<std::string>{"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
    FaultRequest all = of_kind(FaultKind::kBlackhole);
    all.direction = Direction::kSend;
    const std::vector more{one, two, all};
    EXPECT_TRUE(compose(more)->send_drops.all);
    EXPECT_TRUE(compose(more)->send_drops.peers.empty());
    EXPECT_FALSE(compose(more)->receive_drops.all);
}

TEST(Composer, RefusesASecondRerouteOfANic) {
    FaultRequest reroute = of_kind(FaultKind::kReroute);
    reroute.nic = "rail0";
    reroute.via_nic = "rail1";
    const std::vector faults{reroute, reroute};
    EXPECT_EQ(compose(faults).error().kind(), ErrorKind::kRefused);
}

TEST(Composer, RefusesMechanismsThatWouldUndoOrHideEachOther) {
    const std::vector rates{of_kind(FaultKind::kDevlinkRate), of_kind(FaultKind::kVfRate)};
    EXPECT_EQ(compose(rates).error().message(), "vf_rate and devlink_rate cannot be combined on one NIC");
    for (const FaultKind other : {FaultKind::kCap, FaultKind::kLinkDown, FaultKind::kPciRemove}) {
        const std::vector removed{of_kind(other), of_kind(FaultKind::kPciRemove)};
        EXPECT_EQ(compose(removed).error().kind(), ErrorKind::kRefused);
    }
    const std::vector alone{of_kind(FaultKind::kPciRemove)};
    EXPECT_TRUE(compose(alone)->removed);
}

TEST(Composer, DoesNotDependOnOrder) {
    EXPECT_TRUE(rc::check("any order of the same faults means the same", [](std::vector<FaultRequest> faults) {
        const auto wanted = compose(faults);
        const auto shift = *rc::gen::inRange<std::size_t>(0, faults.size() + 1);
        std::rotate(faults.begin(), faults.begin() + static_cast<std::ptrdiff_t>(shift % (faults.size() + 1)),
                    faults.end());
        std::reverse(faults.begin(), faults.end());
        const auto again = compose(faults);
        RC_ASSERT(again.has_value() == wanted.has_value());
        // RC_ASSERT would evaluate both sides of an "or".
        const bool equal = !wanted || *again == *wanted;
        RC_ASSERT(equal);
    }));
}

TEST(Composer, OneMoreFaultNeverMakesTheTargetBetter) {
    EXPECT_TRUE(rc::check("adding a fault lowers or keeps", [](std::vector<FaultRequest> faults, FaultRequest one) {
        const auto before = compose(faults);
        faults.push_back(one);
        const auto after = compose(faults);
        RC_PRE(before.has_value() && after.has_value());
        // RC_ASSERT would evaluate both sides of an "or".
        const bool down = !before->down || after->down;
        const bool send = !before->send || (after->send && *after->send <= *before->send);
        const bool receive = !before->receive || (after->receive && *after->receive <= *before->receive);
        const bool drops = !before->send_drops.any() || after->send_drops.any();
        const bool cpu = !before->cpu || *after->cpu <= *before->cpu;
        const bool mtu = !before->mtu_bytes || *after->mtu_bytes <= *before->mtu_bytes;
        const bool speed = !before->port_speed || *after->port_speed <= *before->port_speed;
        RC_ASSERT(down);
        RC_ASSERT(speed);
        RC_ASSERT(send);
        RC_ASSERT(receive);
        RC_ASSERT(drops);
        RC_ASSERT(cpu);
        RC_ASSERT(mtu);
        RC_ASSERT(after->send_packets.loss >= before->send_packets.loss);
        RC_ASSERT(after->send_packets.delay >= before->send_packets.delay);
    }));
}

} // namespace
} // namespace railbreak::injectors
