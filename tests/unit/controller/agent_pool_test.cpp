// The controller's end of the conversation, against real child processes that behave as agents and hosts may behave:
// login noise before the hello, other versions, silence, sudden death.
#include "harness/controller/agent_pool.hpp"

#include <algorithm>
#include <csignal>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railbreak::controller {
namespace {

using launch::Json;
using ::testing::HasSubstr;

constexpr Nanoseconds kLease = std::chrono::milliseconds(900);
constexpr Nanoseconds kPatience = std::chrono::seconds(20);
constexpr const char* kHello = R"({"railbreak":"hello","proto":1,"version":"test","boot_id":"b","netns":"1"})";

class AgentPoolTest : public ::testing::Test {
protected:
    void SetUp() override {
        Result<std::unique_ptr<AgentPool>> pool =
            AgentPool::create(kLease, [this](std::int32_t, const launch::RpcMessage& message) {
                notifications_.push_back(message.method);
            });
        ASSERT_TRUE(pool) << pool.error().to_line();
        pool_ = std::move(*pool);
    }

    /// An agent in the shell's language.
    void add(const std::string& script) {
        Result<launch::Child> child = launch::spawn({.argv = {"/bin/sh", "-c", script}});
        ASSERT_TRUE(child) << child.error().to_line();
        pool_->add(static_cast<std::int32_t>(pool_->size()), "h" + std::to_string(pool_->size()), std::move(*child));
    }

    /// Says hello, then answers every request (pings too) with `result`.
    static std::string answering(const std::string& result) {
        return std::string("echo '") + kHello +
               "'; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; "
               "echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":" +
               result + "}\"; done";
    }

    Result<void> hellos() { return pool_->await_hellos(Deadline::after(kPatience)); }

    std::unique_ptr<AgentPool> pool_;
    std::vector<std::string> notifications_;
};

TEST_F(AgentPoolTest, SkipsWhatTheHostSaysBeforeTheAgent) {
    add("echo 'Welcome to node 7!'; echo '{\"not\":\"it\"}'; " + answering("{\\\"answer\\\":42}"));
    ASSERT_TRUE(hellos());
    const Result<Json> reply = pool_->call(0, "anything", Json::object(), Deadline::after(kPatience));
    ASSERT_TRUE(reply) << reply.error().to_line();
    EXPECT_EQ(reply->at("answer"), 42);
}

TEST_F(AgentPoolTest, GivesUpOnAHostThatTalksWithoutEnd) {
    add("yes 'no hello here, only a very long banner that does not end'");
    const Result<void> waited = hellos();
    ASSERT_FALSE(waited);
    EXPECT_THAT(waited.error().to_line(), HasSubstr("talks before the agent does"));
}

TEST_F(AgentPoolTest, RefusesAnotherVersionOfTheProtocol) {
    add("echo '{\"railbreak\":\"hello\",\"proto\":99,\"version\":\"9.9\"}'; cat");
    const Result<void> waited = hellos();
    ASSERT_FALSE(waited);
    EXPECT_THAT(waited.error().to_line(), HasSubstr("another version of the protocol"));
    EXPECT_THAT(waited.error().to_line(), HasSubstr("9.9"));
}

TEST_F(AgentPoolTest, AnAgentThatNeverSpeaksEndsTheWaitAtTheDeadline) {
    add("cat");
    const Result<void> waited = pool_->await_hellos(Deadline::after(std::chrono::milliseconds(50)));
    ASSERT_FALSE(waited);
    EXPECT_THAT(waited.error().to_line(), HasSubstr("every agent's hello"));
}

TEST_F(AgentPoolTest, ADeadAgentAnswersItsRequestsWithItsLastWords) {
    add(std::string("echo '") + kHello + "'; read -r line; echo 'out of memory' >&2; exit 3");
    ASSERT_TRUE(hellos());
    const Result<Json> reply = pool_->call(0, "work", Json::object(), Deadline::after(kPatience));
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind(), ErrorKind::kHarness);
    EXPECT_THAT(reply.error().to_line(), HasSubstr("h0"));
    EXPECT_THAT(reply.error().to_line(), HasSubstr("out of memory"));
}

TEST_F(AgentPoolTest, ASilentAgentIsLostAfterItsLease) {
    add(std::string("echo '") + kHello + "'; sleep 60");
    ASSERT_TRUE(hellos());
    const Result<Json> reply = pool_->call(0, "work", Json::object(), Deadline::after(kPatience));
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().to_line(), HasSubstr("silent for its whole lease"));
}

