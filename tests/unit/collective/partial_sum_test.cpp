// Copies of sums that are not complete yet: allowed on the way, never in the end.
#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "collective/algorithms/r2ccl.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/verify.hpp"
#include "tests/unit/collective/damage.hpp"
#include "tests/unit/collective/list_schedule.hpp"
#include "tests/unit/collective/random_execution.hpp"

namespace railbreak::collective {
namespace {

using test::first_rule;
using test::ListSchedule;
using test::other_end;
using test::receive_at;
using test::send_at;
using test::Spot;
using test::wrong_runs;

/// Rank 0 hands rank 1 the sum of two before the third arrives, which the wait of a receive step orders, and the sum of
/// three later.
ListSchedule partial_sum_on_the_way() {
    ListSchedule list(*make_ring(3, 3));
    const auto with = [](Combine combine, Rank peer, std::int64_t after) {
        Step step{.peer = peer, .slice = {0, 3}, .combine = combine};
        step.after[0] = after;
        return step;
    };
    list.sends(1, 0) = {with(Combine::kReduce, 0, 0)};
    list.sends(2, 0) = {with(Combine::kReduce, 0, 0)};
    list.receives(0, 0) = {with(Combine::kReduce, 1, 0), with(Combine::kReduce, 2, 1)};
    list.sends(0, 0) = {with(Combine::kCopy, 1, 1), with(Combine::kCopy, 1, 2), with(Combine::kCopy, 2, 2)};
    list.receives(1, 0) = {with(Combine::kCopy, 0, 0), with(Combine::kCopy, 0, 0)};
    list.receives(2, 0) = {with(Combine::kCopy, 0, 0)};
    return list;
}

TEST(PartialSum, AcceptsACopyOfAPartialSumThatIsOverwrittenLater) {
    EXPECT_EQ(first_rule(partial_sum_on_the_way()), "accepted");
    EXPECT_EQ(wrong_runs(partial_sum_on_the_way()), 0);
}

TEST(PartialSum, SeesAPartialSumThatStays) {
    ListSchedule list = partial_sum_on_the_way();
    list.sends(0, 0).erase(list.sends(0, 0).begin() + 1);
    list.receives(1, 0).pop_back();
    EXPECT_EQ(first_rule(list), "data");
    EXPECT_EQ(verify(list).size(), 1U) << "only rank 1 ends incomplete";
    EXPECT_EQ(wrong_runs(list), 12);
}

TEST(PartialSum, SeesAPartialSumThatAnAdditionMayOvertake) {
    ListSchedule list = partial_sum_on_the_way();
    list.receives(0, 0)[1].after[0] = 0;
    EXPECT_EQ(first_rule(list), "race");
}

TEST(PartialSum, SeesAPartialSumAddedToWhatItCameFrom) {
    // Rank 1 got the values of 0 and 1 and adds them to rank 0's, which has both.
    ListSchedule list = partial_sum_on_the_way();
    list.sends(1, 0).push_back({.peer = 0, .slice = {0, 3}, .combine = Combine::kReduce, .after = {1}});
    list.receives(0, 0).push_back({.peer = 1, .slice = {0, 3}, .combine = Combine::kReduce});
    for (Step& step : list.sends(0, 0)) {
        step.after[0] += step.after[0] == 2 ? 1 : 0;
    }
    list.receives(1, 0)[1].after[0] = 2;
    EXPECT_EQ(first_rule(list), "data");
    EXPECT_EQ(wrong_runs(list), 12);
}

TEST(PartialSum, SeesACopyThatDropsWhatTheReceiverHad) {
    // Rank 2's copy of its own values replaces the sum of 0 and 1 at rank 0.
    ListSchedule list = partial_sum_on_the_way();
    list.sends(2, 0)[0].combine = Combine::kCopy;
    list.receives(0, 0)[1].combine = Combine::kCopy;
    EXPECT_EQ(first_rule(list), "data");
    EXPECT_EQ(wrong_runs(list), 12);
}

TEST(PartialSum, AcceptsNoDamagedPlanThatEndsWrong) {
    // Random damage that keeps the pairing; what is accepted must come out right in any order of events.
    std::mt19937_64 random(7);
    int accepted = 0;
    int rejected = 0;
    const ListSchedule model(*make_r2ccl({4, 2, 24, 12, 2, 1}));
    for (int round = 0; round < 1000; ++round) {
        ListSchedule copy(model);
        for (int change = 0; change < 2; ++change) {
            const auto rank = static_cast<Rank>(random() % 4);
            const auto lane = static_cast<Lane>(random() % 2);
            const Spot at{rank, lane, random() % copy.sends(rank, lane).size()};
            Step& receive = receive_at(copy, other_end(copy, at));
            Step& send = send_at(copy, at);
            const auto kind = random() % 4;
            if (kind == 0) {
                send.combine = receive.combine = send.combine == Combine::kCopy ? Combine::kReduce : Combine::kCopy;
            } else if (kind == 1) {
                send.slice = receive.slice = {};
            } else {
                std::int64_t& wait = (kind == 2 ? send : receive).after[random() % 2];
                wait = std::max<std::int64_t>(0, wait - 1 - static_cast<std::int64_t>(random() % 3));
            }
        }
        if (verify(copy, 1).empty()) {
            ++accepted;
            EXPECT_EQ(wrong_runs(copy, 3), 0) << "round " << round;
        } else {
            ++rejected;
        }
    }
    EXPECT_GT(accepted, 50);
    EXPECT_GT(rejected, 500);
}

} // namespace
} // namespace railbreak::collective
