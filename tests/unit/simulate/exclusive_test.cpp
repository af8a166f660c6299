// The exclusive model, by hand: an element takes a nanosecond on a healthy NIC.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/simulate/simulate.hpp"
#include "tests/unit/simulate/flow_list.hpp"

namespace railbreak::collective {
namespace {

using test::FlowList;
using test::makespan;
using test::Times;
using test::Trace;
using testing::ElementsAre;
using testing::HasSubstr;

SimulationOptions exclusive(const Topology& topology) {
    return test::nanosecond_elements(PortModel::kExclusive, topology);
}

std::vector<std::int64_t> counts(const std::vector<Nanoseconds>& times) {
    std::vector<std::int64_t> list;
    for (const Nanoseconds time : times) {
        list.push_back(time.count());
    }
    return list;
}

const FlowList& one_flow() {
    static const FlowList kFlow(2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}});
    return kFlow;
}

const FlowList& chain() {
    static const FlowList kChain(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}}});
    return kChain;
}

TEST(Exclusive, FlowTakesTheSlowerSidePlusOverhead) {
    SimulationOptions options = exclusive(healthy_topology(2));
    EXPECT_EQ(makespan(one_flow(), options), 100);
    options.topology.servers[1].receive = {5, 2};
    options.topology.servers[0].send = 2;
    EXPECT_EQ(makespan(one_flow(), options), 250);
    options.flow_overhead = Nanoseconds(10);
    options.flow_latency = Nanoseconds(7);
    EXPECT_EQ(makespan(one_flow(), options), 267);
}

TEST(Exclusive, DataIsForwardedALatencyAfterItsEnd) {
    SimulationOptions options = exclusive(healthy_topology(3));
    EXPECT_EQ(makespan(chain(), options), 200);
    options.flow_latency = Nanoseconds(7);
    options.flow_overhead = Nanoseconds(3);
    Trace trace;
    record(options, trace);
    const auto result = simulate(chain(), options);
    ASSERT_TRUE(result);
    EXPECT_EQ(trace, (Trace{{{0, 1, 0}, {0, 103}}, {{1, 2, 0}, {110, 213}}}));
    EXPECT_THAT(counts(result->rank_ends), ElementsAre(103, 213, 220));
    EXPECT_EQ(result->makespan, Nanoseconds(220));
    EXPECT_EQ(result->flows, 2);
    EXPECT_THAT(result->bytes_sent, ElementsAre(100, 100, 0));
    EXPECT_THAT(result->bytes_received, ElementsAre(0, 100, 100));
}

TEST(Exclusive, ReceiveMayWaitForASend) {
    // Rank 1's own values have to leave before they are overwritten.
    const FlowList list(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 10}, .receive_after = {1}}, {.from = 1, .to = 2, .slice = {0, 100}}});
    EXPECT_EQ(makespan(list, exclusive(healthy_topology(3))), 110);
}

TEST(Exclusive, EnginesWorkInOrder) {
    // Rank 0 could send to 2 at once, but its first step waits for rank 3.
    const FlowList list(4, 1,
                        {{.from = 3, .to = 0, .slice = {0, 30}},
                         {.from = 0, .to = 1, .slice = {0, 30}, .send_after = {1}},
                         {.from = 0, .to = 2, .slice = {30, 5}}});
    EXPECT_EQ(makespan(list, exclusive(healthy_topology(4))), 65);
}

TEST(Exclusive, EmptySlicesCostNothing) {
    const FlowList list(3, 1,
                        {{.from = 0, .to = 2, .slice = {0, 0}, .send_after = {0}},
                         {.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 2, .to = 1, .slice = {100, 0}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {2}},
                         {.from = 1, .to = 0, .slice = {0, 0}}});
    SimulationOptions options = exclusive(healthy_topology(3));
    options.flow_overhead = Nanoseconds(5);
    const auto result = simulate(list, options);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->makespan, Nanoseconds(210));
    EXPECT_EQ(result->flows, 2);
}

TEST(Exclusive, NothingToDoTakesNoTime) {
    EXPECT_EQ(makespan(FlowList(2, 1, {}), exclusive(healthy_topology(2))), 0);
    EXPECT_EQ(makespan(FlowList(2, 1, {{.from = 0, .to = 1}}), exclusive(healthy_topology(2))), 0);
}

TEST(Exclusive, LanesOfAPortTakeTurnsInTheOrderOfReadiness) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 0, .to = 1, .slice = {100, 100}},
                         {.from = 0, .to = 2, .slice = {0, 10}, .lane = 1}});
    SimulationOptions options = exclusive(healthy_topology(3));
    Trace trace;
    record(options, trace);
    EXPECT_EQ(makespan(list, options), 210);
    // Both first flows are ready at 0: lane 0 goes first. Lane 1 has then waited longer than lane 0's second flow.
    EXPECT_EQ(trace, (Trace{{{0, 1, 0}, {0, 100}}, {{0, 2, 0}, {100, 110}}, {{0, 1, 1}, {110, 210}}}));
}

