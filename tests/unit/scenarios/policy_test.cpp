// Site policies: reading them, and what each of their rules refuses.
#include "scenarios/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/plan.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr WallTime kMondayNight{0, 23 * 60};
constexpr WallTime kMondayNoon{0, 12 * 60};
constexpr WallTime kSundayNoon{6, 12 * 60};

SitePolicy policy(const std::string& rules) {
    Checked<SitePolicy> read = load_policy("railbreak_policy: 1\n" + rules, "site.yaml");
    if (!read) {
        ADD_FAILURE() << read.error().front().to_line();
        return {};
    }
    return std::move(*read);
}

std::string complaint(const std::string& text) {
    const Checked<SitePolicy> read = load_policy(text, "site.yaml");
    return read ? "no error" : read.error().front().to_line();
}

/// The plan of the scenario that uses every key: caps on h3 (rail0) and h2 (rail1), a short link_down on a random host.
Plan full_plan() {
    return *expand(*load(kFull), 1);
}

std::string refusal(const Result<void>& allowed) {
    if (allowed) {
        return "allowed";
    }
    EXPECT_EQ(allowed.error().kind(), ErrorKind::kRefused);
    return allowed.error().message();
}

std::string refusal(const std::string& rules, const WallTime& now = kMondayNoon) {
    return refusal(check_plan(policy(rules), full_plan(), now));
}

TEST(Policy, WithoutRulesAllowsEverything) {
    EXPECT_EQ(refusal(""), "allowed");
    EXPECT_EQ(refusal("description: nothing yet\nblast_radius: {}\nnever: {}\n"), "allowed");
}

TEST(Policy, LimitsHosts) {
    EXPECT_EQ(refusal("blast_radius: {hosts: 3}"), "allowed");
    EXPECT_THAT(refusal("blast_radius:\n  hosts: 2"),
                StartsWith("site.yaml:3: the site policy allows faults on 2 hosts at most at a time, and this plan "
                           "needs 3"));
}

TEST(Policy, LimitsHostsByPerCent) {
    EXPECT_EQ(refusal("blast_radius: {hosts_percent: 38}"), "allowed"); // 3 of 8 are 37.5 %
    EXPECT_THAT(refusal("blast_radius: {hosts_percent: 37}"), HasSubstr("37 % of the hosts"));
}

TEST(Policy, LimitsNicsOfAHost) {
    Plan plan = full_plan();
    EXPECT_EQ(refusal(check_plan(policy("blast_radius: {nics_per_host: 1}"), plan, kMondayNoon)), "allowed");
    plan.faults[1].host = plan.faults[0].host;
    EXPECT_THAT(refusal(check_plan(policy("blast_radius: {nics_per_host: 1}"), plan, kMondayNoon)),
                HasSubstr("1 NICs of a host at most"));
}

TEST(Policy, LimitsRanksAndCountsAllOfAHostWithABrokenNic) {
    EXPECT_EQ(refusal("blast_radius: {ranks: 6}"), "allowed");
    EXPECT_THAT(refusal("blast_radius: {ranks: 5}"), HasSubstr("this plan needs 6"));
    Plan plan = full_plan();
    for (PlannedFault& fault : plan.faults) {
        fault.kind = FaultKind::kPause;
    }
    EXPECT_EQ(refusal(check_plan(policy("blast_radius: {ranks: 3}"), plan, kMondayNoon)), "allowed");
}

