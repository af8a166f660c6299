// What protects a host from its own faults, on real devices: a real agent in a private network namespace, and this test
// in the place of its controller.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>

#include "injectors/journal.hpp"
#include "injectors/state_folder.hpp"
#include "injectors/sweep.hpp"
#include "tests/lab/injector_lab.hpp"
#include "tests/lab/support/agent_driver.hpp"

namespace railbreak::injectors {
namespace {

using launch::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::AgentDriver;

constexpr Nanoseconds kLongLease = std::chrono::minutes(5);
constexpr Nanoseconds kPatience = std::chrono::seconds(20);

Json cap_order(std::int32_t id, const std::string& nic) {
    return {{"id", id}, {"kind", "cap"}, {"nic", nic}, {"direction", "both"}, {"rate_bits_per_s", 50'000'000}};
}
Json down_order(std::int32_t id, const std::string& nic) {
    return {{"id", id}, {"kind", "link_down"}, {"nic", nic}};
}

class AgentSafety : public InjectorLab {
protected:
    [[nodiscard]] std::unique_ptr<AgentDriver> agent(const std::vector<std::string>& environment = {}) const {
        return std::make_unique<AgentDriver>(state_folder(), host_netns_.get(), environment);
    }
    /// Below a folder of our own: right below /tmp it would be refused.
    [[nodiscard]] std::string state_folder() const { return folder_ + "/state"; }
    /// An agent that has said yes to a run.
    [[nodiscard]] std::unique_ptr<AgentDriver> ready_agent(const std::string& run = "run",
                                                           const Json& more = Json::object(),
                                                           const std::vector<std::string>& environment = {}) const {
        auto driver = agent(environment);
        const auto ready = driver->init(run, kLongLease, more);
        EXPECT_TRUE(ready) << ready.error().to_line();
        return driver;
    }
    /// The order must be refused with these words, and the host must be as it was.
    void expect_refused(AgentDriver& driver, const Json& order, const std::string& words,
                        ErrorKind kind = ErrorKind::kRefused) {
        const auto before = snapshot();
        const auto answer = driver.call("fault.apply", order);
        ASSERT_FALSE(answer) << order.dump() << " was applied";
        EXPECT_EQ(answer.error().kind(), kind) << answer.error().to_line();
        EXPECT_THAT(answer.error().message(), HasSubstr(words));
        EXPECT_THAT(answer.error().to_line(), Not(HasSubstr("\n")));
        expect_as_before(before, 0);
    }
    void make_link(const std::string& name, const std::string& kind, std::int32_t lower) {
        NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        message.append_header(ifinfomsg{});
        message.put_string(IFLA_IFNAME, name);
        if (lower != 0) {
            message.put_u32(IFLA_LINK, static_cast<std::uint32_t>(lower));
        }
        nlattr* info = message.begin_nest(IFLA_LINKINFO);
        message.put_string(IFLA_INFO_KIND, kind);
        message.end_nest(info);
        send(message, "make a link");
        ASSERT_TRUE(ops_->set_link_flags(index_of(name), IFF_UP, IFF_UP));
    }
    void enslave(std::int32_t ifindex, const std::string& master) {
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        message.append_header(header);
        message.put_u32(IFLA_MASTER, static_cast<std::uint32_t>(index_of(master)));
        send(message, "give a link a master");
    }
    [[nodiscard]] Json policy(const std::string& rules) const {
        const Json one{{"source", "site.yaml"}, {"text", "railbreak_policy: 1\n" + rules}};
        return Json{{"policies", Json::array({one})}};
    }
};

TEST_F(AgentSafety, RevertsAFaultThatItsControllerDoesNotConfirm) {
    const auto before = snapshot();
    auto driver = ready_agent();
    ASSERT_TRUE(driver->call("fault.apply", cap_order(1, "nic0")));
    EXPECT_NE(snapshot(), before);
    // The lease is minutes long, and nobody says another word: only the missing answer can end the fault.
    const auto lifted = driver->wait_for("faults_lifted", kPatience);
    ASSERT_TRUE(lifted);
    EXPECT_THAT(lifted->at("reason"), HasSubstr("did not answer within 2"));
    EXPECT_EQ(lifted->at("error"), "");
    ASSERT_EQ(lifted->at("reverted").size(), 1U);
    const Nanoseconds applied(lifted->at("reverted")[0].at("applied_at").get<std::int64_t>());
    const Nanoseconds restored(lifted->at("reverted")[0].at("restored_at").get<std::int64_t>());
    std::printf("undone %.0f ms after it was in force\n", static_cast<double>((restored - applied).count()) / 1e6);
    expect_as_before(before, 0);
    EXPECT_EQ(driver->end()->code, 0);
}

TEST_F(AgentSafety, KeepsAFaultThatWasConfirmed) {
    const auto before = snapshot();
    auto driver = ready_agent();
    ASSERT_TRUE(driver->call("fault.apply", cap_order(1, "nic0")));
    ASSERT_TRUE(driver->call("fault.confirm", {{"id", 1}}));
    const auto during = snapshot();
    EXPECT_FALSE(driver->wait_for("faults_lifted", std::chrono::seconds(3)));
    EXPECT_EQ(snapshot(), during);
    ASSERT_TRUE(driver->call("fault.revert", {{"id", 1}}));
    expect_as_before(before, 0);
}

TEST_F(AgentSafety, ACallThatTakesLongerThanTheLeaseIsNoSilenceOfTheController) {
    auto driver = agent();
    const auto ready = driver->init("run", std::chrono::seconds(1));
    ASSERT_TRUE(ready) << ready.error().to_line();
    // The agent hears of the guard before it changes anything: so for that long it hears nothing of its controller.
    const pid_t guard = ready->at("guard_pid").get<pid_t>();
    ASSERT_EQ(::kill(guard, SIGSTOP), 0);
    std::thread alarm([guard] {
        ::poll(nullptr, 0, 1'800);
        ::kill(guard, SIGCONT);
    });
    const auto applied = driver->call("fault.apply", cap_order(1, "nic0"));
    alarm.join();
    ASSERT_TRUE(applied) << applied.error().to_line();
    EXPECT_TRUE(driver->call("fault.confirm", {{"id", 1}}));
    const auto reverted = driver->call("fault.revert", {{"id", 1}});
    ASSERT_TRUE(reverted) << reverted.error().to_line();
    EXPECT_EQ(reverted->at("error"), "");
    EXPECT_EQ(driver->end()->code, 0);
}

TEST_F(AgentSafety, EndsAFaultAtThePolicysLongestDuration) {
    const auto before = snapshot();
    auto driver = ready_agent("run", policy("max_duration: 500ms"));
    ASSERT_TRUE(driver->call("fault.apply", cap_order(1, "nic0")));
    ASSERT_TRUE(driver->call("fault.confirm", {{"id", 1}}));
    const auto lifted = driver->wait_for("faults_lifted", kPatience);
    ASSERT_TRUE(lifted);
    EXPECT_THAT(lifted->at("reason"), HasSubstr("site policy"));
    expect_as_before(before, 0);
}

TEST_F(AgentSafety, RefusesDefaultRouteAndWhatItIsMadeOf) {
    ASSERT_NO_FATAL_FAILURE(make_link("br0", "bridge", 0));
    ASSERT_NO_FATAL_FAILURE(enslave(nic1_, "br0"));
    add_route(AF_INET, "", 0, "10.9.0.2", RT_TABLE_MAIN, static_cast<std::uint32_t>(nic_));
    add_route(AF_INET, "", 0, "", 99, static_cast<std::uint32_t>(index_of("br0")));
    auto driver = ready_agent();
    expect_refused(*driver, down_order(1, "nic0"), "nic0 may not be touched: it carries the default route");
    expect_refused(*driver, cap_order(1, "nic1"), "it is a member of br0, which carries the default route");
    expect_refused(*driver, cap_order(1, "lo"), "loopback");
}

TEST_F(AgentSafety, RefusesTheControlInterfaceAndWhatIsBelowIt) {
    ASSERT_NO_FATAL_FAILURE(make_link("mv0", "macvlan", nic1_));
    auto by_nic = ready_agent("run", Json::object(), {"SSH_CONNECTION=10.9.0.2 50000 10.9.0.1 22"});
    expect_refused(*by_nic, cap_order(1, "nic0"), "nic0 may not be touched: it carries the control connection");
    ASSERT_EQ(by_nic->end()->code, 0);

    auto named = ready_agent("run", Json{{"protected_nics", Json::array({"mv0"})}});
    expect_refused(*named, cap_order(1, "nic1"), "it is below mv0, which carries the control connection");
    const auto allowed = named->call("fault.apply", cap_order(1, "nic0"));
    EXPECT_TRUE(allowed) << allowed.error().to_line();
}

TEST_F(AgentSafety, RefusesTheLastPathOnlyToAControllerThatNeedsOne) {
    const std::vector<std::string> by_ssh{"SSH_CONNECTION=192.0.2.7 50000 10.99.0.1 22"};
    NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    ifaddrmsg header{};
    header.ifa_family = AF_INET;
    header.ifa_prefixlen = 32;
    header.ifa_index = 1; // lo: an address that is routed to over any NIC
    message.append_header(header);
    message.put_u32(IFA_LOCAL, htonl(0x0a630001));
    ASSERT_NO_FATAL_FAILURE(send(message, "add an address"));
    auto driver = ready_agent("run", Json::object(), by_ssh);
    ASSERT_TRUE(driver->call("fault.apply", down_order(1, "nic1")));
    ASSERT_TRUE(driver->call("fault.confirm", {{"id", 1}}));
    expect_refused(*driver, down_order(2, "nic0"), "it is the last interface that is up");
    ASSERT_EQ(driver->end()->code, 0);

    auto over_a_pipe = ready_agent();
    const auto before = snapshot();
    ASSERT_TRUE(over_a_pipe->call("fault.apply", down_order(1, "nic1")));
    const auto last = over_a_pipe->call("fault.apply", down_order(2, "nic0"));
    EXPECT_TRUE(last) << last.error().to_line();
    EXPECT_EQ(over_a_pipe->end()->code, 0) << "a route over both NICs comes back after both";
    expect_as_before(before, 0);
}

TEST_F(AgentSafety, UnknownNicsAndThoseOfOtherNamespacesAreBadInput) {
    auto driver = ready_agent();
    for (const char* nic : {"nic7", "peer0", ""}) {
        expect_refused(*driver, cap_order(1, nic), "there is no network interface", ErrorKind::kRefused);
    }
}

TEST_F(AgentSafety, ChecksThePolicyForEveryOrder) {
    auto driver =
        ready_agent("run", policy("kinds: [cap]\nblast_radius: {nics_per_host: 1}\nnever: {nics: [\"h0/nic1\"]}\n"));
    expect_refused(*driver, down_order(1, "nic0"), "site.yaml:2: the site policy does not allow link_down faults");
    expect_refused(*driver, cap_order(1, "nic1"), "site.yaml:4: the site policy never lets nic1");
    ASSERT_NO_FATAL_FAILURE(make_link("nic2", "bridge", 0));
    ASSERT_TRUE(driver->call("fault.apply", cap_order(1, "nic0")));
    expect_refused(*driver, cap_order(2, "nic2"), "site.yaml:3: the site policy allows faults on 1 NICs of a host");
    EXPECT_EQ(driver->end()->code, 0);

    auto lease = agent();
    const auto refused = lease->init("run", kLongLease, policy("max_lease: 10s"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("a lease of 10"));
}

TEST_F(AgentSafety, RefusesASecondControllerAndNamesTheFirst) {
    auto first = ready_agent("first-run");
    auto second = agent();
    const auto refused = second->init("second-run", kLongLease);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("the run first-run"));
    EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(first->child().pid)));
    const auto measures = agent()->init("third-run", kLongLease, Json{{"with_faults", false}});
    EXPECT_TRUE(measures) << "a run without faults disturbs nobody's faults";
    EXPECT_EQ(first->end()->code, 0);
    EXPECT_TRUE(agent()->init("fourth-run", kLongLease));
}

TEST_F(AgentSafety, HaltFileEndsARunAndKeepsOthersFromStarting) {
    const auto before = snapshot();
    auto driver = ready_agent();
    ASSERT_TRUE(driver->call("fault.apply", cap_order(1, "nic0")));
    ASSERT_TRUE(driver->call("fault.confirm", {{"id", 1}}));
    std::ofstream(halt_file(state_folder())) << "smoke in aisle 3\n";
    const auto bye = driver->wait_for("bye", kPatience);
    ASSERT_TRUE(bye);
    EXPECT_EQ(bye->at("reason"), "halted: smoke in aisle 3");
    expect_as_before(before, 0);
    EXPECT_EQ(driver->end()->code, 0);

    const auto refused = agent()->init("run", kLongLease);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("smoke in aisle 3"));
    ASSERT_TRUE(remove_halt_file(state_folder()).value());
    EXPECT_TRUE(agent()->init("run", kLongLease));
}

