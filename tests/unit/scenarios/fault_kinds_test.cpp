// Every kind of fault: what its keys mean, and what stands in the plan.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "scenarios/plan.hpp"
#include "scenarios/random.hpp"
#include "scenarios/summary.hpp"
#include "tests/unit/scenarios/fault_kinds.hpp"

namespace railbreak::scenarios {
namespace {

using std::chrono::milliseconds;
using testing::errors_of;
using ::testing::HasSubstr;
using testing::kEveryKind;
using testing::load;
using testing::with;
using testing::with_faults;

Scenario scenario_of(std::string_view text) {
    auto scenario = load(text);
    if (!scenario) {
        throw std::logic_error(errors_of(scenario));
    }
    return std::move(*scenario);
}

Plan plan_of(std::string_view text, std::uint64_t seed = 1) {
    return expand(scenario_of(text), seed).value();
}

const PlannedFault& fault_of(const Plan& plan, std::string_view name) {
    const auto found = std::find_if(plan.faults.begin(), plan.faults.end(),
                                    [&](const PlannedFault& fault) { return fault.name == name; });
    if (found == plan.faults.end()) {
        throw std::logic_error("the plan has no fault " + std::string(name));
    }
    return *found;
}

TEST(FaultKinds, AllStandInTheExample) {
    std::set<FaultKind> kinds;
    for (const FaultSpec& fault : scenario_of(with_faults(kEveryKind)).faults) {
        kinds.insert(fault.kind);
    }
    EXPECT_EQ(kinds, std::set<FaultKind>(kFaultKinds.begin(), kFaultKinds.end()));
}

TEST(FaultKinds, ACapHasAMechanismThatOnlyStandsInThePlanWhenItIsNotTheUsualOne) {
    const auto cap = [](std::string_view more) {
        return with_faults(fmt::format("- {{name: cap, kind: cap, target: {{host: 0}}, {}during: degraded}}\n", more));
    };
    const Plan plan = plan_of(cap("rate: 100Mbit/s, mechanism: link_modes, "));
    EXPECT_EQ(fault_of(plan, "cap").strength.mechanism, Mechanism::kLinkModes);
    EXPECT_THAT(plan.canonical_json, HasSubstr(R"("mechanism":"link_modes")"));
    EXPECT_EQ(plan_from_json(plan.canonical_json).value().faults.at(0).strength.mechanism, Mechanism::kLinkModes);
    EXPECT_EQ(plan_of(cap("rate: 100Mbit/s, mechanism: tc, ")).hash, plan_of(cap("rate: 100Mbit/s, ")).hash);
    EXPECT_THAT(errors_of(load(cap("rate: 100Mbit/s, direction: send, mechanism: link_modes, "))),
                HasSubstr("link_modes slows both sides of a port alike, not \"send\""));
    EXPECT_THAT(errors_of(load(cap("rate: 100Mbit/s, mechanism: dcb_class_rate, "))),
                HasSubstr("dcb_class_rate slows only what the NIC sends, not \"both\""));
    EXPECT_THAT(errors_of(load(cap("rate: 100Mbit/s, mechanism: pci_remove, "))), HasSubstr("pci_remove"));
    EXPECT_THAT(errors_of(load(cap("rate: 100Mbit/s, mechanism: magic, "))), HasSubstr("magic"));
}

TEST(FaultKinds, MechanismsOfOneNicThatDoNotGoTogetherAreRefusedByName) {
    const auto two = [](std::string_view first, std::string_view second) {
        return with_faults(
            fmt::format("- {{name: one, kind: {}, target: {{host: 0}}, at: {{iteration: 1}}, for: 50ms}}\n"
                        "- {{name: two, kind: {}, target: {{host: 0}}, at: {{iteration: 1}}, for: 50ms}}\n",
                        first, second));
    };
    const std::string vf = "cap, rate: 50Mbit/s, direction: send, mechanism: vf_rate";
    const std::string devlink = "cap, rate: 50Mbit/s, direction: send, mechanism: devlink_rate";
    const std::string classes = "cap, rate: 50Mbit/s, direction: send, mechanism: dcb_class_rate";
    EXPECT_THAT(errors_of(load(two(vf, devlink))), HasSubstr("\"two\" and \"one\" limit the same function by vf_rate"));
    EXPECT_THAT(errors_of(load(two("link_down, mechanism: pci_remove", "cap, rate: 50Mbit/s"))),
                HasSubstr("which pci_remove takes away"));
    const Plan plan = plan_of(two(vf, classes));
    EXPECT_EQ(fault_of(plan, "two").strength.mechanism, Mechanism::kClassRate);
    const Plan down = plan_of(two("link_down, mechanism: ib_port", "cap, rate: 50Mbit/s, mechanism: ib_port"));
    EXPECT_EQ(plan_from_json(down.canonical_json).value().faults.at(0).strength.mechanism, Mechanism::kIbPort);
}

TEST(FaultKinds, PacketFaultsAreRead) {
    const Plan plan = plan_of(with_faults(kEveryKind));
    const PlannedFault& delay = fault_of(plan, "delay");
    EXPECT_EQ(delay.host, 3);
    EXPECT_EQ(delay.nic, 1);
    EXPECT_EQ(delay.direction, Direction::kSend);
    EXPECT_EQ(delay.strength.delay, milliseconds(5));
    EXPECT_EQ(delay.strength.jitter, milliseconds(1));
    EXPECT_EQ(fault_of(plan, "loss").strength.probability, 10'000U);
    EXPECT_EQ(fault_of(plan, "loss").direction, Direction::kBoth);
    EXPECT_EQ(fault_of(plan, "bursts").strength.bursts, (LossBursts{1'000, 250'000, 500'000, 1}));
    EXPECT_EQ(fault_of(plan, "corrupt").strength.probability, 1'000U);
    EXPECT_EQ(fault_of(plan, "duplicate").strength.probability, 20'000U);
    EXPECT_EQ(fault_of(plan, "reorder").strength.probability, 250'000U);
    EXPECT_EQ(fault_of(plan, "reorder").strength.delay, milliseconds(2));
}

TEST(FaultKinds, NetworkFaultsAreRead) {
    const Plan plan = plan_of(with_faults(kEveryKind));
    EXPECT_EQ(fault_of(plan, "blackhole").direction, Direction::kSend);
    EXPECT_THAT(fault_of(plan, "partition").strength.peers, ::testing::ElementsAre(1, 3));
    EXPECT_EQ(fault_of(plan, "mtu").strength.mtu_bytes, 1280);
    EXPECT_EQ(fault_of(plan, "reroute").strength.via_nic, 1);
}

TEST(FaultKinds, FaultsOfRanksNameARankOfAHostOrOfAll) {
    const Plan plan = plan_of(with_faults(kEveryKind));
    EXPECT_EQ(fault_of(plan, "pause").host, 13);
    EXPECT_EQ(fault_of(plan, "pause").rank, 1);
    EXPECT_EQ(fault_of(plan, "kill").host, 14);
    EXPECT_EQ(fault_of(plan, "kill").rank, 1);
    EXPECT_FALSE(fault_of(plan, "kill").duration);
    EXPECT_EQ(fault_of(plan, "cpu").strength.cpu, 333'333U) << "rounded down";
    EXPECT_EQ(fault_of(plan, "late").host, 15);
    EXPECT_EQ(fault_of(plan, "late").strength.late, milliseconds(50));
    EXPECT_EQ(fault_of(plan, "disk").strength.leave.bytes(), 65'536U);
}

TEST(FaultKinds, PlanIsReadBack) {
    const Plan plan = plan_of(with_faults(kEveryKind));
    const auto read = plan_from_json(plan.canonical_json, plan.seed);
    ASSERT_TRUE(read) << read.error().to_line();
    ASSERT_EQ(read->faults.size(), plan.faults.size());
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
        EXPECT_EQ(read->faults[i].name, plan.faults[i].name);
        EXPECT_EQ(read->faults[i].kind, plan.faults[i].kind);
        EXPECT_EQ(read->faults[i].rank, plan.faults[i].rank);
        EXPECT_EQ(read->faults[i].direction, plan.faults[i].direction);
        EXPECT_EQ(read->faults[i].strength, plan.faults[i].strength) << plan.faults[i].name;
    }
}

TEST(FaultKinds, PlanHoldsWhatTheKindSaysAndNothingElse) {
    const auto json = nlohmann::json::parse(plan_of(with_faults(kEveryKind)).canonical_json);
    std::map<std::string, std::string> texts;
    for (const auto& fault : json.at("faults")) {
        texts[fault.at("name")] = fault.dump();
    }
    EXPECT_EQ(texts["kill"],
              R"({"at_iteration":3,"host":14,"id":16,"kind":"kill","name":"kill","offset_ns":50000000,"rank":1})");
    EXPECT_EQ(texts["partition"],
              R"({"direction":"both","host":10,"id":12,"kind":"partition","name":"partition","nic":1,"peers":[1,3]})");
    EXPECT_EQ(texts["disk"], R"({"at_iteration":2,"duration_ns":1000000000,"host":0,"id":19,"kind":"disk_full",)"
                             R"("leave_bytes":65536,"name":"disk","offset_ns":0})");
    EXPECT_EQ(texts["bursts"],
              R"({"bursts":{"bad_to_good_millionths":250000,"good_to_bad_millionths":1000,)"
              R"("loss_in_bad_millionths":500000,"loss_in_good_millionths":1},"direction":"receive","host":5,"id":7,)"
              R"("kind":"loss","name":"bursts","nic":0})");
    EXPECT_EQ(json.at("faults").size(), 20U);
}

TEST(FaultKinds, HashChangesWithEveryQuantity) {
    const std::string text = with_faults(kEveryKind);
    std::set<std::string> hashes{plan_of(text).hash};
    const std::vector<std::pair<std::string_view, std::string_view>> changes{
        {"period: 400ms", "period: 500ms"},
        {"duty: 1/4", "duty: 1/2"},
        {"count: 3", "count: 4"},
        {"delay: 5ms", "delay: 6ms"},
        {"jitter: 1ms", "jitter: 2ms"},
        {"probability: 1%", "probability: 1.0001%"},
        {"good_to_bad: 1/1000", "good_to_bad: 1/500"},
        {"bad_to_good: 0.25", "bad_to_good: 0.26"},
        {"loss_in_bad: 50%", "loss_in_bad: 51%"},
        {"loss_in_good: 0.000001", "loss_in_good: 0.000002"},
        {"delay: 2ms", "delay: 3ms"},
        {"direction: receive", "direction: both"},
        {"peers: [3, 1]", "peers: [3, 2]"},
        {"mtu: 1280B", "mtu: 1281B"},
        {"target: {host: 13, rank: 1}", "target: {host: 13, rank: 0}"},
        {"target: {rank: 29}", "target: {rank: 28}"},
        {"share: 1/3", "share: 1/4"},
        {"by: 50ms", "by: 51ms"},
        {"leave: 64KiB", "leave: 65KiB"},
    };
    for (const auto& [from, to] : changes) {
        EXPECT_TRUE(hashes.insert(plan_of(with(text, from, to)).hash).second) << to;
    }
    EXPECT_EQ(plan_of(with(text, "peers: [3, 1]", "peers: [1, 3]")).hash, plan_of(text).hash);
    EXPECT_EQ(plan_of(with(text, "duty: 1/4", "down: 100ms")).hash, plan_of(text).hash);
    EXPECT_EQ(plan_of(with(text, "{rank: 29}", "{host: 14, rank: 1}")).hash, plan_of(text).hash);
}

TEST(FaultKinds, AreDescribed) {
    const std::string text = to_text(summarise(scenario_of(with_faults(kEveryKind))));
    for (const char* line : {
             "fault flap: flap on host 2, NIC 0, 3 times 100 ms of 400 ms, 10 ms after the start of degraded iteration "
             "1\n",
             "fault delay: delay on host 3, NIC 1, send by 5 ms +- 1 ms, during all degraded iterations\n",
             "fault loss: loss on host 4, NIC 0, both 1 %, 0 ns after the start of degraded iteration 2, for 1 s\n",
             "fault bursts: loss on host 5, NIC 0, receive in bursts: 0.1 % of the packets begin one, 25 % end it; "
             "within 50 % are lost, between 0.0001 %, during",
             "fault reorder: reorder on host 8, NIC 0, both 25 % at once, the others after 2 ms, during",
             "fault partition: partition on host 10, NIC 1, both from hosts 3, 1, during",
             "fault reroute: reroute on host 12, NIC 0, through NIC 1, during",
             "fault kill: kill on host 14, rank 1 of the host, 50 ms after the start of degraded iteration 3\n",
             "fault cpu: cpu on host 15, rank 0 of the host, 33.3333 % of one CPU, during",
             "fault late: late on host 15, rank 1 of the host, by 50 ms, in each degraded iteration\n",
             "fault disk: disk_full on the file system of the run's database, but 64 KiB, 0 ns after",
         }) {
        EXPECT_THAT(text, HasSubstr(line));
    }
}

TEST(FaultKinds, ProbabilityZeroIsOffAndSaysSo) {
    const std::string text =
        with_faults("- {name: no, kind: loss, target: {host: 1}, probability: 0, during: degraded}\n");
    const Plan plan = plan_of(text);
    ASSERT_EQ(plan.faults.size(), 1U);
    EXPECT_TRUE(is_off(plan.faults[0]));
    EXPECT_THAT(summarise(scenario_of(text)).notes, ::testing::Contains(HasSubstr("\"no\" is off")));
    EXPECT_FALSE(is_off(plan_of(with(text, "probability: 0", "probability: 0.0001%")).faults[0]));
}

TEST(FaultKinds, SmallMtuIsNotedForIpv6) {
    const std::string text = with_faults("- {name: m, kind: mtu, target: {host: 1}, mtu: 1279B, during: degraded}\n");
    EXPECT_THAT(summarise(scenario_of(text)).notes, ::testing::Contains(HasSubstr("IPv6")));
    EXPECT_THAT(summarise(scenario_of(with(text, "1279B", "1280B"))).notes,
                ::testing::Not(::testing::Contains(HasSubstr("IPv6"))));
}

RC_GTEST_PROP(Probability, EveryWholeMillionthIsReadExactly, ()) {
    const auto millionths = *rc::gen::inRange<std::uint32_t>(0, kMillion + 1);
    const std::string decimal = fmt::format("{}.{:06}", millionths / kMillion, millionths % kMillion);
    const std::string percent = fmt::format("{}.{:04}%", millionths / 10'000, millionths % 10'000);
    const std::string fraction = fmt::format("{}/1000000", millionths);
    for (const std::string& text : {decimal, percent, fraction}) {
        const Plan plan = plan_of(with_faults("- {name: l, kind: duplicate, target: {host: 1}, during: degraded, "
                                              "probability: " +
                                              text + "}\n"));
        RC_ASSERT(plan.faults[0].strength.probability == millionths);
        RC_ASSERT(is_off(plan.faults[0]) == (millionths == 0));
    }
}

constexpr std::string_view kFlap = "- {name: f, kind: flap, target: {host: 2, nic: 1}, period: 400ms, down: 100ms, "
                                   "count: 5, jitter: 1/2, at: {iteration: 1, offset: 10ms}}\n";

TEST(Flap, BecomesALinkDownForEachTime) {
    const Plan plan = plan_of(with(with_faults(kFlap), ", jitter: 1/2", ""));
    ASSERT_EQ(plan.faults.size(), 5U);
    for (int i = 0; i < 5; ++i) {
        const PlannedFault& one = plan.faults[static_cast<std::size_t>(i)];
        EXPECT_EQ(one.id, i);
        EXPECT_EQ(one.name, fmt::format("f#{}", i + 1));
        EXPECT_EQ(one.kind, FaultKind::kLinkDown);
        EXPECT_EQ(one.host, 2);
        EXPECT_EQ(one.nic, 1);
        EXPECT_EQ(one.at_iteration, 1);
        EXPECT_EQ(one.offset, milliseconds(10 + 400 * i));
        EXPECT_EQ(one.duration, milliseconds(100));
    }
}

TEST(Flap, JitterComesFromTheSeedAndNeverOverlaps) {
    std::set<std::string> hashes;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Plan plan = plan_of(with_faults(kFlap), seed);
        hashes.insert(plan.hash);
        EXPECT_EQ(plan_of(with_faults(kFlap), seed).canonical_json, plan.canonical_json);
        Nanoseconds end{0};
        for (std::size_t i = 0; i < plan.faults.size(); ++i) {
            const Nanoseconds begin = milliseconds(10) + static_cast<std::int64_t>(i) * milliseconds(400);
            EXPECT_GE(plan.faults[i].offset, begin);
            EXPECT_LE(plan.faults[i].offset, begin + milliseconds(200));
            EXPECT_GE(plan.faults[i].offset, end);
            end = plan.faults[i].offset + *plan.faults[i].duration;
        }
    }
    EXPECT_EQ(hashes.size(), 50U);
}

TEST(Flap, DrawsAfterItsRandomHostInTheOrderOfTheFile) {
    // Recorded seeds depend on this order.
    const std::string flap = with(std::string(kFlap), "host: 2", "host: random");
    const Plan plan = plan_of(with_faults(flap + "- {name: c, kind: cap, target: {host: random}, fraction: 1/2, "
                                                 "during: degraded}\n"),
                              42);
    SplitMix64 random(42);
    EXPECT_EQ(plan.faults[0].host, static_cast<std::int32_t>(random.below(16)));
    for (std::size_t i = 0; i < 5; ++i) {
        const auto late = static_cast<std::int64_t>(random.below(200'000'001));
        EXPECT_EQ(plan.faults[i].offset.count(), 10'000'000 + static_cast<std::int64_t>(i) * 400'000'000 + late);
    }
    EXPECT_NE(plan.faults[5].host, plan.faults[0].host);
}

TEST(Partition, PeersAreNeverDrawnAsRandomHosts) {
    const std::string text =
        with_faults("- {name: p, kind: partition, target: {host: 0}, peers: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, "
                    "13, 14], at: {iteration: 1}, for: 10ms}\n"
                    "- {name: c, kind: cap, target: {host: random}, fraction: 1/2, during: degraded}\n");
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        EXPECT_EQ(plan_of(text, seed).faults[1].host, 15);
    }
}

TEST(Outcome, IsReadAndStoredInThePlan) {
    const std::string text = with_faults("- {name: k, kind: kill, target: {rank: 1}, at: {iteration: 1}}\n"
                                         "expect:\n- {phase: degraded, outcome: error, within: 5s}\n"
                                         "- {algorithm: ring, phase: recovered, metric: vs_steady, max: 2}\n");
    const Plan plan = plan_of(text);
    EXPECT_TRUE(plan.expects_error("ring"));
    EXPECT_THAT(plan.canonical_json, HasSubstr(R"({"outcome":"error","phase":"degraded","within_ns":5000000000})"));
    const auto read = plan_from_json(plan.canonical_json);
    ASSERT_TRUE(read) << read.error().to_line();
    EXPECT_EQ(read->expectations[0].outcome, Outcome::kError);
    EXPECT_EQ(read->expectations[0].within, std::chrono::seconds(5));
    EXPECT_FALSE(read->expectations[1].outcome);
    EXPECT_THAT(to_text(summarise(scenario_of(text))),
                HasSubstr("expect: every algorithm, degraded, an iteration ends with an error at most 5 s after"));
}

TEST(Outcome, LetsAFaultOutlastTheTimeOut) {
    const std::string faults = "- {name: d, kind: link_down, target: {host: 1}, at: {iteration: 1}, for: 9s}\n";
    EXPECT_THAT(errors_of(load(with_faults(faults))), HasSubstr("unless \"outcome: error\" is expected"));
    const std::string expected = "expect:\n- {algorithm: ring, phase: degraded, outcome: error}\n";
    EXPECT_EQ(errors_of(load(with_faults(faults + expected))), "no error\n");
    const std::string cap = "- {name: c, kind: cap, fraction: 1/2, target: {host: 1}, at: {iteration: 1}, for: 9s}\n";
    EXPECT_THAT(errors_of(load(with_faults(cap + expected))), HasSubstr("not before the iteration's time-out"));
}

} // namespace
} // namespace railbreak::scenarios
