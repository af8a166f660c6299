// The verifier must reject damaged schedules. Each mutant changes one thing in a correct plan that makes it wrong
// for some timing; the expected rule says which part of the proof has to notice.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/r2ccl.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/verify.hpp"
#include "tests/unit/collective/damage.hpp"
#include "tests/unit/collective/list_schedule.hpp"

namespace railbreak::collective {
namespace {

using test::first_rule;
using test::ListSchedule;
using test::other_end;
using test::receive_at;
using test::send_at;
using test::Spot;
using StepTest = std::function<bool(const Step&)>;

/// A send step in the middle of the plan that satisfies the condition.
Spot find_send(ListSchedule& schedule, const StepTest& wanted) {
    std::vector<Spot> spots;
    for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (Lane lane = 0; lane < schedule.lanes(); ++lane) {
            for (std::size_t i = 0; i < schedule.sends(rank, lane).size(); ++i) {
                if (wanted(schedule.sends(rank, lane)[i])) {
                    spots.push_back({rank, lane, i});
                }
            }
        }
    }
    EXPECT_FALSE(spots.empty()) << "the plan has no such step";
    return spots.empty() ? Spot{} : spots[spots.size() / 2];
}

StepTest staged(Stage stage) {
    return [stage](const Step& step) { return step.stage == stage && step.slice.count > 0; };
}

void erase_at(std::vector<Step>& steps, std::size_t index) {
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(index));
}

void repeat_at(std::vector<Step>& steps, std::size_t index) {
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(index), Step(steps[index]));
}

struct PlanCase {
    std::string name;
    std::function<std::unique_ptr<const Schedule>()> make;
    std::vector<Stage> stages;
    Rank patient = -1; ///< a rank that waits for more than its data needs, to keep stages apart
};

std::unique_ptr<const Schedule> optcc(OptccPlan plan, bool shared) {
    return make_optcc(
        {.servers = 6,
         .stragglers = {2},
         .elements = 1009,
         .plan = plan,
         .segments = plan == OptccPlan::kPatterns ? 4 : 3,
         .star_elements = plan == OptccPlan::kStar ? std::vector<std::int64_t>{101} : std::vector<std::int64_t>{},
         .shared = shared});
}

std::unique_ptr<const Schedule> two_stragglers(OptccPlan plan, bool shared, bool late = false) {
    return make_optcc(
        {.servers = 6,
         .stragglers = {4, 2},
         .elements = 1009,
         .plan = plan,
         .segments = 2,
         .star_elements = plan == OptccPlan::kStar ? std::vector<std::int64_t>{101, 78} : std::vector<std::int64_t>{},
         .shared = shared,
         .late_first_link = late});
}

std::unique_ptr<const Schedule> unequal(OptccPlan plan, bool shared) {
    OptccParameters parameters{.servers = 6,
                               .stragglers = {2},
                               .elements = 1009,
                               .plan = plan,
                               .segments = 4,
                               .weights = {2, 3, 3, 2},
                               .shared = shared};
    if (plan == OptccPlan::kLagStar) {
        parameters.star_elements = {101};
        parameters.star_weights = {2, 1, 2, 1, 2};
    }
    return make_optcc(parameters);
}

std::unique_ptr<const Schedule> servers(OptccPlan plan, bool shared) {
    return make_optcc(
        {.servers = 3,
         .stragglers = {2},
         .elements = 1009,
         .plan = plan,
         .segments = 2,
         .star_elements = plan == OptccPlan::kStar ? std::vector<std::int64_t>{101} : std::vector<std::int64_t>{},
         .shared = shared,
         .ranks_per_server = 3,
         .nics_per_server = 3});
}

std::vector<Stage> with_local(std::vector<Stage> stages) {
    stages.push_back(Stage::kLocalReduce);
    stages.push_back(Stage::kLocalGather);
    return stages;
}