TEST(Policy, CountsWhatFaultsActOnAtTheSameTime) {
    Plan plan = full_plan(); // two faults of the whole phase, one in iteration 2
    const auto with_hosts = [&](const char* hosts) {
        return refusal(check_plan(policy(std::string("blast_radius: {hosts: ") + hosts + "}"), plan, kMondayNoon));
    };
    PlannedFault& first = plan.faults[0];
    PlannedFault& blink = plan.faults[2];
    first.at_iteration = 1;
    first.duration = std::chrono::milliseconds(10);
    EXPECT_EQ(with_hosts("2"), "allowed") << "one after the other";
    EXPECT_THAT(with_hosts("1"), HasSubstr("needs 2"));
    first.at_iteration = blink.at_iteration;
    first.offset = blink.offset + std::chrono::seconds(10);
    EXPECT_THAT(with_hosts("2"), HasSubstr("needs 3")) << "in one iteration a host may be late";
    first.at_iteration = 1;
    first.kind = FaultKind::kKill;
    first.duration.reset();
    EXPECT_THAT(with_hosts("2"), HasSubstr("needs 3")) << "a killed rank stays away";
    first.at_iteration = *blink.at_iteration + 1;
    EXPECT_EQ(with_hosts("2"), "allowed");
    first.at_iteration.reset();
    first.kind = FaultKind::kLoss; // of probability 0
    EXPECT_EQ(with_hosts("2"), "allowed") << "it is never made";
}

TEST(Policy, AllowsKindsByName) {
    EXPECT_EQ(refusal("kinds: [cap, link_down]"), "allowed");
    EXPECT_THAT(refusal("kinds: [cap]"), HasSubstr("does not allow link_down faults; allowed: cap"));
    EXPECT_THAT(refusal("kinds: []"), HasSubstr("does not allow cap faults"));
}

TEST(Policy, AllowsHoursOfTheNight) {
    EXPECT_EQ(refusal("hours: [\"22:00-06:00\"]", kMondayNight), "allowed");
    EXPECT_THAT(refusal("hours: [\"22:00-06:00\"]", kMondayNoon), HasSubstr("now (Monday 12:00 local time)"));
    EXPECT_EQ(refusal("hours: [\"22:00-06:00\", \"sat-sun 00:00-24:00\"]", kSundayNoon), "allowed");
    EXPECT_THAT(refusal("hours: []", kSundayNoon), HasSubstr("does not allow faults now"));
}

TEST(Policy, CountsAWindowPastMidnightToTheDayItBeganOn) {
    const HourWindow friday_night = policy("hours: [\"fri 22:00-06:00\"]").hours->value.at(0);
    EXPECT_FALSE(contains(friday_night, {4, 5 * 60}));
    EXPECT_FALSE(contains(friday_night, {4, 21 * 60 + 59}));
    EXPECT_TRUE(contains(friday_night, {4, 22 * 60}));
    EXPECT_TRUE(contains(friday_night, {5, 5 * 60 + 59}));
    EXPECT_FALSE(contains(friday_night, {5, 6 * 60}));
    const HourWindow around = policy("hours: [\"sat-mon,wed 00:00-24:00\"]").hours->value.at(0);
    for (const int day : {5, 6, 0, 2}) {
        EXPECT_TRUE(contains(around, {day, 0}) && contains(around, {day, 1439})) << day;
    }
    for (const int day : {1, 3, 4}) {
        EXPECT_FALSE(contains(around, {day, 600})) << day;
    }
}

TEST(Policy, LimitsDurationAndLease) {
    EXPECT_EQ(refusal("max_duration: 300ms\nmax_lease: 15s"), "allowed");
    EXPECT_THAT(refusal("max_duration: 299ms"), HasSubstr("fault \"blink\" lasts 300"));
    EXPECT_THAT(refusal("max_lease: 14s"), HasSubstr("a lease of 14"));
}

TEST(Policy, NeverTouchesHostsAndNics) {
    EXPECT_THAT(refusal("never:\n  hosts: [login*, h3]"),
                StartsWith("site.yaml:3: the site policy never lets host h3"));
    EXPECT_THAT(refusal("never: {nics: [\"rail[1-9]\"]}"), HasSubstr("never lets rail1 of host h2 be touched"));
    EXPECT_THAT(refusal("never: {nics: [h3/rail0]}"), HasSubstr("never lets rail0 of host h3"));
    EXPECT_EQ(refusal("never: {hosts: [h33, login1], nics: [h2/rail0, h3/rail1, mgmt*]}"), "allowed");
}

TEST(Policy, LetsPlansWithoutFaultsPass) {
    Plan plan = full_plan();
    plan.faults.clear();
    EXPECT_EQ(
        refusal(check_plan(policy("blast_radius: {hosts: 0}\nkinds: []\nhours: []\nmax_lease: 1s"), plan, kMondayNoon)),
        "allowed");
}

