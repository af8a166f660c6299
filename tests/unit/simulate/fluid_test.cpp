// The fluid model, by hand: an element takes a nanosecond on a healthy NIC that carries nothing else.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/simulate/simulate.hpp"
#include "tests/unit/simulate/flow_list.hpp"

namespace railbreak::collective {
namespace {

using test::FlowList;
using test::makespan;
using test::Trace;
using testing::HasSubstr;

SimulationOptions fluid(const Topology& topology, bool cut_through = false) {
    SimulationOptions options = test::nanosecond_elements(PortModel::kFluid, topology);
    options.cut_through = cut_through;
    return options;
}

/// Ends of the flows, in the order in which a schedule was written down is not kept: by sender, receiver, index.
Trace trace_of(const FlowList& list, SimulationOptions options) {
    Trace trace;
    record(options, trace);
    EXPECT_GE(makespan(list, options), 0);
    return trace;
}

TEST(Fluid, OneFlowGoesAtTheSlowerRate) {
    const FlowList list(2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}});
    SimulationOptions options = fluid(healthy_topology(2));
    options.topology.servers[1].receive = {5, 2};
    options.flow_overhead = Nanoseconds(10);
    options.flow_latency = Nanoseconds(7);
    EXPECT_EQ(makespan(list, options), 267);
}

TEST(Fluid, FlowsOfASideShareItAndTakeOverWhatIsLeft) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 2, .slice = {0, 50}, .lane = 1}});
    EXPECT_EQ(trace_of(list, fluid(healthy_topology(3))), (Trace{{{0, 1, 0}, {0, 150}}, {{0, 2, 0}, {0, 100}}}));
}

TEST(Fluid, SlowReceiverLeavesItsShareToOthers) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 300}}, {.from = 0, .to = 2, .slice = {0, 100}, .lane = 1}});
    SimulationOptions options = fluid(healthy_topology(3));
    options.topology.servers[2].receive = 4;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 400}}, {{0, 2, 0}, {0, 400}}}));
}

TEST(Fluid, MaxMinOverTwoSides) {
    // A 0->1, B 0->2, C 3->2; 2 receives at half the rate. B and C get 1/4 each, A 3/4. When B has ended at 200, A has
    // 150 to go at rate 1 and C 50 at 1/2.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 1, .slice = {0, 300}},
                         {.from = 0, .to = 2, .slice = {0, 50}, .lane = 1},
                         {.from = 3, .to = 2, .slice = {0, 100}}});
    SimulationOptions options = fluid(healthy_topology(4));
    options.topology.servers[2].receive = 2;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 350}}, {{0, 2, 0}, {0, 200}}, {{3, 2, 0}, {0, 300}}}));
}

TEST(Fluid, OverheadDelaysTheEnginesButHoldsNoBandwidth) {
    // Both lanes wait 10, then share; lane 0's second flow waits 10 again while lane 1 has the port alone.
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 20}},
                         {.from = 0, .to = 1, .slice = {20, 20}},
                         {.from = 0, .to = 2, .slice = {0, 100}, .lane = 1}});
    SimulationOptions options = fluid(healthy_topology(3));
    options.flow_overhead = Nanoseconds(10);
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 50}}, {{0, 1, 1}, {50, 100}}, {{0, 2, 0}, {0, 150}}}));
}

TEST(Fluid, RatesChangeWhileFlowsShare) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 2, .slice = {0, 100}, .lane = 1}});
    SimulationOptions options = fluid(healthy_topology(3));
    // By 40 each has 20; then 1/4 each until 200 (60); then 2 is down: the other gets all, 40 at 1/2, and ends at 280.
    options.timeline = {{.at = Nanoseconds(40), .server = 0, .send = 0.5},
                        {.at = Nanoseconds(200), .server = 2, .receive = 0},
                        {.at = Nanoseconds(300), .server = 2, .receive = 1}};
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 280}}, {{0, 2, 0}, {0, 380}}}));
    options.timeline.pop_back();
    const auto result = simulate(list, options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 0, lane 1, send step 0 to rank 2 never ends: receive side of "
                                                    "NIC 0 of server 2 stays down"));
}