std::vector<PlanCase> plans() {
    const std::vector<Stage> base = {Stage::kReduceScatter, Stage::kUpload, Stage::kDownload, Stage::kAllGather};
    std::vector<Stage> star = base;
    star.push_back(Stage::kStarUp);
    star.push_back(Stage::kStarDown);
    std::vector<Stage> stars = star;
    stars.push_back(Stage::kStarExchange);
    return {
        {"ring", [] { return make_ring(6, 1009); }, {Stage::kReduceScatter, Stage::kAllGather}},
        {"u", [] { return optcc(OptccPlan::kUniform, false); }, base},
        {"bs", [] { return optcc(OptccPlan::kBalanced, false); }, base},
        {"star", [] { return optcc(OptccPlan::kStar, false); }, star},
        {"u_shared", [] { return optcc(OptccPlan::kUniform, true); }, base},
        {"bs_shared", [] { return optcc(OptccPlan::kBalanced, true); }, base},
        {"star_shared", [] { return optcc(OptccPlan::kStar, true); }, star},
        {"u_two", [] { return two_stragglers(OptccPlan::kUniform, false); }, base},
        {"u_two_late", [] { return two_stragglers(OptccPlan::kUniform, false, true); }, base},
        {"u_two_late_shared", [] { return two_stragglers(OptccPlan::kUniform, true, true); }, base},
        {"bs_two", [] { return two_stragglers(OptccPlan::kBalanced, false); }, base},
        {"bs_two_shared", [] { return two_stragglers(OptccPlan::kBalanced, true); }, base},
        {"star_two", [] { return two_stragglers(OptccPlan::kStar, false); }, stars},
        {"lag", [] { return unequal(OptccPlan::kLag, false); }, base},
        {"lag_shared", [] { return unequal(OptccPlan::kLag, true); }, base},
        {"lag_star", [] { return unequal(OptccPlan::kLagStar, false); }, star},
        {"ramp", [] { return unequal(OptccPlan::kRamp, false); }, base},
        {"ramp_shared", [] { return unequal(OptccPlan::kRamp, true); }, base},
        {"abcd", [] { return optcc(OptccPlan::kPatterns, false); }, base},
        {"servers_u", [] { return servers(OptccPlan::kUniform, false); }, with_local(base)},
        {"servers_bs_shared", [] { return servers(OptccPlan::kBalanced, true); }, with_local(base)},
        {"servers_star", [] { return servers(OptccPlan::kStar, false); }, with_local(star)},
        {"star_two_shared", [] { return two_stragglers(OptccPlan::kStar, true); }, stars},
        {"r2ccl",
         [] {
             return make_r2ccl({6, 2, 1009, 400, 3, 1, 1, 1});
         },
         {Stage::kReduceScatter, Stage::kAllGather, Stage::kReduce, Stage::kBroadcast},
         2},
        {"r2ccl_lanes",
         [] {
             return make_r2ccl({5, 0, 1009, 400, 3, 1, 2, 2});
         },
         {Stage::kReduceScatter, Stage::kAllGather, Stage::kReduce, Stage::kBroadcast},
         0},
    };
}

class Mutants : public testing::TestWithParam<PlanCase> {
protected:
    void SetUp() override { model_ = std::make_unique<ListSchedule>(*GetParam().make()); }

    /// Damages a copy at a step of each stage and expects the rule to notice.
    void expect_each(const std::string& rule, const std::function<void(ListSchedule&, const Spot&)>& damage) {
        for (const Stage stage : GetParam().stages) {
            ListSchedule copy(*model_);
            damage(copy, find_send(copy, staged(stage)));
            EXPECT_EQ(first_rule(copy), rule) << GetParam().name << " damaged at " << to_string(stage);
        }
    }

    std::unique_ptr<ListSchedule> model_;
};

TEST_P(Mutants, TheModelItselfIsAccepted) {
    EXPECT_EQ(first_rule(*model_), "accepted");
}

TEST_P(Mutants, DroppedSendIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) { erase_at(s.sends(at.rank, at.lane), at.index); });
}

TEST_P(Mutants, MessageDroppedAtBothEndsIsRejected) {
    for (const Stage stage : GetParam().stages) {
        ListSchedule copy(*model_);
        const Spot at = find_send(copy, staged(stage));
        const Spot end = other_end(copy, at);
        erase_at(copy.receives(end.rank, end.lane), end.index);
        erase_at(copy.sends(at.rank, at.lane), at.index);
        EXPECT_NE(first_rule(copy), "accepted") << GetParam().name << " without a " << to_string(stage);
    }
}

TEST_P(Mutants, RepeatedSendIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) { repeat_at(s.sends(at.rank, at.lane), at.index); });
}

TEST_P(Mutants, AdditionRepeatedAtBothEndsIsRejected) {
    for (const Stage stage : GetParam().stages) {
        ListSchedule copy(*model_);
        const Spot at = find_send(copy, staged(stage));
        if (send_at(copy, at).combine != Combine::kReduce) {
            continue; // a copy may come twice
        }
        const Spot end = other_end(copy, at);
        repeat_at(copy.receives(end.rank, end.lane), end.index);
        repeat_at(copy.sends(at.rank, at.lane), at.index);
        EXPECT_NE(first_rule(copy), "accepted") << GetParam().name << " with a second " << to_string(stage);
    }
}