/// Like answering(), but busy for two leases with every fault.
std::string slow_with_faults() {
    return std::string("echo '") + kHello +
           "'; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; "
           "case $line in *fault.apply*) sleep 2;; esac; "
           "echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{}}\"; done";
}

TEST_F(AgentPoolTest, AnAgentThatWaitsForAPortIsNotTakenForLost) {
    add(slow_with_faults());
    ASSERT_TRUE(hellos());
    const Json order{{"id", 1}, {"kind", "link_down"}, {"nic", "eth1"}};
    const Result<Json> applied = pool_->call(0, "fault.apply", order, Deadline::after(kPatience));
    ASSERT_TRUE(applied) << applied.error().to_line();
    EXPECT_GT(pool_->busy_for(), injectors::kTraining) << "what is in force must be undone, and the port train again";
    const Result<Json> reverted = pool_->call(0, "fault.revert", {{"id", 1}}, Deadline::after(kPatience));
    ASSERT_TRUE(reverted) << reverted.error().to_line();
    EXPECT_EQ(pool_->busy_for(), Nanoseconds::zero());
}

TEST_F(AgentPoolTest, PingsKeepAnIdleAgentAndMeasureItsClock) {
    add(answering("{\\\"monotonic_ns\\\":0}"));
    ASSERT_TRUE(hellos());
    const Nanoseconds until = monotonic_now() + 2 * kLease;
    ASSERT_TRUE(pool_->wait_until([&] { return monotonic_now() > until; }, Deadline::after(kPatience), "two leases"));
    EXPECT_FALSE(pool_->link(0).lost());
    EXPECT_TRUE(pool_->link(0).clock().known);
    EXPECT_LT(pool_->link(0).clock().offset, Nanoseconds::zero()) << "that clock stands at zero, ours does not";
}

TEST_F(AgentPoolTest, ALineThatIsNoMessageEndsTheConversation) {
    add(std::string("echo '") + kHello + "'; read -r line; echo 'Segmentation fault'; cat");
    ASSERT_TRUE(hellos());
    const Result<Json> reply = pool_->call(0, "work", Json::object(), Deadline::after(kPatience));
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().to_line(), HasSubstr("Segmentation fault"));
}

TEST_F(AgentPoolTest, OfManyErrorsTheOneThatSaysMostIsTold) {
    const std::string outcome = R"({\"kind\":\"outcome\",\"message\":\"rank 1 died\",\"facts\":[],\"advice\":\"\"})";
    const std::string follow = R"({\"kind\":\"outcome\",\"message\":\"peer closed\",)"
                               R"(\"facts\":[[\"peer\",\"1\"],[\"errno\",\"ECONNRESET\"]],\"advice\":\"\"})";
    for (const std::string& data : {follow, outcome, follow}) {
        add(std::string("echo '") + kHello +
            "'; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; "
            "echo "
            "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"error\\\":{\\\"code\\\":1,\\\"message\\\":\\\"m\\\","
            "\\\"data\\\":" +
            data + "}}\"; done");
    }
    ASSERT_TRUE(hellos());
    const Result<std::vector<Json>> replies = pool_->call_all(
        "work", [](std::int32_t) { return Json::object(); }, Deadline::after(kPatience));
    ASSERT_FALSE(replies);
    EXPECT_EQ(replies.error().message(), "rank 1 died");
}

TEST_F(AgentPoolTest, AfterAnErrorTheOthersHaveTheirGraceAndAreNamed) {
    add(std::string("echo '") + kHello +
        "'; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; echo "
        "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"error\\\":{\\\"code\\\":1,\\\"message\\\":\\\"m\\\","
        "\\\"data\\\":{\\\"kind\\\":\\\"outcome\\\",\\\"message\\\":\\\"rank 0 "
        "stalled\\\",\\\"facts\\\":[],\\\"advice\\\":"
        "\\\"\\\"}}}\"; done");
    add(std::string("echo '") + kHello +
        "'; while read -r line; do case $line in *ping*) id=${line#*'\"id\":'}; id=${id%%,*}; echo "
        "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{\\\"monotonic_ns\\\":0}}\" ;; esac; done");
    ASSERT_TRUE(hellos());
    const Result<std::vector<Json>> replies = pool_->call_each(
        "work", 1, [](std::int32_t) { return Json::object(); }, Deadline::after(kPatience),
        std::chrono::milliseconds(20));
    ASSERT_FALSE(replies);
    EXPECT_EQ(replies.error().message(), "rank 0 stalled");
    EXPECT_THAT(replies.error().to_line(), HasSubstr("host=h0"));
    EXPECT_THAT(replies.error().to_line(), HasSubstr("no_answer_from=h1"));
}

