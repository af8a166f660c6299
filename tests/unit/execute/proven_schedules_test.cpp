// What verify() proves, execute keeps: no proven schedule ever hangs, and every rank ends with the sum. Random requests
// to every algorithm there is, and random schedules that no algorithm makes; all from seeds.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "collective/algorithm.hpp"
#include "collective/verify.hpp"
#include "tests/unit/execute/ranks.hpp"
#include "tests/unit/execute/toy_schedules.hpp"

namespace railbreak::collective {
namespace {

using testing::ListSchedule;
using testing::Ranks;

class Choice {
public:
    explicit Choice(std::uint64_t seed) : random_(seed) {}
    /// A number from `least` to `most`.
    std::int32_t number(std::int32_t least, std::int32_t most) {
        return least + static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
    }
    template <class T> T of(std::initializer_list<T> values) { return values.begin()[random_() % values.size()]; }
    template <class T> void shuffle(std::vector<T>& values) {
        for (std::size_t i = values.size(); i > 1; --i) {
            std::swap(values[i - 1], values[random_() % i]);
        }
    }

private:
    std::mt19937_64 random_;
};

/// One to four ranks a server, up to 16 ranks, none to four slow or broken servers, few or many elements.
PlanRequest random_request(Choice& choice) {
    PlanRequest request;
    Topology& topology = request.topology;
    topology.ranks_per_server = choice.of({1, 1, 1, 2, 2, 3, 4});
    topology.nics_per_server = choice.of({1, 1, 2, topology.ranks_per_server});
    topology.servers.resize(static_cast<std::size_t>(choice.number(2, 16 / topology.ranks_per_server)));
    topology.local_ratio = Rational(choice.of({0, 1, 4}));
    const std::int32_t slow = std::min<std::int32_t>(choice.number(0, 4), topology.server_count() - 1);
    for (std::int32_t i = 0; i < slow; ++i) {
        PortSlowdown& server =
            topology.servers[static_cast<std::size_t>(choice.number(0, topology.server_count() - 1))];
        if (topology.nics_per_server > 1 && choice.number(0, 2) == 0) {
            const std::int32_t nics = topology.nics_per_server;
            server = {Rational(nics, nics - 1), Rational(nics, nics - 1),
                      std::uint64_t{1} << choice.number(0, nics - 1)};
            continue;
        }
        const Rational slowdown(choice.number(10, 60), 10);
        server = {slowdown, choice.number(0, 5) == 0 ? Rational(1) : slowdown, 0};
    }
    request.elements = choice.of<std::int64_t>({1, 2, 7, 50, 1'003, 20'011, 60'000});
    request.healthy_goodput = BitRate::bits_per_s(static_cast<std::uint64_t>(choice.of({1, 40, 1000})) * 100'000'000);
    request.flow_overhead = std::chrono::microseconds(choice.of({0, 1, 30}));
    request.flow_latency = std::chrono::microseconds(choice.of({0, 3, 1000}));
    return request;
}

/// Small pieces, so that every step takes several calls and cut-through happens.
ExecutorOptions random_pieces(Choice& choice) {
    ExecutorOptions options;
    options.forward_bytes = choice.of<std::size_t>({256, 4096, 32768});
    options.call_bytes = choice.of<std::size_t>({1000, 9000, 262144});
    options.staging_bytes = choice.of<std::size_t>({512, 131072});
    return options;
}

void expect_right(const Schedule& schedule, Choice& choice) {
    const std::vector<Violation> violations = verify(schedule);
    ASSERT_TRUE(violations.empty()) << schedule.name() << ": " << to_string(violations.front());
    const BitRate rate = BitRate::bits_per_s(choice.of<std::uint64_t>({0, 0, 20'000'000'000}));
    Ranks ranks = testing::ranks_of(schedule, rate, random_pieces(choice));
    ranks.expect_allreduce(schedule, choice.of({Dtype::kFloat32, Dtype::kBfloat16, Dtype::kInt32}), 11);
}

class EveryAlgorithm : public ::testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, RunsItsProvenSchedulesToTheSum) {
    constexpr int kWanted = 12;
    Choice choice(std::hash<std::string_view>{}(GetParam()->name()));
    int ran = 0;
    for (int tries = 0; tries < 400 && ran < kWanted && !HasFatalFailure(); ++tries) {
        const PlanRequest request = random_request(choice);
        const Result<Plan> plan = GetParam()->plan(request);
        if (!plan) {
            ASSERT_EQ(plan.error().kind(), ErrorKind::kInput) << plan.error().to_line();
            continue;
        }
        SCOPED_TRACE(plan->schedule->name());
        expect_right(*plan->schedule, choice);
        ++ran;
    }
    EXPECT_EQ(ran, kWanted) << "applies too seldom for this test to mean anything";
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, ::testing::ValuesIn(algorithms()), [](const auto& test) {
    std::string name(test.param->name());
    std::erase_if(name, [](char letter) { return letter == '-'; });
    return name;
});

/// A random AllReduce: the vector in random pieces, each summed up along a random tree and handed back along another,
/// the flows of all pieces mixed, on random lanes.
class RandomTrees {
public:
    explicit RandomTrees(Choice& choice)
        : choice_(choice), per_server_(choice.number(1, 3)), ranks_(per_server_ * choice.number(2, 4)),
          lanes_(choice.number(1, kMaxLanes)), elements_(choice.number(1, 30'000)),
          schedule_("random-trees", ranks_, lanes_, elements_, per_server_) {
        if (per_server_ > 1 && lanes_ > 1) {
            schedule_.attach_inside(lanes_ - 1);
        }
    }

    ListSchedule make() {
        const std::int32_t pieces = choice_.number(1, 6);
        std::vector<std::vector<Flow>> todo;
        for (std::int32_t piece = 0; piece < pieces; ++piece) {
            todo.push_back(
                flows_of({elements_ * piece / pieces, elements_ * (piece + 1) / pieces - elements_ * piece / pieces}));
        }
        // Any order that keeps each piece's own is free of deadlocks: every queue follows it.
        std::vector<std::size_t> turns;
        for (std::size_t piece = 0; piece < todo.size(); ++piece) {
            turns.insert(turns.end(), todo[piece].size(), piece);
        }
        choice_.shuffle(turns);
        std::vector<std::size_t> next(todo.size());
        for (const std::size_t piece : turns) {
            add(piece, todo[piece][next[piece]++]);
        }
        return std::move(schedule_);
    }

private:
    struct Flow {
        Rank from;
        Rank to;
        Slice slice;
        Combine combine;
    };

    std::vector<Flow> flows_of(const Slice& slice) {
        std::vector<Rank> order(static_cast<std::size_t>(ranks_));
        std::iota(order.begin(), order.end(), 0);
        choice_.shuffle(order);
        const auto parent = [&](std::size_t i) {
            return order[static_cast<std::size_t>(choice_.number(0, static_cast<std::int32_t>(i) - 1))];
        };
        std::vector<Flow> flows;
        for (std::size_t i = order.size(); i-- > 1;) { // everyone's children come before it
            flows.push_back({order[i], parent(i), slice, Combine::kReduce});
        }
        std::vector<Rank> rest(order.begin() + 1, order.end());
        choice_.shuffle(rest);
        std::copy(rest.begin(), rest.end(), order.begin() + 1);
        for (std::size_t i = 1; i < order.size(); ++i) {
            flows.push_back({parent(i), order[i], slice, Combine::kCopy});
        }
        return flows;
    }

    void add(std::size_t piece, const Flow& flow) {
        const bool same_server = flow.from / per_server_ == flow.to / per_server_;
        const bool inside = per_server_ > 1 && lanes_ > 1;
        const Lane nics = inside ? lanes_ - 1 : lanes_;
        const Lane lane = inside && same_server ? lanes_ - 1 : choice_.number(0, nics - 1);
        schedule_.add(flow.from, flow.to, flow.slice, flow.combine, arrived_[{flow.from, piece}], lane);
        arrived_[{flow.to, piece}][static_cast<std::size_t>(lane)] =
            static_cast<std::int64_t>(schedule_.receives(flow.to, lane).size());
    }

    Choice& choice_;
    Rank per_server_;
    Rank ranks_;
    Lane lanes_;
    std::int64_t elements_;
    ListSchedule schedule_;
    std::map<std::pair<Rank, std::size_t>, PrefixCounts> arrived_; ///< what a rank's sends of a piece wait for
};

TEST(RandomSchedules, RunToTheSum) {
    for (std::uint64_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
        SCOPED_TRACE(seed);
        Choice choice(seed);
        expect_right(RandomTrees(choice).make(), choice);
    }
}

} // namespace
} // namespace railbreak::collective