TEST_P(Mutants, SwappedSendsToOnePeerAreRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) {
        std::vector<Step>& sends = s.sends(at.rank, at.lane);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            if (sends[i].peer == sends[at.index].peer && sends[i].slice != sends[at.index].slice) {
                std::swap(sends[i], sends[at.index]);
                return;
            }
        }
    });
}

TEST_P(Mutants, WrongPeerIsRejected) {
    for (const Stage stage : GetParam().stages) {
        ListSchedule copy(*model_);
        const Spot at = find_send(copy, staged(stage));
        Step& step = send_at(copy, at);
        do {
            step.peer = (step.peer + 1) % copy.ranks();
        } while (step.peer == at.rank);
        // On an intra-host port the next rank may be on another server.
        EXPECT_THAT(first_rule(copy), testing::AnyOf("pairing", "ports")) << to_string(stage);
    }
}

TEST_P(Mutants, OwnPeerIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) { send_at(s, at).peer = at.rank; });
}

TEST_P(Mutants, WrongSliceAtOneEndIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) { send_at(s, at).slice.count -= 1; });
}

TEST_P(Mutants, WrongSliceAtBothEndsIsRejected) {
    for (const std::int64_t shift : {-1, 1}) {
        for (const Stage stage : GetParam().stages) {
            ListSchedule copy(*model_);
            const Spot at = find_send(copy, [&](const Step& step) {
                return step.stage == stage && step.slice.offset > 0 && step.slice.end() < 1009;
            });
            const Spot end = other_end(copy, at);
            send_at(copy, at).slice.offset += shift;
            receive_at(copy, end).slice.offset += shift;
            EXPECT_NE(first_rule(copy), "accepted") << GetParam().name << " shifted " << to_string(stage);
        }
    }
}

TEST_P(Mutants, SliceOutsideTheVectorIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) {
        const Spot end = other_end(s, at);
        send_at(s, at).slice.offset = s.elements();
        receive_at(s, end).slice.offset = s.elements();
    });
}

TEST_P(Mutants, CopyForReduceIsRejected) {
    for (const Stage stage : GetParam().stages) {
        ListSchedule copy(*model_);
        const Spot at = find_send(copy, staged(stage));
        const Spot end = other_end(copy, at);
        const Combine other = send_at(copy, at).combine == Combine::kCopy ? Combine::kReduce : Combine::kCopy;
        send_at(copy, at).combine = other;
        receive_at(copy, end).combine = other;
        // With two lanes a copy in place of a download also races against the addition of the ring.
        EXPECT_THAT(first_rule(copy), testing::AnyOf("data", "race")) << to_string(stage);
    }
}

TEST_P(Mutants, CombineMismatchIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) {
        Step& step = receive_at(s, other_end(s, at));
        step.combine = step.combine == Combine::kCopy ? Combine::kReduce : Combine::kCopy;
    });
}

TEST_P(Mutants, StageMismatchIsRejected) {
    expect_each("pairing", [](ListSchedule& s, const Spot& at) { send_at(s, at).stage = Stage::kProbe; });
}

TEST_P(Mutants, EveryWaitThatIsOneTooShortIsRejected) {
    // This also shows that the plan's waits are as short as they can be. Waits that an earlier step of the same queue
    // has already ensured are left out: they cost nothing and shortening them changes nothing.
    int tried = 0;
    for (Rank rank = 0; rank < model_->ranks(); ++rank) {
        for (Lane lane = 0; lane < model_->lanes() && rank != GetParam().patient; ++lane) {
            PrefixCounts ensured{};
            for (std::size_t i = 0; i < model_->sends(rank, lane).size(); ++i) {
                for (std::size_t on = 0; on < kMaxLanes; ++on) {
                    const std::int64_t wait = model_->sends(rank, lane)[i].after[on];
                    if (wait <= ensured[on]) {
                        continue;
                    }
                    ensured[on] = wait;
                    ListSchedule copy(*model_);
                    copy.sends(rank, lane)[i].after[on] = wait - 1;
                    ++tried;
                    EXPECT_NE(first_rule(copy), "accepted")
                        << GetParam().name << " rank " << rank << " lane " << lane << " send " << i << " on " << on;
                }
            }
        }
    }
    EXPECT_GT(tried, 20);
}

TEST_P(Mutants, NoWaitsAtAllIsRejected) {
    for (Rank rank = 0; rank < model_->ranks(); ++rank) {
        for (Lane lane = 0; lane < model_->lanes(); ++lane) {
            for (Step& step : model_->sends(rank, lane)) {
                step.after = {};
            }
        }
    }
    EXPECT_EQ(first_rule(*model_), "race");
}

TEST_P(Mutants, WaitForTheEndIsACycle) {
    ListSchedule copy(*model_);
    const Rank rank = 0;
    copy.sends(rank, 0)[0].after[0] = copy.receive_count(rank, 0);
    EXPECT_EQ(first_rule(copy), "deadlock");
}