TEST_F(AgentSafety, SweepFindsByTheirTagsWhatNoJournalKnows) {
    const auto before = snapshot();
    const auto hold = [](FaultKeeper& keeper) {
        FaultRequest cap{.id = 1, .kind = FaultKind::kCap, .nic = "nic0"};
        cap.rate = BitRate::bits_per_s(80'000'000);
        if (keeper.apply(cap)) {
            ::kill(keeper.guard_pid(), SIGKILL);
            ::raise(SIGKILL);
        }
        return false;
    };
    ASSERT_FALSE(run_agent(hold, -1, false));
    ASSERT_NE(snapshot(), before);
    const auto journals = list_journals(folder_);
    ASSERT_TRUE(journals);
    for (const std::string& journal : *journals) {
        std::filesystem::remove(journal); // lost
    }
    const auto seen = sweep(*ops_, SweepScope::kNetwork, false);
    ASSERT_TRUE(seen) << seen.error().to_line();
    EXPECT_THAT(*seen, Not(IsEmpty()));
    EXPECT_NE(snapshot(), before) << "looking changes nothing";
    const auto swept = sweep(*ops_, SweepScope::kNetwork, true);
    ASSERT_TRUE(swept) << swept.error().to_line();
    for (const TaggedObject& object : *swept) {
        EXPECT_TRUE(object.removed) << object.what << ": " << object.error;
        std::printf("swept: %s\n", object.what.c_str());
    }
    expect_as_before(before, 0);
    EXPECT_THAT(sweep(*ops_, SweepScope::kNetwork, true).value(), IsEmpty()) << "a second time there is nothing";
}

} // namespace
} // namespace railbreak::injectors
