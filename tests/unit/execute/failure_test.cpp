#include <algorithm>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collective/execute/wire.hpp"
#include "collective/transport/stream_transport.hpp"
#include "tests/unit/execute/ranks.hpp"
#include "tests/unit/execute/toy_schedules.hpp"

namespace railbreak::collective {
namespace {

using ::testing::HasSubstr;
using testing::ListSchedule;
using testing::local_ranks;
using testing::Ranks;

std::string fact(const Error& error, std::string_view name) {
    for (const auto& [key, value] : error.facts()) {
        if (key == name) {
            return value;
        }
    }
    return "";
}

/// A rank with one pair of links to a peer that the test plays by hand.
struct OneSided {
    std::unique_ptr<StreamTransport> transport;
    UniqueFd to_rank;   ///< what is written here, rank 0 receives from rank 1
    UniqueFd from_rank; ///< what rank 0 sends to rank 1
};

OneSided one_sided() {
    OneSided made{StreamTransport::make(0).value(), {}, {}};
    for (const Direction direction : {Direction::kIncoming, Direction::kOutgoing}) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        (direction == Direction::kIncoming ? made.to_rank : made.from_rank).reset(ends[1]);
        EXPECT_TRUE(made.transport->add_link({direction, 1, 0}, UniqueFd(ends[0]), "by hand").has_value());
    }
    return made;
}

TEST(CutThrough, ForwardsWhatHasArrivedOfAStepInProgress) {
    ListSchedule made("relay", 2, 1, 100);
    made.add(1, 0, {0, 100}, Combine::kReduce, {});
    made.add(0, 1, {0, 100}, Combine::kCopy, {1, 0});
    OneSided side = one_sided();
    ExecutorOptions options;
    options.forward_bytes = 64;
    Executor executor(*side.transport, options);
    std::vector<std::byte> vector(400);
    Result<ExecutionStats> result = fail(ErrorKind::kInternal, "did not run");
    std::thread rank([&] { result = executor.run(made, Dtype::kFloat32, vector, testing::soon()); });
    const HeaderBytes header = pack({0, 0, 0, 400, 0, Stage::kReduceScatter, Combine::kReduce});
    const std::vector<std::byte> data(400, std::byte{0x3f});
    EXPECT_EQ(::write(side.to_rank.get(), header.data(), header.size()), 32);
    EXPECT_EQ(::write(side.to_rank.get(), data.data(), 203), 203);
    // 50 whole elements have arrived; they come back although the rest is not even sent.
    std::vector<std::byte> back(432);
    EXPECT_EQ(::recv(side.from_rank.get(), back.data(), 232, MSG_WAITALL), 232);
    EXPECT_EQ(::write(side.to_rank.get(), data.data() + 203, 197), 197);
    EXPECT_EQ(::recv(side.from_rank.get(), back.data() + 232, 200, MSG_WAITALL), 200);
    rank.join();
    ASSERT_TRUE(result.has_value()) << result.error().to_line();
    EXPECT_TRUE(std::equal(data.begin(), data.end(), back.begin() + 32));
}

TEST(Failure, ATimeOutNamesTheStalledStep) {
    ListSchedule made("half", 2, 1, 100);
    made.add(1, 0, {0, 40}, Combine::kReduce, {});
    made.add(1, 0, {40, 60}, Combine::kCopy, {});
    made.add(0, 1, {40, 60}, Combine::kCopy, {2, 0});
    OneSided side = one_sided();
    const HeaderBytes first = pack({0, 0, 0, 160, 0, Stage::kReduceScatter, Combine::kReduce});
    const HeaderBytes second = pack({0, 1, 40, 240, 0, Stage::kReduceScatter, Combine::kCopy});
    const std::vector<std::byte> data(160);
    ASSERT_EQ(::write(side.to_rank.get(), first.data(), first.size()), 32);
    ASSERT_EQ(::write(side.to_rank.get(), data.data(), 160), 160);
    ASSERT_EQ(::write(side.to_rank.get(), second.data(), second.size()), 32);
    ASSERT_EQ(::write(side.to_rank.get(), data.data(), 100), 100);
    Executor executor(*side.transport);
    std::vector<std::byte> vector(400);
    const auto result = executor.run(made, Dtype::kFloat32, vector, Deadline::after(std::chrono::milliseconds(50)));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 0 stalled in half"));
    EXPECT_THAT(result.error().message(), HasSubstr("lane 0 receive step 1 of 2 (reduce-scatter, from rank 1, NIC 0)"));
    EXPECT_THAT(result.error().message(), HasSubstr("100 of 240 bytes"));
    EXPECT_THAT(result.error().message(), HasSubstr("lane 0 send step 0 of 1"));
    EXPECT_THAT(result.error().message(), HasSubstr("waits for data to forward"));
    EXPECT_EQ(fact(result.error(), "peer"), "1");
    EXPECT_EQ(fact(result.error(), "step"), "1");
    EXPECT_EQ(fact(result.error(), "bytes_done"), "100");
    EXPECT_EQ(executor.progress().receives_completed[0], 1);
    // The failed rank has broken its links: the peer sees the end at once.
    std::byte byte{};
    EXPECT_LE(::read(side.from_rank.get(), &byte, 1), 0);
}

TEST(Failure, AWrongHeaderIsAnErrorThatTellsTheDifference) {
    const auto run_with = [](const StepHeader& header) {
        ListSchedule made("one", 2, 1, 10);
        made.add(1, 0, {0, 10}, Combine::kReduce, {});
        OneSided side = one_sided();
        const HeaderBytes bytes = pack(header);
        const std::vector<std::byte> data(40, std::byte{1});
        EXPECT_EQ(::write(side.to_rank.get(), bytes.data(), bytes.size()), 32);
        EXPECT_EQ(::write(side.to_rank.get(), data.data(), data.size()), 40);
        Executor executor(*side.transport);
        std::vector<std::byte> vector(40);
        auto result = executor.run(made, Dtype::kFloat32, vector, testing::soon());
        return result ? std::string("success") : result.error().to_line();
    };
    const StepHeader right{0, 0, 0, 40, 0, Stage::kReduceScatter, Combine::kReduce};
    EXPECT_EQ(run_with(right), "success");
    std::vector<StepHeader> wrong(7, right);
    wrong[0].run = 1;
    wrong[1].ordinal = 1;
    wrong[2].offset = 4;
    wrong[3].bytes = 36;
    wrong[4].lane = 1;
    wrong[5].stage = Stage::kUpload;
    wrong[6].combine = Combine::kCopy;
    for (const StepHeader& header : wrong) {
        EXPECT_THAT(run_with(header), HasSubstr("rank 0 and rank 1 are out of step on lane 0: expected run 0"));
    }
}

TEST(Failure, RanksWithDifferentPlansNeverProduceASum) {
    Ranks ranks = local_ranks(2, 1);
    std::vector<std::vector<std::byte>> vectors{std::vector<std::byte>(4000), std::vector<std::byte>(4004)};
    std::vector<Result<ExecutionStats>> results(2, fail(ErrorKind::kInternal, "did not run"));
    const ListSchedule plans[] = {testing::toy_ring(2, 1000), testing::toy_ring(2, 1001)};
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            results[rank] = ranks.executor(rank).run(plans[rank], Dtype::kFloat32, vectors[rank], testing::soon());
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_FALSE(results[0].has_value());
    EXPECT_FALSE(results[1].has_value());
}

TEST(Failure, APeerThatClosesWhileItOwesDataIsNamedAtOnce) {
    for (const std::size_t sent : {0U, 10U, 32U, 50U}) {
        ListSchedule made("one", 2, 1, 10);
        made.add(1, 0, {0, 10}, Combine::kCopy, {});
        OneSided side = one_sided();
        const HeaderBytes header = pack({0, 0, 0, 40, 0, Stage::kReduceScatter, Combine::kCopy});
        std::vector<std::byte> bytes(header.begin(), header.end());
        bytes.resize(72);
        ASSERT_EQ(::write(side.to_rank.get(), bytes.data(), sent), static_cast<ssize_t>(sent));
        side.to_rank.reset();
        Executor executor(*side.transport);
        std::vector<std::byte> vector(40);
        const auto result = executor.run(made, Dtype::kFloat32, vector, testing::soon());
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
        EXPECT_EQ(fact(result.error(), "peer"), "1");
        EXPECT_THAT(result.error().message(), HasSubstr("closed the connection"));
    }
}

TEST(Failure, APeerThatOwesDataLaterIsMissedWhileTheRankWaitsForAnother) {
    // Rank 0 waits for rank 1, which is alive and silent; rank 2 dies, from which a later step is due.
    ListSchedule made("two", 3, 1, 10);
    made.add(1, 0, {0, 10}, Combine::kCopy, {});
    made.add(2, 0, {0, 10}, Combine::kCopy, {});
    OneSided side = one_sided();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_TRUE(side.transport->add_link({Direction::kIncoming, 2, 0}, UniqueFd(ends[0]), "by hand").has_value());
    UniqueFd(ends[1]).reset();
    Executor executor(*side.transport);
    std::vector<std::byte> vector(40);
    const auto result = executor.run(made, Dtype::kFloat32, vector, testing::soon());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(fact(result.error(), "peer"), "2");
}

TEST(Failure, APeerThatFinishedAndLeftIsNoFailure) {
    ListSchedule made("two", 2, 1, 10);
    made.add(1, 0, {0, 10}, Combine::kCopy, {});
    OneSided side = one_sided();
    const HeaderBytes header = pack({0, 0, 0, 40, 0, Stage::kReduceScatter, Combine::kCopy});
    const std::vector<std::byte> data(40, std::byte{7});
    ASSERT_EQ(::write(side.to_rank.get(), header.data(), header.size()), 32);
    ASSERT_EQ(::write(side.to_rank.get(), data.data(), data.size()), 40);
    side.to_rank.reset();
    side.from_rank.reset();
    Executor executor(*side.transport);
    std::vector<std::byte> vector(40);
    const auto result = executor.run(made, Dtype::kFloat32, vector, testing::soon());
    ASSERT_TRUE(result.has_value()) << result.error().to_line();
    EXPECT_EQ(vector, data);
}

TEST(Failure, AMissingLinkIsNamed) {
    auto transport = StreamTransport::make(1).value();
    Executor executor(*transport);
    std::vector<std::byte> vector(36);
    const auto result = executor.run(testing::toy_ring(3, 9), Dtype::kFloat32, vector, testing::soon());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kHarness);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 1 has no link"));
}

TEST(Failure, WhenOneOfThreeGivesUpNobodyHangs) {
    // Rank 2's deadline has passed already: it breaks its links, and the others end long before theirs.
    Ranks ranks = local_ranks(3, 1);
    std::vector<std::vector<std::byte>> vectors(3, std::vector<std::byte>(400000));
    std::vector<Result<ExecutionStats>> results(3, fail(ErrorKind::kInternal, "did not run"));
    const ListSchedule plan = testing::toy_ring(3, 100000);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            results[rank] = ranks.executor(rank).run(plan, Dtype::kFloat32, vectors[rank], testing::soon());
        });
    }
    const ListSchedule other = testing::toy_chain(3, 100000); // rank 2 first waits for the whole vector
    results[2] = ranks.executor(2).run(other, Dtype::kFloat32, vectors[2], Deadline::after(Nanoseconds(0)));
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const auto& result : results) {
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    }
}

} // namespace
} // namespace railbreak::collective