TEST(Exclusive, FlowWaitsForBothSides) {
    // 0 -> 2 is ready at 0 but 2's receive side is taken by 1 -> 2 (of the smaller queue number); meanwhile 0's lane 0
    // goes on. At 50 both sides are free at last only when 0's second flow is over.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 3, .slice = {0, 30}},
                         {.from = 0, .to = 3, .slice = {30, 30}},
                         {.from = 1, .to = 2, .slice = {0, 50}},
                         {.from = 0, .to = 2, .slice = {0, 10}, .lane = 1}});
    SimulationOptions options = exclusive(healthy_topology(4));
    Trace trace;
    record(options, trace);
    EXPECT_EQ(makespan(list, options), 70);
    EXPECT_EQ(trace[(Trace::key_type{0, 3, 1})], (Times{30, 60}));
    EXPECT_EQ(trace[(Trace::key_type{0, 2, 0})], (Times{60, 70}));
}

TEST(Exclusive, RanksOfAServerShareItsNic) {
    const FlowList list(4, 1, {{.from = 0, .to = 2, .slice = {0, 100}}, {.from = 1, .to = 3, .slice = {0, 100}}}, 2);
    Topology topology = healthy_topology(2);
    topology.ranks_per_server = 2;
    EXPECT_EQ(makespan(list, exclusive(topology)), 200);
    FlowList rails(4, 1, {{.from = 0, .to = 2, .slice = {0, 100}}, {.from = 1, .to = 3, .slice = {0, 100}}}, 2);
    rails.attach(1, 0, {.nic = 1});
    rails.attach(3, 0, {.nic = 1});
    topology.nics_per_server = 2;
    EXPECT_EQ(makespan(rails, exclusive(topology)), 100);
}

TEST(Exclusive, IntraHostPortsHaveTheirOwnRate) {
    FlowList list(2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}}, 2);
    list.attach(0, 0, {.kind = PortKind::kLocal});
    list.attach(1, 0, {.kind = PortKind::kLocal});
    Topology topology = healthy_topology(1);
    topology.ranks_per_server = 2;
    topology.servers[0] = {.send = 9, .receive = 9}; // of the NICs
    topology.local_ratio = 4;
    SimulationOptions options = exclusive(topology);
    options.flow_overhead = Nanoseconds(3);
    EXPECT_EQ(makespan(list, options), 28);
    EXPECT_EQ(*simulate_exact(list, topology), 25);
    options.topology.local_ratio = 0;
    EXPECT_EQ(makespan(list, options), 3);
}

TEST(Exclusive, FailedNicMovesNothingWhileTheOthersAreHealthy) {
    FlowList list(2, 2, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 1, .slice = {0, 100}, .lane = 1}});
    list.attach(0, 1, {.nic = 1});
    list.attach(1, 1, {.nic = 1});
    Topology topology = healthy_topology(2);
    topology.nics_per_server = 2;
    EXPECT_EQ(makespan(list, exclusive(topology)), 100);
    topology.servers[1] = {.send = 2, .receive = 2, .failed_nics = 0b10};
    const auto result = simulate(list, exclusive(topology));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 0, lane 1, send step 0 to rank 1 never ends"));
    EXPECT_THAT(result.error().message(), HasSubstr("receive side of NIC 1 of server 1"));
    EXPECT_FALSE(simulate_exact(list, topology));
    FlowList spared(2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}});
    EXPECT_EQ(makespan(spared, exclusive(topology)), 100);
}

TEST(Exclusive, FlowInProgressFollowsTheRates) {
    SimulationOptions options = exclusive(healthy_topology(2));
    options.timeline = {{.at = Nanoseconds(50), .server = 0, .send = 0.5}};
    EXPECT_EQ(makespan(one_flow(), options), 150);
    options.timeline = {{.at = Nanoseconds(50), .server = 0, .receive = 0.5}};
    EXPECT_EQ(makespan(one_flow(), options), 100) << "a sender's receive side is not used";
    options.timeline = {{.at = Nanoseconds(20), .server = 1, .receive = 0},
                        {.at = Nanoseconds(70), .server = 1, .receive = 1}};
    EXPECT_EQ(makespan(one_flow(), options), 150);
    options.timeline = {{.at = Nanoseconds(20), .server = 0, .send = 0.25},
                        {.at = Nanoseconds(40), .server = 1, .receive = 0.5},
                        {.at = Nanoseconds(60), .server = 0, .send = 2}};
    EXPECT_EQ(makespan(one_flow(), options), 200) << "20 + 5 + 5 elements by 60, then 70 at half the rate";
    options.timeline = {{.at = Nanoseconds(200), .server = 0, .send = 0}};
    EXPECT_EQ(makespan(one_flow(), options), 100) << "after the end";
}

TEST(Exclusive, RateOfOneNicLeavesTheOthersAlone) {
    SimulationOptions options = exclusive(healthy_topology(2));
    options.topology.nics_per_server = 2;
    options.timeline = {{.at = Nanoseconds(0), .server = 0, .nic = 1, .send = 0.5}};
    EXPECT_EQ(makespan(one_flow(), options), 100);
    options.timeline.front().nic.reset();
    EXPECT_EQ(makespan(one_flow(), options), 200);
}