TEST_F(AgentPoolTest, SeveralCallsAHostComeBackInTheOrderOfTheCalls) {
    add(answering("10"));
    add(answering("20"));
    ASSERT_TRUE(hellos());
    std::vector<std::int32_t> asked;
    const auto params = [&](std::int32_t call) {
        asked.push_back(call);
        return Json::object();
    };
    const Result<std::vector<Json>> replies = pool_->call_each("work", 2, params, Deadline::after(kPatience));
    ASSERT_TRUE(replies) << replies.error().to_line();
    EXPECT_THAT(*replies, ::testing::ElementsAre(10, 10, 20, 20));
    EXPECT_THAT(asked, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(AgentPoolTest, EveryAppliedFaultIsFollowedByAProbe) {
    add(std::string("echo '") + kHello +
        "'; while read -r line; do id=${line#*'\"id\":'}; id=${id%%,*}; case $line in "
        "*fault.confirm*) echo '{\"jsonrpc\":\"2.0\",\"method\":\"confirmed\",\"params\":{}}';; esac; "
        "echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{}}\"; done");
    ASSERT_TRUE(hellos());
    ASSERT_TRUE(pool_->call(0, "fault.revert", {{"id", 7}}, Deadline::after(kPatience)));
    EXPECT_THAT(notifications_, ::testing::IsEmpty());
    ASSERT_TRUE(pool_->call(0, "fault.apply", {{"id", 7}}, Deadline::after(kPatience)));
    const auto confirmed = [&] { return std::ranges::find(notifications_, "confirmed") != notifications_.end(); };
    EXPECT_TRUE(pool_->wait_until(confirmed, Deadline::after(kPatience), "the probe"));
    EXPECT_FALSE(pool_->link(0).probe_overdue());
}

TEST_F(AgentPoolTest, TheThirdSignalLeavesTheRestToTheHosts) {
    add(std::string("echo '") + kHello + "'; trap '' TERM; while read -r line; do :; done; sleep 3");
    ASSERT_TRUE(hellos());
    const auto never = [] { return false; };
    const auto wait = [&](Nanoseconds patience) {
        return pool_->wait_until(never, Deadline::after(patience), "nothing").error().message();
    };
    ::kill(::getpid(), SIGINT);
    EXPECT_THAT(wait(kPatience), HasSubstr("interrupted by SIGINT"));
    pool_->begin_teardown();
    ::kill(::getpid(), SIGINT);
    EXPECT_THAT(wait(std::chrono::milliseconds(300)), HasSubstr("deadline passed")) << "two are not enough";
    EXPECT_FALSE(pool_->abandoned());
    ::kill(::getpid(), SIGINT);
    EXPECT_THAT(wait(kPatience), HasSubstr("left to the hosts by the third signal"));
    EXPECT_TRUE(pool_->abandoned());
    const std::vector<Error> problems = pool_->shut_down(kPatience);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems.front().kind(), ErrorKind::kTeardown);
    EXPECT_THAT(problems.front().message(), HasSubstr("was left without confirming"));
}

TEST_F(AgentPoolTest, TimersRunInOrderWhileItWaitsAndNotificationsArrive) {
    add(std::string("echo '") + kHello + R"('; echo '{"jsonrpc":"2.0","method":"news","params":{}}'; cat)");
    ASSERT_TRUE(hellos());
    std::vector<int> ran;
    const Nanoseconds now = monotonic_now();
    pool_->run_at(now + std::chrono::milliseconds(20), [&] { ran.push_back(2); });
    pool_->run_at(now + std::chrono::milliseconds(10), [&] { ran.push_back(1); });
    ASSERT_TRUE(pool_->wait_until([&] { return ran.size() == 2 && !notifications_.empty(); },
                                  Deadline::after(kPatience), "timers and news"));
    EXPECT_THAT(ran, ::testing::ElementsAre(1, 2));
    EXPECT_THAT(notifications_, ::testing::ElementsAre("news"));
}

} // namespace
} // namespace railbreak::controller
