// StragglAR: its rounds against worked examples, its time on exclusive ports against the closed form.
#include <bit>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "collective/algorithms/stragglar.hpp"
#include "collective/algorithms/stragglar_algorithm.hpp"
#include "tests/unit/collective/baseline_support.hpp"

namespace railbreak::collective {
namespace {

using namespace test;

constexpr std::uint64_t kSeed = 1;

std::set<std::tuple<Rank, Rank, Rank>> as_set(const std::vector<ChunkCopy>& copies) {
    std::set<std::tuple<Rank, Rank, Rank>> set;
    for (const ChunkCopy& copy : copies) {
        set.emplace(copy.from, copy.to, copy.chunk);
    }
    return set;
}

/// One send and one receive a rank and round at most, finished chunks only, everybody complete at the end.
void expect_valid(Rank ranks, const SpreadRounds& rounds) {
    const Rank s = ranks - 1;
    std::vector<std::set<Rank>> has(static_cast<std::size_t>(ranks));
    for (Rank round = 0; round < std::ssize(rounds); ++round) {
        std::set<Rank> senders;
        std::set<Rank> receivers;
        if (round < s) {
            senders = receivers = {round, s};
        }
        for (const ChunkCopy& copy : rounds[static_cast<std::size_t>(round)]) {
            EXPECT_TRUE(senders.insert(copy.from).second) << "p " << ranks << " round " << round;
            EXPECT_TRUE(receivers.insert(copy.to).second) << "p " << ranks << " round " << round;
            EXPECT_TRUE(has[static_cast<std::size_t>(copy.from)].contains(copy.chunk));
        }
        for (const ChunkCopy& copy : rounds[static_cast<std::size_t>(round)]) {
            EXPECT_TRUE(has[static_cast<std::size_t>(copy.to)].insert(copy.chunk).second) << "sent twice";
        }
        if (round < s) {
            has[static_cast<std::size_t>(round)].insert(round);
            has[static_cast<std::size_t>(s)].insert(round);
        }
    }
    for (const std::set<Rank>& chunks : has) {
        EXPECT_EQ(std::ssize(chunks), ranks - 1);
    }
}

TEST(StragglarRounds, FourRanksAsWorkedOut) {
    const SpreadRounds rounds = stragglar_rounds(4, kSeed);
    ASSERT_EQ(rounds.size(), 4U);
    using Set = std::set<std::tuple<Rank, Rank, Rank>>;
    EXPECT_EQ(as_set(rounds[0]), (Set{}));
    EXPECT_EQ(as_set(rounds[1]), (Set{{0, 2, 0}}));
    EXPECT_EQ(as_set(rounds[2]), (Set{{0, 1, 0}, {1, 0, 1}}));
    EXPECT_EQ(as_set(rounds[3]), (Set{{0, 2, 1}, {2, 0, 2}, {3, 1, 2}}));
}

TEST(StragglarRounds, EightRanksAsWorkedOut) {
    const SpreadRounds rounds = stragglar_rounds(8, kSeed);
    using Set = std::set<std::tuple<Rank, Rank, Rank>>;
    const std::vector<Set> worked = {
        {},
        {{0, 3, 0}},
        {{0, 5, 0}, {1, 4, 1}, {3, 6, 0}},
        {{5, 1, 0}, {1, 5, 1}, {0, 4, 0}, {4, 0, 1}, {6, 2, 0}, {2, 6, 2}},
        {{5, 2, 1}, {2, 5, 2}, {0, 6, 1}, {6, 0, 2}, {1, 3, 1}, {3, 1, 3}},
        {{6, 1, 2}, {1, 6, 3}, {0, 3, 2}, {3, 0, 3}, {2, 4, 2}, {4, 2, 4}},
        {{0, 2, 3}, {2, 0, 4}, {1, 4, 3}, {4, 1, 4}, {3, 5, 3}, {5, 3, 5}},
        {{0, 3, 4}, {3, 0, 5}, {1, 5, 4}, {5, 1, 5}, {2, 6, 4}, {6, 2, 6}, {7, 4, 6}},
        {{0, 2, 5}, {2, 0, 6}, {1, 4, 5}, {4, 1, 6}, {3, 6, 5}, {6, 3, 6}, {7, 5, 6}},
    };
    ASSERT_EQ(rounds.size(), worked.size());
    for (std::size_t round = 0; round < worked.size(); ++round) {
        EXPECT_EQ(as_set(rounds[round]), worked[round]) << "round " << round;
    }
}

TEST(StragglarRounds, PowersOfTwoTakeTheLeastRounds) {
    for (Rank ranks = 4; ranks <= 512; ranks *= 2) {
        const SpreadRounds rounds = stragglar_rounds(ranks, kSeed);
        EXPECT_EQ(std::ssize(rounds), ranks - 2 + std::bit_width(static_cast<unsigned>(ranks)) - 1);
        expect_valid(ranks, rounds);
    }
}

TEST(StragglarRounds, OtherNumbersStayNearTheLeast) {
    for (Rank ranks = 3; ranks <= 33; ++ranks) {
        const SpreadRounds rounds = stragglar_rounds(ranks, kSeed);
        const auto least = ranks - 2 + std::bit_width(static_cast<unsigned>(ranks - 1));
        EXPECT_GE(std::ssize(rounds), least);
        EXPECT_LE(std::ssize(rounds), least + 1 + ranks / 4) << ranks;
        expect_valid(ranks, rounds);
        EXPECT_EQ(rounds, stragglar_rounds(ranks, kSeed)) << "the same seed gives the same rounds";
    }
    EXPECT_EQ(stragglar_rounds(3, kSeed).size(), 3U);
    EXPECT_EQ(stragglar_rounds(5, kSeed).size(), 6U);
    EXPECT_EQ(stragglar_rounds(6, kSeed).size(), 7U);
}

TEST(Stragglar, IsProvenForEveryStragglerAndSize) {
    for (const Rank ranks : {3, 4, 5, 6, 7, 8, 11, 16}) {
        const SpreadRounds rounds = stragglar_rounds(ranks, kSeed);
        for (Rank straggler = 0; straggler < ranks; straggler += 1 + ranks / 3) {
            for (const std::int64_t elements : {1, 5, 1009}) {
                expect_proven(*make_stragglar({ranks, straggler, elements}, rounds));
            }
        }
    }
}

TEST(Stragglar, OneElementAChunkGivesTheSums) {
    for (const Rank ranks : {4, 8}) {
        expect_sums(*make_stragglar({ranks, ranks - 1, ranks - 1}, stragglar_rounds(ranks, kSeed)), 100);
        expect_sums(*make_stragglar({ranks, 1, ranks - 1}, stragglar_rounds(ranks, kSeed)), 100);
    }
}

TEST(Stragglar, TakesTheReduceScatterAndTheRoundsOnExclusivePorts) {
    for (const Rank ranks : {4, 8, 16}) { // chunks of 12 elements, so that halves are whole
        const SpreadRounds rounds = stragglar_rounds(ranks, kSeed);
        const auto schedule = make_stragglar({ranks, 2, (ranks - 1) * 12}, rounds);
        for (const char* slowdown : {"1", "3/2", "2", "4"}) {
            const Rational slow = ratio(slowdown);
            const Rank levels = std::bit_width(static_cast<unsigned>(ranks)) - 1;
            EXPECT_EQ(exact_time(*schedule, one_straggler(ranks, 2, slow)),
                      12 * (ranks - 2 + (ranks - 2 + levels) * slow))
                << "p " << ranks << " slowdown " << slowdown;
        }
    }
}

TEST(Stragglar, PredictionIsTheSameClosedForm) {
    // p=8, l=2: (6 + 7*2 + 2*2)/7 of the vector.
    const auto plan = plan_of("stragglar", request_for(one_straggler(8, 3, ratio("2")), 700));
    ASSERT_TRUE(plan.has_value());
    EXPECT_NEAR(predicted_elements(*plan), 2400, 0.1);
    EXPECT_EQ(plan->schedule->name(), "stragglar(p=8,straggler=3,rounds=9)");
    // p=5, l=2, six rounds: 2.344 times the healthy ring, 1.6 n.
    const auto five = plan_of("stragglar", request_for(one_straggler(5, 0, ratio("2")), 1000));
    EXPECT_NEAR(predicted_elements(*five) / 1600, (0.75 + (4 * 2 + 2 * 2) / 4.0) / 1.6, 1e-3);
    // Nobody late, nobody slow, p=4 and chunks of one: two hops and four rounds.
    EXPECT_NEAR(stragglar_cost_ns(4, 4, 1, 1, 3, 0, 0), 2 + 4, 1e-9);
}

TEST(Stragglar, OptionsAndErrors) {
    const auto last = plan_of("stragglar", request_for(healthy_topology(6), 100));
    EXPECT_EQ(last->schedule->name(), "stragglar(p=6,straggler=5,rounds=7)");
    const auto asked = plan_of("stragglar", request_for(healthy_topology(6), 100, {{"straggler", "2"}, {"seed", "9"}}));
    EXPECT_EQ(asked->schedule->name().rfind("stragglar(p=6,straggler=2", 0), 0U);
    expect_input_error(plan_of("stragglar", request_for(healthy_topology(2), 100)), "at least 3 ranks");
    expect_input_error(plan_of("stragglar", request_for(healthy_topology(6), 100, {{"straggler", "6"}})), "0 to 5");
    expect_input_error(plan_of("stragglar", request_for(healthy_topology(6), 100, {{"late", "1"}})),
                       "straggler (a rank)");
    expect_input_error(plan_of("stragglar", request_for(healthy_topology(300), 100)), "up to 128 ranks");
    Topology wide = healthy_topology(4);
    wide.ranks_per_server = 2;
    expect_input_error(plan_of("stragglar", request_for(wide, 100)), "one rank a server");
}

} // namespace
} // namespace railbreak::collective