TEST(Fluid, UnlimitedIntraHostPortsTakeNoTime) {
    FlowList list(
        2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 0, .slice = {0, 9}, .send_after = {1}}}, 2);
    list.attach(0, 0, {.kind = PortKind::kLocal});
    list.attach(1, 0, {.kind = PortKind::kLocal});
    Topology topology = healthy_topology(1);
    topology.ranks_per_server = 2;
    EXPECT_EQ(makespan(list, fluid(topology)), 0);
    topology.local_ratio = 2;
    EXPECT_EQ(trace_of(list, fluid(topology)), (Trace{{{0, 1, 0}, {0, 50}}, {{1, 0, 0}, {50, 55}}}));
}

const FlowList& relay() {
    static const FlowList kRelay(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}}});
    return kRelay;
}

TEST(CutThrough, ForwardsWhileArriving) {
    EXPECT_EQ(makespan(relay(), fluid(healthy_topology(3))), 200);
    EXPECT_EQ(makespan(relay(), fluid(healthy_topology(3), true)), 100);
    EXPECT_EQ(makespan(relay(), fluid(one_straggler(3, 0, 2), true)), 200) << "never faster than what arrives";
    EXPECT_EQ(makespan(relay(), fluid(one_straggler(3, 2, 2), true)), 200);
    EXPECT_EQ(makespan(relay(), fluid(one_straggler(3, 1, 2), true)), 200);
}

TEST(CutThrough, StaysALatencyBehind) {
    SimulationOptions options = fluid(healthy_topology(3), true);
    options.flow_latency = Nanoseconds(7);
    options.flow_overhead = Nanoseconds(2);
    // Moves from 2 to 102; its first data is usable at 9, when the second flow begins; that moves from 11.
    EXPECT_EQ(trace_of(relay(), options), (Trace{{{0, 1, 0}, {0, 102}}, {{1, 2, 0}, {9, 111}}}));
    options.flow_latency = Nanoseconds(1000);
    options.flow_overhead = Nanoseconds(0);
    EXPECT_EQ(trace_of(relay(), options), (Trace{{{0, 1, 0}, {0, 100}}, {{1, 2, 0}, {1000, 1100}}}));
}

TEST(CutThrough, CatchesUpAndThenFollows) {
    // Rank 1 first sends 50 elements of its own. From then on it is 25 behind, closing in at 1 - 1/2.
    const FlowList list(4, 1,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 1, .to = 3, .slice = {100, 50}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}}});
    EXPECT_EQ(trace_of(list, fluid(one_straggler(4, 0, 2), true)),
              (Trace{{{0, 1, 0}, {0, 200}}, {{1, 3, 0}, {0, 50}}, {{1, 2, 1}, {50, 200}}}));
    EXPECT_EQ(trace_of(list, fluid(healthy_topology(4), true)),
              (Trace{{{0, 1, 0}, {0, 100}}, {{1, 3, 0}, {0, 50}}, {{1, 2, 1}, {50, 150}}}));
}

TEST(CutThrough, WaitsUntilItsPartOfTheSliceComes) {
    const FlowList back(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 2, .slice = {60, 40}, .send_after = {1}}});
    EXPECT_EQ(trace_of(back, fluid(healthy_topology(3), true)), (Trace{{{0, 1, 0}, {0, 100}}, {{1, 2, 0}, {0, 100}}}));
    const FlowList front(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 2, .slice = {0, 40}, .send_after = {1}}});
    EXPECT_EQ(trace_of(front, fluid(one_straggler(3, 0, 2), true)),
              (Trace{{{0, 1, 0}, {0, 200}}, {{1, 2, 0}, {0, 80}}}));
    const FlowList elsewhere(
        3, 1, {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 1, .to = 2, .slice = {100, 40}, .send_after = {1}}});
    EXPECT_EQ(trace_of(elsewhere, fluid(one_straggler(3, 0, 2), true)),
              (Trace{{{0, 1, 0}, {0, 200}}, {{1, 2, 0}, {0, 40}}}));
}

