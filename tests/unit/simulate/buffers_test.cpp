// Ports shared by windows, and buffers at both ends of a flow, by hand: an element is a byte and takes a nanosecond on
// a healthy NIC that carries nothing else.
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
using testing::ElementsAre;

constexpr ByteCount kUnlimited = ByteCount::bytes(1U << 30U);

SimulationOptions fluid(const Topology& topology, std::uint64_t send_buffer, ByteCount receive_buffer = {}) {
    SimulationOptions options = test::nanosecond_elements(PortModel::kFluid, topology);
    options.send_buffer = ByteCount::bytes(send_buffer);
    options.receive_buffer = receive_buffer;
    return options;
}

SimulationOptions windows(const Topology& topology) {
    SimulationOptions options = fluid(topology, 0);
    options.sharing = PortSharing::kWindows;
    return options;
}

Trace trace_of(const FlowList& list, SimulationOptions options) {
    Trace trace;
    record(options, trace);
    EXPECT_GE(makespan(list, options), 0);
    return trace;
}

TEST(Windows, FlowSqueezedAtBothEndsGetsHalfOfWhatTheOthersGet) {
    // B 0->2 shares the send side of 0 with A and the receive side of 2 with C. Both queues delay by 3/2 windows: B
    // gets 1/3, A and C 2/3. Max-min gives 1/2 to each.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 1, .slice = {0, 200}},
                         {.from = 0, .to = 2, .slice = {0, 100}, .lane = 1},
                         {.from = 3, .to = 2, .slice = {0, 200}}});
    EXPECT_EQ(trace_of(list, windows(healthy_topology(4))),
              (Trace{{{0, 1, 0}, {0, 300}}, {{0, 2, 0}, {0, 300}}, {{3, 2, 0}, {0, 300}}}));
}

TEST(Windows, OneFullSideIsSharedEvenly) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 2, .slice = {0, 50}, .lane = 1}});
    EXPECT_EQ(trace_of(list, windows(healthy_topology(3))), (Trace{{{0, 1, 0}, {0, 150}}, {{0, 2, 0}, {0, 100}}}));
}

TEST(Windows, SlowReceiverLeavesItsShareToOthers) {
    const FlowList list(3, 2,
                        {{.from = 0, .to = 1, .slice = {0, 300}}, {.from = 0, .to = 2, .slice = {0, 100}, .lane = 1}});
    SimulationOptions options = windows(healthy_topology(3));
    options.topology.servers[2].receive = 4;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 400}}, {{0, 2, 0}, {0, 400}}}));
}

TEST(Windows, ForwardedFlowLeavesWhatItsLeaderDoesNotBring) {
    // 1->2 forwards what comes at 1/4, 1->3 has the other 3/4.
    const FlowList list(4, 2,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}},
                         {.from = 1, .to = 3, .slice = {0, 300}, .lane = 1}});
    SimulationOptions options = windows(one_straggler(4, 0, 4));
    options.cut_through = true;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 400}}, {{1, 2, 0}, {0, 400}}, {{1, 3, 0}, {0, 400}}}));
}

/// Rank 0 serves a receiver at half the rate, then another.
const FlowList& two_receivers() {
    static const FlowList kList(3, 1,
                                {{.from = 0, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 2, .slice = {0, 100}}});
    return kList;
}

TEST(SendBuffer, LetsTheSenderGoOnWhileASlowReceiverStillTakesTheRest) {
    // Of the first flow 60 have moved at 120, the other 40 take until 200. Meanwhile the second flow moves at 1/2 too:
    // 40 by 200, and its other 60 by 260.
    SimulationOptions options = fluid(one_straggler(3, 1, 2), 40);
    EXPECT_EQ(trace_of(two_receivers(), options), (Trace{{{0, 1, 0}, {0, 200}}, {{0, 2, 1}, {120, 260}}}));
}

TEST(SendBuffer, SavesItsSizeAndNothingWithoutOne) {
    for (std::uint64_t bytes = 0; bytes <= 200; bytes += 10) {
        const auto saved = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, 100));
        EXPECT_EQ(makespan(two_receivers(), fluid(one_straggler(3, 1, 2), bytes)), 300 - saved) << bytes;
    }
}

TEST(SendBuffer, RankIsThroughWhenTheBufferHasTheRest) {
    const FlowList list(2, 1, {{.from = 0, .to = 1, .slice = {0, 100}}});
    SimulationOptions options = fluid(healthy_topology(2), 40);
    options.flow_latency = Nanoseconds(5);
    const auto result = simulate(list, options);
    ASSERT_TRUE(result);
    EXPECT_THAT(result->rank_ends, ElementsAre(Nanoseconds(60), Nanoseconds(105)));
}

TEST(SendBuffer, HoldsAllFlowsOfAStreamTogether) {
    // 30, 30 and 30 to rank 1, then 10 to rank 2. The first two fit, the third when 30 have moved; then 10 -> 2 shares
    // the port: 20 for both, until 50.
    const FlowList list(3, 1,
                        {{.from = 0, .to = 1, .slice = {0, 30}},
                         {.from = 0, .to = 1, .slice = {30, 30}},
                         {.from = 0, .to = 1, .slice = {60, 30}},
                         {.from = 0, .to = 2, .slice = {0, 10}}});
    EXPECT_EQ(trace_of(list, fluid(healthy_topology(3), 60)),
              (Trace{{{0, 1, 0}, {0, 30}}, {{0, 1, 1}, {0, 70}}, {{0, 1, 2}, {0, 100}}, {{0, 2, 3}, {30, 50}}}));
}

