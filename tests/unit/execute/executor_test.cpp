#include "collective/execute/executor.hpp"

#include <gtest/gtest.h>

#include "collective/algorithms/ring.hpp"
#include "collective/execute/links.hpp"
#include "collective/execute/probe.hpp"
#include "tests/unit/execute/ranks.hpp"
#include "tests/unit/execute/toy_schedules.hpp"

namespace railbreak::collective {
namespace {

using testing::ListSchedule;
using testing::local_ranks;
using testing::Ranks;

constexpr Dtype kAll[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kBfloat16, Dtype::kFloat16};

std::vector<ListSchedule (*)(Rank, std::int64_t)> toys() {
    return {testing::toy_ring, testing::toy_chain, testing::toy_two_lanes, testing::toy_star};
}

TEST(Executor, EveryRankHoldsTheSumForEveryTypeAndOddSizes) {
    for (const Rank p : {2, 3, 5, 8}) {
        Ranks ranks = local_ranks(p, 2);
        for (const auto toy : toys()) {
            for (const Dtype dtype : kAll) {
                for (const std::int64_t elements : {1, 2, 7, 1001, 40009}) {
                    ranks.expect_allreduce(toy(p, elements), dtype, static_cast<std::uint64_t>(elements));
                }
            }
        }
    }
}

TEST(Executor, PieceSizesNeverChangeTheResult) {
    for (const std::size_t size : {1U, 3U, 64U, 1000U, 1U << 22}) {
        ExecutorOptions options;
        options.forward_bytes = size;
        options.call_bytes = std::max<std::size_t>(size, 64);
        options.staging_bytes = size;
        Ranks ranks = local_ranks(3, 2, options);
        for (const auto toy : toys()) {
            ranks.expect_allreduce(toy(3, 5003), Dtype::kFloat32, 1);
            ranks.expect_allreduce(toy(3, 5003), Dtype::kBfloat16, 2);
        }
    }
}

TEST(Executor, TheRingOfTheProductRunsManyTimesOnOneSetOfLinks) {
    Ranks ranks = local_ranks(4, 1);
    for (const std::int64_t elements : {3, 64, 100003, 5}) {
        ranks.expect_allreduce(*make_ring(4, elements), Dtype::kFloat32, 9);
    }
}

TEST(Executor, CountsWhatItMoved) {
    Ranks ranks = local_ranks(4, 1);
    std::vector<std::vector<std::byte>> vectors(4, std::vector<std::byte>(4000));
    for (const auto& stats : ranks.run(testing::toy_ring(4, 1000), Dtype::kFloat32, vectors)) {
        ASSERT_TRUE(stats.has_value());
        EXPECT_EQ(stats->bytes_sent, 6000U);
        EXPECT_EQ(stats->bytes_received, 6000U);
        EXPECT_EQ(stats->send_steps, (PrefixCounts{6, 0}));
        EXPECT_EQ(stats->receive_steps, (PrefixCounts{6, 0}));
        EXPECT_LE(stats->started_at, stats->first_receive_at);
        EXPECT_LE(stats->first_receive_at, stats->last_receive_at);
        EXPECT_LE(stats->last_receive_at, stats->ended_at);
        EXPECT_LT(stats->last_flows[0].bytes_after_first_read, stats->bytes_received);
    }
    EXPECT_EQ(ranks.executor(0).progress().sends_completed, (PrefixCounts{6, 0}));
}

TEST(Executor, SendsWhatLiesOutsideTheStepInProgress) {
    // Rank 1's send names two receives. The second one, in progress, completes only after what rank 1 sends has gone
    // round to rank 0; but it concerns other elements, so the send need not wait for it.
    const std::int64_t half = 100000;
    ListSchedule made("outside", 3, 2, 2 * half);
    made.sends(0).push_back({1, {0, half}, Stage::kProbe, Combine::kCopy, {}});
    made.receives(1).push_back({0, {0, half}, Stage::kProbe, Combine::kCopy, {}});
    made.sends(1).push_back({2, {0, half}, Stage::kProbe, Combine::kCopy, {2, 0}}); // 2: the next step, in progress
    made.receives(2).push_back({1, {0, half}, Stage::kProbe, Combine::kCopy, {}});
    made.sends(2).push_back({0, {0, half}, Stage::kProbe, Combine::kCopy, {1, 0}});
    made.receives(0).push_back({2, {0, half}, Stage::kProbe, Combine::kCopy, {}});
    made.sends(0).push_back({1, {half, half}, Stage::kProbe, Combine::kCopy, {1, 0}});
    made.receives(1).push_back({0, {half, half}, Stage::kProbe, Combine::kCopy, {}});
    Ranks ranks = local_ranks(3, 2);
    std::vector<std::vector<std::byte>> vectors(3, std::vector<std::byte>(8 * half));
    for (std::size_t i = 0; i < vectors[0].size(); ++i) {
        vectors[0][i] = static_cast<std::byte>(i % 251);
    }
    for (const auto& stats : ranks.run(made, Dtype::kFloat32, vectors)) {
        ASSERT_TRUE(stats.has_value()) << stats.error().to_line();
    }
    EXPECT_EQ(vectors[1], vectors[0]);
}

TEST(Executor, AReceiveStepMayWaitForASendStep) {
    // Rank 0's vector is overwritten by rank 1, but only after its old content has left for rank 2.
    const std::int64_t n = 300000;
    ListSchedule made("overwrite-after-send", 3, 1, n);
    made.add(1, 0, {0, n}, Combine::kCopy, {}, 0, {1, 0});
    made.add(0, 2, {0, n}, Combine::kCopy, {});
    std::vector<std::vector<std::byte>> vectors;
    for (const int fill : {1, 2, 3}) {
        vectors.emplace_back(static_cast<std::size_t>(4 * n), static_cast<std::byte>(fill));
    }
    Ranks ranks = local_ranks(3, 1);
    for (const auto& stats : ranks.run(made, Dtype::kInt32, vectors)) {
        ASSERT_TRUE(stats.has_value()) << stats.error().to_line();
    }
    EXPECT_EQ(vectors[0][17], std::byte{2});
    EXPECT_EQ(vectors[2], std::vector<std::byte>(static_cast<std::size_t>(4 * n), std::byte{1}));
}

TEST(Executor, AScheduleOfEmptyStepsNeedsNoLink) {
    ListSchedule made("empty", 2, 1, 10);
    made.add(0, 1, {3, 0}, Combine::kCopy, {});
    made.add(1, 0, {10, 0}, Combine::kReduce, {1, 0});
    EXPECT_TRUE(links_of(made, 0).empty());
    Ranks ranks = local_ranks(2, 1);
    std::vector<std::vector<std::byte>> vectors(2, std::vector<std::byte>(40));
    for (const auto& stats : ranks.run(made, Dtype::kFloat32, vectors)) {
        ASSERT_TRUE(stats.has_value());
        EXPECT_EQ(stats->send_steps[0], 1);
        EXPECT_EQ(stats->bytes_sent, 0U);
    }
}

TEST(Probe, EveryNicMovesTheProbeOnceInEachDirection) {
    // Two servers of two ranks with three NICs: rank 0 drives the NICs 0 and 2, rank 1 the NIC 1.
    const LinkProbe probe({.servers = 3,
                           .ranks_per_server = 2,
                           .nics_per_server = 3,
                           .shift = 2,
                           .warm_elements = 1000,
                           .measured_elements = 500000});
    EXPECT_EQ(probe.lanes(), 2);
    EXPECT_EQ(probe.nic(4, 1), 2);
    EXPECT_EQ(probe.receive_step(0, 0, 1).peer, 2);
    Ranks ranks = testing::ranks_of(probe);
    std::vector<std::vector<std::byte>> vectors(6, std::vector<std::byte>(2000000));
    const auto results = ranks.run(probe, Dtype::kFloat32, vectors);
    for (Rank rank = 0; rank < 6; ++rank) {
        const auto& stats = results[static_cast<std::size_t>(rank)];
        ASSERT_TRUE(stats.has_value()) << stats.error().to_line();
        EXPECT_EQ(stats->bytes_received, rank % 2 == 0 ? 4008000U : 2004000U);
        EXPECT_GT(received_goodput(*stats, 0).bits_per_s(), 0U);
        EXPECT_EQ(received_goodput(*stats, 1).bits_per_s() > 0, rank % 2 == 0);
    }
}

TEST(Probe, NicsBeyondTheLanesOfARankAreMeasuredByAnotherProbe) {
    EXPECT_EQ(LinkProbe({.servers = 2, .nics_per_server = 8}).lanes(), 4);
    const LinkProbe rest({.servers = 2, .nics_per_server = 8, .first_nic = 4});
    EXPECT_EQ(rest.lanes(), 4);
    EXPECT_EQ(rest.port(1, 3), (Port{PortKind::kNic, 7}));
    const LinkProbe shared({.servers = 2, .ranks_per_server = 4, .nics_per_server = 2});
    EXPECT_EQ(shared.send_count(1, 0), 2); // the second NIC
    EXPECT_EQ(shared.send_count(2, 0), 0); // both NICs have a rank already
}

TEST(Probe, DeadNicsNeitherSendNorReceive) {
    const LinkProbe probe({.servers = 3,
                           .ranks_per_server = 2,
                           .nics_per_server = 2,
                           .warm_elements = 10,
                           .measured_elements = 1000,
                           .dead_nics = {0, 2, 0}});
    const std::int64_t sends[] = {2, 0, 2, 0, 2, 2}; // rank 1 would reach NIC 1 of server 1
    const std::int64_t receives[] = {2, 2, 2, 0, 2, 0};
    for (Rank rank = 0; rank < 6; ++rank) {
        EXPECT_EQ(probe.send_count(rank, 0), sends[rank]) << rank;
        EXPECT_EQ(probe.receive_count(rank, 0), receives[rank]) << rank;
    }
    Ranks ranks = testing::ranks_of(probe);
    std::vector<std::vector<std::byte>> vectors(6, std::vector<std::byte>(4000));
    for (const auto& stats : ranks.run(probe, Dtype::kFloat32, vectors)) {
        ASSERT_TRUE(stats.has_value()) << stats.error().to_line();
    }
}

TEST(Probe, TheRateIsThatOfTheLastStep) {
    EXPECT_EQ(received_goodput(ExecutionStats{}), BitRate{});
    ExecutionStats known;
    known.last_flows[1] = {std::chrono::seconds(1), std::chrono::seconds(3), 1000000};
    EXPECT_EQ(received_goodput(known, 1), BitRate::bits_per_s(4000000));
}

TEST(Links, AreThoseThatTheRankUses) {
    const std::vector<LinkSpec> expected{{Direction::kOutgoing, 2, 0}, {Direction::kIncoming, 0, 0}};
    EXPECT_EQ(links_of(testing::toy_ring(3, 9), 1), expected);
    EXPECT_EQ(links_of(testing::toy_two_lanes(3, 9), 1).size(), 8U);
}

TEST(Links, NameThePortsOfBothEnds) {
    ListSchedule made = testing::toy_chain(2, 4);
    made.attach(0, 0, {PortKind::kNic, 3});
    const LinkSpec expected{Direction::kOutgoing, 1, 0, {PortKind::kNic, 3}, {PortKind::kNic, 0}};
    EXPECT_EQ(links_of(made, 0).front(), expected);
    EXPECT_EQ(to_string(expected), "to rank 1 on lane 0 (own NIC 3, the peer's NIC 0)");
    made.attach_inside(0);
    EXPECT_EQ(to_string(links_of(made, 1).back()), "from rank 0 on lane 0 (inside the host)");
    EXPECT_EQ(to_string(links_of(testing::toy_chain(2, 4), 0).front()), "to rank 1 on lane 0");
}

} // namespace
} // namespace railbreak::collective
