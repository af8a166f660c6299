// Every plan is proven correct for every size in the grid; what the grid varies is what the steps depend on. The
// order of steps does not depend on the slowdown (star: only through the size of its chunks).
#include <algorithm>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rational.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/verify.hpp"

namespace railbreak::collective {
namespace {

using testing::ElementsAre;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Instrumented code is 20 times slower: only the corner of the grid, which has all shapes of queues.
constexpr bool kThin = true;
#else
constexpr bool kThin = false;
#endif

void expect_proven(const Schedule& schedule) {
    const std::vector<Violation> found = verify(schedule, 3);
    for (const Violation& violation : found) {
        ADD_FAILURE() << schedule.name() << " n=" << schedule.elements() << ": " << to_string(violation);
    }
}

std::vector<Rank> grid_ranks() {
    return kThin ? std::vector<Rank>{3, 4, 5, 9, 16} : std::vector<Rank>{3, 4, 5, 6, 7, 8, 9, 16, 33, 64};
}

std::vector<std::int64_t> grid_segments() {
    return kThin ? std::vector<std::int64_t>{1, 2, 3, 7} : std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 64};
}

/// A prime vector length that no section, slice or segment of the plan divides, with no empty part.
std::int64_t odd_length(Rank ranks, std::int64_t segments) {
    std::int64_t length = std::int64_t{ranks} * (segments + 1) * segments * 2 + 1;
    const auto prime = [](std::int64_t value) {
        for (std::int64_t factor = 2; factor * factor <= value; ++factor) {
            if (value % factor == 0) {
                return false;
            }
        }
        return true;
    };
    while (!prime(length)) {
        ++length;
    }
    return length;
}

class OptccGrid : public testing::TestWithParam<std::tuple<OptccPlan, bool>> {};

TEST_P(OptccGrid, IsProvenForAllSizes) {
    const auto [plan, shared] = GetParam();
    for (const Rank ranks : grid_ranks()) {
        for (const std::int64_t segments : grid_segments()) {
            OptccParameters parameters{.servers = ranks, .plan = plan, .segments = segments, .shared = shared};
            parameters.stragglers = {static_cast<Rank>((segments + ranks / 2) % ranks)};
            for (const std::int64_t elements : {odd_length(ranks, segments), std::int64_t{ranks} * 3 / 2}) {
                parameters.elements = elements;
                if (plan == OptccPlan::kStar) {
                    parameters.star_elements = star_shares(ranks, elements, {{8, 7}});
                }
                expect_proven(*make_optcc(parameters));
            }
        }
    }
}

TEST_P(OptccGrid, IsProvenForEveryStragglerAndForVectorsShorterThanThePlan) {
    const auto [plan, shared] = GetParam();
    for (const Rank ranks : {3, 4, 7}) {
        for (Rank straggler = 0; straggler < ranks; ++straggler) {
            for (std::int64_t elements = 1; elements <= 2 * ranks + 1; ++elements) {
                const std::vector<std::int64_t> star =
                    plan == OptccPlan::kStar ? std::vector<std::int64_t>{elements / 3} : std::vector<std::int64_t>{};
                expect_proven(*make_optcc({.servers = ranks,
                                           .stragglers = {straggler},
                                           .elements = elements,
                                           .plan = plan,
                                           .segments = 3,
                                           .star_elements = star,
                                           .shared = shared}));
            }
        }
    }
}

std::string plan_name(const testing::TestParamInfo<std::tuple<OptccPlan, bool>>& info) {
    return std::string(to_string(std::get<0>(info.param))) + (std::get<1>(info.param) ? "_shared" : "_one_lane");
}

INSTANTIATE_TEST_SUITE_P(Plans, OptccGrid,
                         testing::Combine(testing::Values(OptccPlan::kUniform, OptccPlan::kBalanced, OptccPlan::kStar),
                                          testing::Bool()),
                         plan_name);

TEST(Star, IsProvenForEverySlowdown) {
    for (const char* slowdown : {"1", "8/7", "4/3", "3/2", "2", "3", "4"}) {
        for (const bool shared : {false, true}) {
            for (const Rank ranks : {3, 8, 16}) {
                const std::int64_t elements = 10007;
                const auto star = star_shares(ranks, elements, {*parse_rational(slowdown)});
                expect_proven(*make_optcc({.servers = ranks,
                                           .stragglers = {1},
                                           .elements = elements,
                                           .plan = OptccPlan::kStar,
                                           .segments = 5,
                                           .star_elements = star,
                                           .shared = shared}));
            }
        }
    }
}

TEST(Star, ShareFillsThePauses) {
    // h = 4, l = 3/2: c = 1/3 of a section, n = k (h + c) sections, so 1/13 of the vector.
    EXPECT_THAT(star_shares(5, 1300, {{3, 2}}), ElementsAre(100));
    EXPECT_THAT(star_shares(5, 1300, {{2, 1}}), ElementsAre(0));
    EXPECT_THAT(star_shares(5, 1300, {{4, 1}}), ElementsAre(0));
    // Two stragglers of 1 and 3/2, h = 3: chunks of 1 and 1/3 of a section, 13 thirds in all.
    EXPECT_THAT(star_shares(5, 1300, {{1, 1}, {3, 2}}), ElementsAre(300, 100));
}

TEST(Ring, IsProvenForAllSizes) {
    for (const Rank ranks : {2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 64, 65, 130}) {
        for (const std::int64_t elements : {std::int64_t{1}, std::int64_t{ranks - 1}, std::int64_t{ranks} * 7 + 3}) {
            expect_proven(*make_ring(ranks, elements));
        }
    }
}

} // namespace
} // namespace railbreak::collective