TEST(SendBuffer, ReceiverThatIsNotThereHoldsUpNobodyElse) {
    // Rank 1 begins at 500; without a receive buffer nothing goes to it, but rank 2 has its data at 100.
    SimulationOptions options = fluid(healthy_topology(3), 100);
    options.rank_start = {Nanoseconds(0), Nanoseconds(500), Nanoseconds(0)};
    EXPECT_EQ(trace_of(two_receivers(), options), (Trace{{{0, 1, 0}, {0, 600}}, {{0, 2, 1}, {0, 100}}}));
}

TEST(SendBuffer, WaitsForWhatIsForwarded) {
    // 1->2 would fit, but what it forwards is there at 200 only; 1->3 goes then.
    const FlowList list(4, 1,
                        {{.from = 0, .to = 1, .slice = {0, 100}},
                         {.from = 1, .to = 2, .slice = {0, 100}, .send_after = {1}},
                         {.from = 1, .to = 3, .slice = {0, 50}}});
    SimulationOptions options = fluid(one_straggler(4, 0, 2), 1000);
    options.cut_through = true;
    EXPECT_EQ(trace_of(list, options), (Trace{{{0, 1, 0}, {0, 200}}, {{1, 2, 0}, {0, 200}}, {{1, 3, 1}, {200, 250}}}));
}

/// Rank 1 is busy with a sender at half the rate until 200 when rank 0 wants to send to it.
const FlowList& busy_receiver() {
    static const FlowList kList(3, 1,
                                {{.from = 2, .to = 1, .slice = {0, 100}}, {.from = 0, .to = 1, .slice = {0, 100}}});
    return kList;
}

SimulationOptions with_slow_sender(ByteCount receive_buffer) {
    SimulationOptions options = fluid(healthy_topology(3), 0, receive_buffer);
    options.topology.servers[2].send = 2;
    return options;
}

TEST(ReceiveBuffer, TakesInWhatNobodyHasAskedForYet) {
    EXPECT_EQ(trace_of(busy_receiver(), with_slow_sender({})), (Trace{{{0, 1, 0}, {200, 300}}, {{2, 1, 0}, {0, 200}}}));
    // 30 are there at 60; the other 70 move from 200 on.
    EXPECT_EQ(trace_of(busy_receiver(), with_slow_sender(ByteCount::bytes(30))),
              (Trace{{{0, 1, 0}, {0, 270}}, {{2, 1, 0}, {0, 200}}}));
    // All is there at 200, and is received at once.
    EXPECT_EQ(trace_of(busy_receiver(), with_slow_sender(kUnlimited)),
              (Trace{{{0, 1, 0}, {0, 200}}, {{2, 1, 0}, {0, 200}}}));
}

TEST(ReceiveBuffer, CostsThoseWhoShareThePort) {
    // Both at 1/2 until 30 of 0->1 are in the buffer at 60; 2->1 has the port alone until 130.
    SimulationOptions options = with_slow_sender(ByteCount::bytes(30));
    options.topology.servers[2].send = 1;
    EXPECT_EQ(trace_of(busy_receiver(), options), (Trace{{{0, 1, 0}, {0, 200}}, {{2, 1, 0}, {0, 130}}}));
}

TEST(ReceiveBuffer, IsSharedByTheFlowsOfAStream) {
    // 20 of 0->1 and the first 10 of the next fill it by 60.
    const FlowList list(3, 1,
                        {{.from = 2, .to = 1, .slice = {0, 100}},
                         {.from = 0, .to = 1, .slice = {0, 20}},
                         {.from = 0, .to = 1, .slice = {20, 50}}});
    EXPECT_EQ(trace_of(list, with_slow_sender(ByteCount::bytes(30))),
              (Trace{{{0, 1, 0}, {0, 200}}, {{0, 1, 1}, {40, 240}}, {{2, 1, 0}, {0, 200}}}));
}

TEST(ReceiveBuffer, OverheadIsPaidWhenTheReceiverComes) {
    SimulationOptions options = with_slow_sender(kUnlimited);
    options.flow_overhead = Nanoseconds(8);
    options.flow_latency = Nanoseconds(5);
    const auto result = simulate(busy_receiver(), options);
    ASSERT_TRUE(result);
    // 2->1 ends at 208 and is usable at 213; the other is taken out at 216, long after it came.
    EXPECT_THAT(result->rank_ends, ElementsAre(Nanoseconds(208), Nanoseconds(216), Nanoseconds(208)));
}

TEST(ReceiveBuffer, WhatCameEarlyIsUsableNoSoonerThanWhatWasReceivedBefore) {
    SimulationOptions options = fluid(one_straggler(4, 2, 2), 0, kUnlimited);
    options.flow_latency = Nanoseconds(50);
    options.cut_through = true;
    const FlowList list(4, 1,
                        {{.from = 2, .to = 1, .slice = {0, 100}},
                         {.from = 0, .to = 1, .slice = {100, 50}},
                         {.from = 1, .to = 3, .slice = {0, 150}, .send_after = {2}}});
    EXPECT_EQ(makespan(list, options), 250 + 150 + 50);
}

TEST(Buffers, AreOfTheFluidModel) {
    SimulationOptions options = fluid(healthy_topology(3), 1);
    options.model = PortModel::kExclusive;
    const auto result = simulate(two_receivers(), options);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kInput);
}

} // namespace
} // namespace railbreak::collective