TEST_P(Mutants, WaitBeyondTheQueueIsRejected) {
    ListSchedule copy(*model_);
    copy.sends(0, 0)[1].after[0] = copy.receive_count(0, 0) + 1;
    EXPECT_EQ(first_rule(copy), "deadlock");
    copy.sends(0, 0)[1].after[0] = -1;
    EXPECT_EQ(first_rule(copy), "deadlock");
}

TEST_P(Mutants, ReceiveThatWaitsForItsOwnConsequenceIsACycle) {
    ListSchedule copy(*model_);
    copy.receives(1, 0)[0].after[0] = copy.send_count(1, 0);
    EXPECT_EQ(first_rule(copy), "deadlock");
}

TEST_P(Mutants, ReceivesInReverseOrderAreRejected) {
    std::vector<Step>& receives = model_->receives(0, 0);
    std::reverse(receives.begin(), receives.end());
    EXPECT_NE(first_rule(*model_), "accepted");
}

INSTANTIATE_TEST_SUITE_P(Plans, Mutants, testing::ValuesIn(plans()),
                         [](const testing::TestParamInfo<PlanCase>& info) { return info.param.name; });

class PortMutants : public testing::Test {
protected:
    /// Rank 4 is on server 1 of three; lane 1 is the intra-host port.
    ListSchedule list_{*servers(OptccPlan::kUniform, false)};
};

TEST_F(PortMutants, TheModelItselfIsAccepted) {
    EXPECT_EQ(first_rule(list_), "accepted");
}

TEST_F(PortMutants, EndsOfDifferentKindsAreRejected) {
    list_.lane_port(4, 1) = {PortKind::kNic, 0};
    EXPECT_EQ(first_rule(list_), "ports");
}

TEST_F(PortMutants, TwoLanesOnTheIntraHostPortAreRejected) {
    for (Rank rank = 0; rank < list_.ranks(); ++rank) {
        list_.lane_port(rank, 0) = {PortKind::kLocal, 0};
    }
    const std::vector<Violation> found = verify(list_, 100);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].rule, "ports");
    EXPECT_THAT(found[0].message, testing::HasSubstr("2 lanes"));
}

TEST_F(PortMutants, IntraHostPortsThatLeadToOtherServersAreRejected) {
    list_.set_ranks_per_server(1);
    EXPECT_EQ(first_rule(list_), "ports");
}

TEST_F(PortMutants, ServersOfUnequalSizeAreRejected) {
    list_.set_ranks_per_server(2);
    EXPECT_EQ(first_rule(list_), "ports");
    list_.set_ranks_per_server(0);
    EXPECT_EQ(first_rule(list_), "ports");
}

TEST_F(PortMutants, PortsThatCannotBeAreRejected) {
    list_.lane_port(4, 0).nic = -1;
    EXPECT_EQ(first_rule(list_), "ports");
    list_.lane_port(4, 0).nic = 0;
    list_.lane_port(4, 1).nic = 1;
    EXPECT_EQ(first_rule(list_), "ports");
}

TEST_F(PortMutants, OtherNicsOfTheServerAreAccepted) {
    list_.lane_port(4, 0).nic = 2;
    EXPECT_EQ(first_rule(list_), "accepted");
}

TEST(Verify, SeesAReadThatIsNotOrderedAgainstALaterOverwrite) {
    // Rank 1 still sends its element while rank 0's copy may arrive.
    ListSchedule list(*make_ring(2, 2));
    list.sends(0, 0) = {{.peer = 1, .slice = {0, 2}, .combine = Combine::kCopy}};
    list.receives(1, 0) = {{.peer = 0, .slice = {0, 2}, .combine = Combine::kCopy}};
    list.sends(1, 0) = {{.peer = 0, .slice = {0, 2}, .combine = Combine::kReduce}};
    list.receives(0, 0) = {{.peer = 1, .slice = {0, 2}, .combine = Combine::kReduce}};
    EXPECT_EQ(first_rule(list), "race");
    list.sends(0, 0)[0].after[0] = 1;
    EXPECT_EQ(first_rule(list), "accepted");
}

TEST(Verify, NamesRankLaneAndIndex) {
    ListSchedule list(*make_ring(3, 30));
    list.sends(2, 0)[1].slice.count = 3;
    const std::vector<Violation> found = verify(list);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rank, 0);
    EXPECT_EQ(found[0].index, 1);
    EXPECT_EQ(to_string(found[0]).substr(0, 35), "pairing: rank 0 lane 0 receive 1: t");
}

} // namespace
} // namespace railbreak::collective