TEST(CutThrough, StartsWithWhatIsThereAlready) {
    // The first half is rank 1's own, the second arrives at half the rate: met at the very end.
    const FlowList list(
        3, 1, {{.from = 0, .to = 1, .slice = {50, 50}}, {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}}});
    EXPECT_EQ(makespan(list, fluid(one_straggler(3, 0, 2), true)), 100);
    EXPECT_EQ(makespan(list, fluid(one_straggler(3, 0, 4), true)), 200);
}

TEST(CutThrough, FollowerLeavesBandwidthToOthers) {
    // 1 -> 2 follows at 1/4, so 1 -> 3 gets 3/4 of the port.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}},
                         {.from = 1, .to = 3, .slice = {0, 300}, .lane = 1}});
    EXPECT_EQ(trace_of(list, fluid(one_straggler(4, 0, 4), true)),
              (Trace{{{0, 1, 0}, {0, 400}}, {{1, 2, 0}, {0, 400}}, {{1, 3, 0}, {0, 400}}}));
}

TEST(CutThrough, FollowsThroughAnOutage) {
    SimulationOptions options = fluid(healthy_topology(3), true);
    options.timeline = {{.at = Nanoseconds(30), .server = 0, .send = 0},
                        {.at = Nanoseconds(80), .server = 0, .send = 0.5},
                        {.at = Nanoseconds(100), .server = 2, .receive = 0.25},
                        {.at = Nanoseconds(140), .server = 2, .receive = 1}};
    // By 100 both have 40. By 140 the first has 60, the second 50; it closes in at 1/2 and meets the first at 160.
    EXPECT_EQ(trace_of(relay(), options), (Trace{{{0, 1, 0}, {0, 220}}, {{1, 2, 0}, {0, 220}}}));
}

TEST(CutThrough, ChainOfRelaysMovesAsOne) {
    std::vector<test::ListedFlow> flows;
    for (Rank rank = 0; rank < 6; ++rank) {
        flows.push_back({.from = rank, .to = rank + 1, .slice = {0, 90}, .send_after = {rank > 0 ? 1 : 0}});
    }
    const FlowList list(7, 1, flows);
    EXPECT_EQ(makespan(list, fluid(one_straggler(7, 3, 3), true)), 270);
    SimulationOptions options = fluid(healthy_topology(7), true);
    options.flow_latency = Nanoseconds(2);
    EXPECT_EQ(makespan(list, options), 90 + 6 * 2);
}

TEST(CutThrough, EmptyStepsBehindTheAwaitedOneDoNotMatter) {
    const FlowList list(4, 1,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 3, .to = 1, .slice = {0, 0}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {2}}});
    EXPECT_EQ(makespan(list, fluid(healthy_topology(4), true)), 100);
}

TEST(CutThrough, ReceivesThatEndLaterDoNotMatter) {
    // What 1 -> 2 forwards is all usable at 1010, 100 elements later more of the same queue.
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 10}},
                         {.from = 0, .to = 1, .slice = {10, 100}},
                         {.from = 1, .to = 2, .slice = {0, 10}, .send_after = {1}}});
    SimulationOptions options = fluid(healthy_topology(3), true);
    options.flow_latency = Nanoseconds(1000);
    EXPECT_EQ(trace_of(list, options),
              (Trace{{{0, 1, 0}, {0, 10}}, {{0, 1, 1}, {10, 110}}, {{1, 2, 0}, {1000, 1010}}}));
}

TEST(CutThrough, TwoReceivesInProgressBothLimit) {
    // Rank 2 adds up what comes from 0 (rate 1/2) and from 1 (rate 1/4) and forwards the sum at 1/4.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 2, .slice = {0, 100}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .lane = 1},
                         {.from = 2, .to = 3, .slice = {0, 100}, .send_after = {1, 1}}});
    SimulationOptions options = fluid(healthy_topology(4), true);
    options.topology.servers[0].send = 2;
    options.topology.servers[1].send = 4;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 2, 0}, {0, 200}}, {{1, 2, 0}, {0, 400}}, {{2, 3, 0}, {0, 400}}}));
}

} // namespace
} // namespace railbreak::collective
