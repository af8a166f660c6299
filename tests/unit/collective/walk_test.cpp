// Steps fetched many at a time are the steps fetched one by one, for every plan, rank, lane and place in a queue.
#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/walk.hpp"

namespace railbreak::collective {
namespace {

Step marked() {
    Step step;
    step.peer = -1;
    return step;
}

/// Whether fetching `size` steps at a time gives each step, and writes no further.
void expect_same(const Schedule& schedule, Rank rank, Lane lane, bool send, std::int64_t size) {
    const std::int64_t count = send ? schedule.send_count(rank, lane) : schedule.receive_count(rank, lane);
    std::vector<Step> fetched(static_cast<std::size_t>(size) + 1);
    for (std::int64_t first = 0; first < count; first += size) {
        std::fill(fetched.begin(), fetched.end(), marked());
        const auto room = static_cast<std::size_t>(std::min(size, count - first));
        const std::span<Step> steps = std::span(fetched).first(room);
        send ? schedule.send_steps(rank, lane, first, steps) : schedule.receive_steps(rank, lane, first, steps);
        for (std::size_t i = 0; i < room; ++i) {
            const std::int64_t index = first + static_cast<std::int64_t>(i);
            ASSERT_EQ(steps[i], send ? schedule.send_step(rank, lane, index) : schedule.receive_step(rank, lane, index))
                << schedule.name() << " rank " << rank << " lane " << lane << (send ? " send " : " receive ") << index
                << " by " << size;
        }
        ASSERT_EQ(fetched[room], marked()) << schedule.name();
    }
}

void expect_same(const Schedule& schedule) {
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (const std::int64_t size : {1, 2, 3, 5, 7, 64, 256}) {
                expect_same(schedule, rank, lane, true, size);
                expect_same(schedule, rank, lane, false, size);
            }
        }
    }
}

std::vector<OptccParameters> every_plan(Rank servers, Rank stragglers, std::int64_t elements, std::int64_t segments) {
    std::vector<OptccParameters> list;
    for (const OptccPlan plan : {OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar, OptccPlan::kLag,
                                 OptccPlan::kLagStar, OptccPlan::kRamp, OptccPlan::kPatterns}) {
        OptccParameters p{.servers = servers, .elements = elements, .plan = plan, .segments = segments};
        for (Rank a = 0; a < stragglers; ++a) {
            p.stragglers.push_back((servers / 2 + 2 * a) % servers);
        }
        const bool one = plan == OptccPlan::kLagStar || plan == OptccPlan::kPatterns;
        const bool star = plan == OptccPlan::kStar || plan == OptccPlan::kLagStar;
        if ((one && stragglers > 1) || (star && 2 * stragglers > servers)) {
            continue;
        }
        p.segments = plan == OptccPlan::kPatterns ? 4 * segments : segments;
        if (plan == OptccPlan::kLag || plan == OptccPlan::kLagStar || plan == OptccPlan::kRamp) {
            for (std::int64_t b = 0; b < segments; ++b) {
                p.weights.push_back(2 + std::min(b, segments - 1 - b));
            }
        }
        for (Rank a = 0; star && a < stragglers; ++a) {
            p.star_elements.push_back(elements / (9 + a));
        }
        if (plan == OptccPlan::kLagStar) {
            p.star_weights.assign(p.weights.size() + 1, 1);
        }
        list.push_back(p);
        if (plan == OptccPlan::kUniform) {
            p.late_first_link = true;
            list.push_back(p);
        }
    }
    return list;
}

TEST(Walk, ManyStepsOfOptccAreTheSameAsOneByOne) {
    for (const Rank servers : {4, 5, 8, 11}) {
        for (Rank stragglers = 1; stragglers <= 3 && stragglers + 2 <= servers; ++stragglers) {
            for (const std::int64_t elements : {std::int64_t{3}, std::int64_t{997}}) {
                for (const std::int64_t segments : {1, 4}) {
                    for (OptccParameters p : every_plan(servers, stragglers, elements, segments)) {
                        expect_same(*make_optcc(p));
                        p.shared = true;
                        expect_same(*make_optcc(p));
                    }
                }
            }
        }
    }
}

TEST(Walk, ManyStepsOfServersOfSeveralRanksAreTheSameAsOneByOne) {
    for (OptccParameters p : every_plan(5, 1, 997, 3)) {
        p.ranks_per_server = 3;
        expect_same(*make_optcc(p));
    }
}

TEST(Walk, VisitsEveryEntryOnceInOrder) {
    // Queues longer than the steps that are fetched at a time.
    const auto schedule =
        make_optcc({.servers = 9, .stragglers = {4}, .elements = 1000, .plan = OptccPlan::kUniform, .segments = 40});
    for (const Rank rank : {0, 4}) {
        std::int64_t next = 0;
        walk_sends(*schedule, rank, 0, [&](std::int64_t index, const Step& step) {
            ASSERT_EQ(index, next++);
            ASSERT_EQ(step, schedule->send_step(rank, 0, index));
        });
        EXPECT_EQ(next, schedule->send_count(rank, 0));
        EXPECT_GT(next, static_cast<std::int64_t>(kWalkSteps));
        next = 0;
        walk_receives(*schedule, rank, 0, [&](std::int64_t index, const Step& step) {
            ASSERT_EQ(index, next++);
            ASSERT_EQ(step, schedule->receive_step(rank, 0, index));
        });
        EXPECT_EQ(next, schedule->receive_count(rank, 0));
    }
}

} // namespace
} // namespace railbreak::collective
