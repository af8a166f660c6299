// Faults on their way from the plan to the injectors: what the controller orders is what the agent understands.
#include "harness/controller/fault_order.hpp"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/agent/fault_json.hpp"

namespace railbreak::controller {
namespace {

using injectors::FaultRequest;
using launch::Json;
using scenarios::FaultKind;
using scenarios::PlannedFault;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

PlannedFault fault(FaultKind kind) {
    PlannedFault result;
    result.id = 7;
    result.kind = kind;
    result.host = 2;
    result.nic = 1;
    result.direction = scenarios::Direction::kReceive;
    result.rank = 1;
    return result;
}

Json order_of(const PlannedFault& fault) {
    Json order = fault_order(
        fault, [](std::int32_t host, std::int32_t nic) { return fmt::format("10.{}.0.{}", nic, host); }, "/data/runs");
    if (order.contains("local_rank")) {
        order["pid"] = 4711; // the agent's part
    }
    return order;
}

FaultRequest request_of(const PlannedFault& fault) {
    const Result<FaultRequest> request = agent::fault_request_from_json(order_of(fault));
    if (!request) {
        ADD_FAILURE() << request.error().to_line();
        return {};
    }
    EXPECT_EQ(request->id, 7);
    EXPECT_EQ(to_string(request->kind), to_string(fault.kind));
    return *request;
}

TEST(FaultOrder, CapsAndLinksNameTheirInterface) {
    PlannedFault cap = fault(FaultKind::kCap);
    cap.rate = BitRate::bits_per_s(123'456'789);
    EXPECT_EQ(request_of(cap).rate, cap.rate);
    EXPECT_EQ(request_of(cap).nic, "rail1");
    EXPECT_EQ(request_of(cap).direction, injectors::Direction::kReceive);
    cap.strength.mechanism = scenarios::Mechanism::kLinkModes;
    const auto by_modes = agent::fault_request_from_json(order_of(cap));
    ASSERT_TRUE(by_modes.has_value()) << by_modes.error().to_line();
    EXPECT_EQ(by_modes->kind, injectors::FaultKind::kPortSpeed);
    EXPECT_EQ(by_modes->rate, cap.rate);
    EXPECT_EQ(order_of(cap).at("kind"), "cap"); // site policies know the kinds of scenarios
    launch::Json strange = order_of(cap);
    for (const char* other : {"magic", "pci_remove"}) { // never made by traffic control instead
        strange["mechanism"] = other;
        EXPECT_FALSE(agent::fault_request_from_json(strange).has_value());
    }
    EXPECT_EQ(request_of(fault(FaultKind::kLinkDown)).nic, "rail1");
    EXPECT_EQ(request_of(fault(FaultKind::kBlackhole)).direction, injectors::Direction::kReceive);
}

TEST(FaultOrder, EveryMechanismOfAScenarioIsOneThatTheAgentKnows) {
    const auto made_by = [](FaultKind kind, scenarios::Mechanism mechanism) {
        PlannedFault one = fault(kind);
        one.strength.mechanism = mechanism;
        const auto request = agent::fault_request_from_json(order_of(one));
        EXPECT_TRUE(request.has_value()) << to_string(mechanism);
        return request ? request->kind : injectors::FaultKind::kKill;
    };
    std::set<injectors::FaultKind> made;
    for (const scenarios::Mechanism mechanism : scenarios::kCapMechanisms) {
        made.insert(made_by(FaultKind::kCap, mechanism));
    }
    for (const scenarios::Mechanism mechanism : scenarios::kLinkDownMechanisms) {
        made.insert(made_by(FaultKind::kLinkDown, mechanism));
    }
    EXPECT_EQ(made.size(), scenarios::kCapMechanisms.size() + scenarios::kLinkDownMechanisms.size());
}

TEST(FaultOrder, PacketFaultsCarryTheirOwnStrengthOnly) {
    PlannedFault delay = fault(FaultKind::kDelay);
    delay.strength.delay = milliseconds(5);
    delay.strength.jitter = milliseconds(1);
    EXPECT_EQ(request_of(delay).packets,
              (injectors::PacketTreatment{.delay = milliseconds(5), .jitter = milliseconds(1)}));
    PlannedFault loss = fault(FaultKind::kLoss);
    loss.strength.probability = 10'000;
    EXPECT_EQ(request_of(loss).packets, (injectors::PacketTreatment{.loss = 10'000}));
    loss.strength.bursts = scenarios::LossBursts{1, 2, 3, 4};
    EXPECT_EQ(request_of(loss).packets.bursts, (injectors::GilbertElliott{1, 2, 3, 4}));
    PlannedFault corrupt = fault(FaultKind::kCorrupt);
    corrupt.strength.probability = 1;
    EXPECT_EQ(request_of(corrupt).packets, (injectors::PacketTreatment{.corrupt = 1}));
    PlannedFault twice = fault(FaultKind::kDuplicate);
    twice.strength.probability = 2;
    EXPECT_EQ(request_of(twice).packets, (injectors::PacketTreatment{.duplicate = 2}));
    PlannedFault reorder = fault(FaultKind::kReorder);
    reorder.strength.probability = 3;
    reorder.strength.delay = milliseconds(2);
    EXPECT_EQ(request_of(reorder).packets, (injectors::PacketTreatment{.delay = milliseconds(2), .reorder = 3}));
}

TEST(FaultOrder, PartitionNamesThePeersAddressesOfItsRail) {
    PlannedFault partition = fault(FaultKind::kPartition);
    partition.strength.peers = {0, 3};
    EXPECT_THAT(request_of(partition).peers, ::testing::ElementsAre("10.1.0.0", "10.1.0.3"));
}

TEST(FaultOrder, MtuAndReroute) {
    PlannedFault mtu = fault(FaultKind::kMtu);
    mtu.strength.mtu_bytes = 1280;
    EXPECT_EQ(request_of(mtu).mtu_bytes, 1280U);
    PlannedFault reroute = fault(FaultKind::kReroute);
    reroute.strength.via_nic = 0;
    EXPECT_EQ(request_of(reroute).via_nic, "rail0");
}

TEST(FaultOrder, FaultsOfRanksNameTheRankAndTheAgentAddsTheProcess) {
    EXPECT_EQ(order_of(fault(FaultKind::kPause)).at("local_rank"), 1);
    EXPECT_EQ(request_of(fault(FaultKind::kPause)).pid, 4711);
    EXPECT_EQ(request_of(fault(FaultKind::kKill)).pid, 4711);
    PlannedFault cpu = fault(FaultKind::kCpu);
    cpu.strength.cpu = 200'000;
    EXPECT_EQ(request_of(cpu).cpu, 200'000U);
}

TEST(FaultOrder, DiskFullNamesTheFolderOfTheDatabase) {
    PlannedFault disk = fault(FaultKind::kDiskFull);
    disk.strength.leave = ByteCount::bytes(65'536);
    EXPECT_EQ(request_of(disk).folder, "/data/runs");
    EXPECT_EQ(request_of(disk).leave, disk.strength.leave);
    EXPECT_TRUE(request_of(disk).nic.empty());
}

TEST(FaultOrder, MalformedOrdersAreErrorsThatNameTheMember) {
    PlannedFault loss = fault(FaultKind::kLoss);
    loss.strength.bursts = scenarios::LossBursts{};
    const std::vector<std::pair<Json, std::string>> changes{
        {{{"kind", "flood"}}, "flood"}, {{{"direction", "up"}}, "up"},
        {{{"nic", nullptr}}, "nic"},    {{{"id", "seven"}}, "id"},
        {{{"bursts", 3}}, "bad_to"},    {{{"bursts", {{"good_to_bad_millionths", 1}}}}, "bad_to"},
    };
    for (const auto& [change, name] : changes) {
        Json order = order_of(loss);
        order.update(change);
        const Result<FaultRequest> request = agent::fault_request_from_json(order);
        ASSERT_FALSE(request) << order.dump();
        EXPECT_EQ(request.error().kind(), ErrorKind::kHarness);
    }
    for (const char* member : {"id", "kind", "nic", "direction", "bursts"}) {
        Json order = order_of(loss);
        order.erase(member);
        EXPECT_FALSE(agent::fault_request_from_json(order)) << member;
    }
}

TEST(InjectionRow, SaysWhatItActsOn) {
    const scenarios::ClusterSpec cluster{.hosts = 4, .ranks_per_host = 2};
    const record::InjectionRow nic = injection_row(fault(FaultKind::kMtu), cluster);
    EXPECT_EQ(nic.nic, 1);
    EXPECT_EQ(nic.rank, -1);
    EXPECT_EQ(nic.direction, "");
    EXPECT_EQ(nic.params_json, R"({"mtu_bytes":0})");
    const record::InjectionRow rank = injection_row(fault(FaultKind::kPause), cluster);
    EXPECT_EQ(rank.nic, -1);
    EXPECT_EQ(rank.rank, 5);
    EXPECT_EQ(rank.params_json, "{}");
    const record::InjectionRow disk = injection_row(fault(FaultKind::kDiskFull), cluster);
    EXPECT_EQ(disk.nic, -1);
    EXPECT_EQ(disk.rank, -1);
    EXPECT_EQ(injection_row(fault(FaultKind::kLoss), cluster).direction, "receive");
}

TEST(NoteLateness, IsProvenByTheLeastLateIteration) {
    PlannedFault late = fault(FaultKind::kLate);
    late.strength.late = milliseconds(100);
    record::InjectionRow row = injection_row(late, {.hosts = 4, .ranks_per_host = 2});
    note_lateness(row, late, {.called_at = milliseconds(10), .started_at = milliseconds(110)}, milliseconds(99));
    EXPECT_EQ(row.applied_at, 10'000'000);
    EXPECT_EQ(row.observed_at, 110'000'000);
    EXPECT_EQ(row.restored_at, 110'000'000);
    EXPECT_EQ(row.observation_json, R"({"iterations":1,"least_late_ns":99000000})");
    note_lateness(row, late, {.called_at = milliseconds(300), .started_at = milliseconds(400)}, milliseconds(100));
    EXPECT_EQ(row.applied_at, 10'000'000);
    EXPECT_EQ(row.observed_at, 110'000'000);
    EXPECT_EQ(row.restored_at, 400'000'000);
    EXPECT_EQ(row.observation_json, R"({"iterations":2,"least_late_ns":99000000})");
    note_lateness(row, late, {.called_at = milliseconds(500), .started_at = milliseconds(600)}, milliseconds(3));
    EXPECT_EQ(row.observed_at, 0) << "once it was not late";
    EXPECT_THAT(row.error, HasSubstr("only 3 ms later than the first"));
}

} // namespace
} // namespace railbreak::controller