TEST(Policy, IsCheckedAgainForEveryOrder) {
    const SitePolicy site = policy("kinds: [cap]\nhours: [\"22:00-06:00\"]\nblast_radius: {nics_per_host: 2}\n"
                                   "never: {hosts: [h1], nics: [mgmt0]}\n");
    PolicyOrder order{"cap", "h2", {"rail0"}, {"rail0", "rail1"}};
    EXPECT_EQ(refusal(check_order(site, order, kMondayNight)), "allowed");
    EXPECT_THAT(refusal(check_order(site, order, kMondayNoon)), HasSubstr("now"));
    order.nics = {"rail2"};
    EXPECT_THAT(refusal(check_order(site, order, kMondayNight)), HasSubstr("2 NICs of a host"));
    order.nics = {"mgmt0"};
    EXPECT_THAT(refusal(check_order(site, order, kMondayNight)), HasSubstr("mgmt0"));
    EXPECT_THAT(refusal(check_order(site, {"cap", "h1", {"rail0"}, {}}, kMondayNight)), HasSubstr("host h1"));
    EXPECT_THAT(refusal(check_order(site, {"kill", "h2", {}, {}}, kMondayNight)), HasSubstr("kill"));
}

TEST(Policy, SaysWhatIsWrongWithTheFileAndWhere) {
    const std::string head = "railbreak_policy: 1\n";
    EXPECT_THAT(complaint("kinds: [cap]\n"), HasSubstr("key \"railbreak_policy\" is missing"));
    EXPECT_THAT(complaint("railbreak_policy: 2\n"), HasSubstr("policy version \"2\" is not supported"));
    EXPECT_THAT(complaint(head + "blast_radus: {}\n"),
                StartsWith("site.yaml:2:1: unknown key \"blast_radus\" at the top; did you mean \"blast_radius\"?"));
    EXPECT_THAT(complaint(head + "blast_radius: {hosts: many}\n"), StartsWith("site.yaml:2:23: blast_radius.hosts"));
    EXPECT_THAT(complaint(head + "blast_radius: {hosts_percent: 101}\n"), HasSubstr("0 to 100"));
    EXPECT_THAT(complaint(head + "kinds: [cap, linkdown]\n"), StartsWith("site.yaml:2:14: kinds[1]: unknown value"));
    EXPECT_THAT(complaint(head + "max_duration: 10\n"), StartsWith("site.yaml:2:15: "));
    EXPECT_THAT(complaint(head + "never: {nics: [\"\"]}\n"), HasSubstr("is empty"));
    for (const char* hours : {"22-06", "22:00", "25:00-26:00", "24:00-06:00", "10:00-10:00", "10:60-11:00",
                              "noday 10:00-11:00", "mon- 10:00-11:00", "-1:00-02:00", "10:00-11:00 mon", ""}) {
        EXPECT_THAT(complaint(head + "hours: [\"" + hours + "\"]\n"), HasSubstr("is no span of hours")) << hours;
    }
    EXPECT_THAT(complaint("- a\n"), StartsWith("site.yaml:1:1: "));
    EXPECT_THAT(complaint(head + "kinds: &all [cap]\n"), StartsWith("site.yaml:2:"));
    EXPECT_THAT(load_policy_file("/nonexistent/policy.yaml").error().front().to_line(),
                HasSubstr("give the path of a policy file"));
}

TEST(Policy, OfTheDocumentationIsOne) {
    const auto example = load_policy_file((source_dir() / "docs" / "examples" / "policy.yaml").string());
    ASSERT_TRUE(example) << example.error().front().to_line();
    EXPECT_TRUE(example->hosts && example->hosts_percent && example->nics_per_host && example->ranks &&
                example->kinds && example->hours && example->max_duration && example->max_lease);
    EXPECT_FALSE(example->never_hosts.empty() || example->never_nics.empty());
}

} // namespace
} // namespace railbreak::scenarios::testing