TEST(Exclusive, PortThatStaysDownIsAnOutcome) {
    SimulationOptions options = exclusive(healthy_topology(3));
    options.timeline = {{.at = Nanoseconds(120), .server = 2, .receive = 0}};
    const auto result = simulate(chain(), options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().to_line(), HasSubstr("rank 1, lane 0, send step 0 to rank 2 never ends"));
}

TEST(Exclusive, LateRankHoldsUpItsPeers) {
    SimulationOptions options = exclusive(healthy_topology(3));
    options.rank_start = {Nanoseconds(0), Nanoseconds(40), Nanoseconds(500)};
    Trace trace;
    record(options, trace);
    EXPECT_EQ(makespan(chain(), options), 600);
    EXPECT_EQ(trace, (Trace{{{0, 1, 0}, {40, 140}}, {{1, 2, 0}, {500, 600}}}));
}

TEST(Exclusive, DeadlockNamesAStep) {
    const FlowList list(2, 1,
                        {{.from = 0, .to = 1, .slice = {0, 10}, .send_after = {1}},
                         {.from = 1, .to = 0, .slice = {0, 10}, .send_after = {1}}});
    for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
        const auto result = simulate(list, test::nanosecond_elements(model, healthy_topology(2)));
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
        EXPECT_THAT(result.error().message(), HasSubstr("rank 0, lane 0, send step 0 to rank 1 waits for ever"));
    }
    EXPECT_EQ(simulate_exact(list, healthy_topology(2)).error().kind(), ErrorKind::kOutcome);
}

TEST(Exclusive, EndsThatDisagreeAreAnError) {
    for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
        const SimulationOptions options = test::nanosecond_elements(model, healthy_topology(2));
        FlowList sizes(2, 1, {});
        sizes.add_send(0, 0, {.peer = 1, .slice = {0, 10}});
        sizes.add_receive(1, 0, {.peer = 0, .slice = {0, 11}});
        FlowList self(2, 1, {});
        self.add_send(0, 0, {.peer = 0, .slice = {0, 10}});
        FlowList nobody(2, 1, {});
        nobody.add_send(0, 0, {.peer = 7, .slice = {0, 10}});
        for (const FlowList* wrong : {&sizes, &self, &nobody}) {
            const auto result = simulate(*wrong, options);
            ASSERT_FALSE(result);
            EXPECT_EQ(result.error().kind(), ErrorKind::kInput) << result.error().to_line();
        }
    }
}

TEST(Exclusive, UnusableInputIsAnError) {
    const SimulationOptions good = exclusive(healthy_topology(2));
    std::vector<SimulationOptions> bad(12, good);
    bad[0].topology = healthy_topology(3);
    bad[1].topology.ranks_per_server = 2;
    bad[2].topology.servers[0].send = 0;
    bad[3].healthy_goodput = {};
    bad[4].element_bytes = 0;
    bad[5].cut_through = true;
    bad[6].rank_start = {Nanoseconds(1)};
    bad[7].flow_overhead = Nanoseconds(-1);
    bad[8].timeline = {{.at = Nanoseconds(5), .server = 0, .send = 1}, {.at = Nanoseconds(4), .server = 0, .send = 1}};
    bad[9].timeline = {{.server = 2, .send = 1}};
    bad[10].timeline = {{.server = 0, .nic = 1, .send = 1}};
    bad[11].timeline = {{.server = 0, .send = -1}};
    for (std::size_t i = 0; i < bad.size(); ++i) {
        const auto result = simulate(one_flow(), bad[i]);
        ASSERT_FALSE(result) << i;
        EXPECT_EQ(result.error().kind(), ErrorKind::kInput) << i;
    }
    FlowList far(2, 1, {});
    far.attach(0, 0, {.nic = 1});
    EXPECT_FALSE(simulate(far, good));
    Topology primes = healthy_topology(4);
    primes.servers[0].send = {1'000'003, 1'000'000};
    primes.servers[1].send = {1'000'033, 999'983};
    EXPECT_EQ(simulate_exact(FlowList(4, 1, {}), primes).error().kind(), ErrorKind::kInput);
}

TEST(Exclusive, SameInputGivesTheSameResult) {
    const auto plan = make_optcc({.servers = 9, .stragglers = {4}, .elements = 12345, .segments = 3, .shared = true});
    for (const PortModel model : {PortModel::kExclusive, PortModel::kFluid}) {
        SimulationOptions options = test::nanosecond_elements(model, one_straggler(9, 4, {8, 7}));
        options.flow_latency = Nanoseconds(11);
        options.flow_overhead = Nanoseconds(3);
        std::vector<Trace> traces(2);
        for (Trace& trace : traces) {
            record(options, trace);
            ASSERT_GT(makespan(*plan, options), 0);
        }
        EXPECT_EQ(traces[0], traces[1]);
    }
}

} // namespace
} // namespace railbreak::collective
