// `railbreak doctor` in a lab's host, beside a default route, and without any privilege: different answers, each true.
// And the hosts of a lab all at once.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/controller/survey_hosts.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Doctor : public ::testing::Test {
protected:
    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }

    [[nodiscard]] json ask_in_lab() {
        const Finished asked =
            run_railbreak(home(), {"lab", "exec", lab_, "h0", "--", RAILBREAK_BINARY, "--json", "doctor"});
        EXPECT_EQ(asked.status.code, 0) << asked.err;
        json report = json::parse(asked.out, nullptr, false);
        EXPECT_TRUE(report.is_object()) << asked.out;
        return report;
    }

    /// The answer for one kind of fault on the NIC of that name.
    [[nodiscard]] static json answer(const json& report, const std::string& nic, const std::string& kind) {
        for (const json& each : report.at("nics")) {
            for (const json& fault : each.at("faults")) {
                if (each.at("name") == nic && fault.at("kind") == kind) {
                    return fault;
                }
            }
        }
        ADD_FAILURE() << "no answer for " << kind << " on " << nic;
        return json{{"possible", false}, {"mechanism", ""}, {"reason", ""}};
    }

    /// Builds the lab; false, after a skip, where there can be none.
    [[nodiscard]] bool bring_up(const std::string& hosts) {
        const Finished up = run_railbreak(home(), {"lab", "up", lab_, "--hosts", hosts});
        if (up.status.code == 3) {
            return false;
        }
        EXPECT_EQ(up.status.code, 0) << up.err;
        return up.status.code == 0;
    }
    void take_down() { EXPECT_EQ(run_railbreak(home(), {"lab", "down", lab_}).status.code, 0); }
    [[nodiscard]] Finished ask_hosts(const std::string& hosts, const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{"--json", "doctor", "--hosts", hosts};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_railbreak(home(), arguments);
    }

    TemporaryFolder folder_;
    /// Labs of other state folders are found by their keepers, and may be up beside this one.
    const std::string lab_ = "doctored-" + std::to_string(getpid());
};

TEST_F(Doctor, TellsForAHostOfTheLabHowEachFaultWouldBeMade) {
    const Finished up = run_railbreak(home(), {"lab", "up", lab_, "--hosts", "2", "--nics", "2"});
    if (up.status.code == 3) {
        GTEST_SKIP() << "no lab here: " << up.err;
    }
    ASSERT_EQ(up.status.code, 0) << up.err;
    const json report = ask_in_lab();
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", lab_}).status.code, 0);
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report.at("schema"), "railbreak-doctor");
    EXPECT_EQ(report.at("nics").size(), 2U);
    const json cap = answer(report, "rail0", "cap");
    EXPECT_TRUE(cap.at("possible"));
    EXPECT_THAT(cap.at("mechanism").get<std::string>(), HasSubstr("htb class rate in place"));
    EXPECT_TRUE(answer(report, "rail1", "link_down").at("possible"));
    // Whatever this kernel lacks: a fault has a mechanism or a reason, never neither and never both.
    for (const json& nic : report.at("nics")) {
        for (const json& fault : nic.at("faults")) {
            EXPECT_EQ(fault.at("possible").get<bool>(), fault.at("reason").get<std::string>().empty());
            EXPECT_EQ(fault.at("possible").get<bool>(), !fault.at("mechanism").get<std::string>().empty());
        }
    }
    const bool netem = report.at("kernel_features").at("netem").at("present");
    EXPECT_EQ(answer(report, "rail0", "delay").at("possible").get<bool>(), netem);
}

TEST_F(Doctor, ChangesNothing) {
    const Finished up = run_railbreak(home(), {"lab", "up", lab_, "--hosts", "2"});
    if (up.status.code == 3) {
        GTEST_SKIP() << "no lab here: " << up.err;
    }
    const json first = ask_in_lab();
    const json second = ask_in_lab();
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", lab_}).status.code, 0);
    EXPECT_EQ(first, second);
}

TEST_F(Doctor, AsksHostsAllAtOnceAndGroupsThoseThatAnswerTheSame) {
    if (!bring_up("3")) {
        GTEST_SKIP() << "no lab here";
    }
    const json alone = ask_in_lab();
    EXPECT_EQ(
        run_railbreak(home(), {"lab", "exec", lab_, "h1", "--", "/sbin/ip", "link", "set", "rail0", "mtu", "1400"})
            .status.code,
        0);
    const Finished asked = ask_hosts(lab_);
    const Finished everywhere = ask_hosts("all");
    const Finished two = ask_hosts(lab_ + ":h2,h0");
    const Finished text = run_railbreak(home(), {"doctor", "--hosts", lab_});
    take_down();
    ASSERT_EQ(asked.status.code, 0) << asked.err;
    const json report = json::parse(asked.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << asked.out;
    EXPECT_EQ(report.at("schema"), "railbreak-doctor-hosts");
    EXPECT_EQ(report.at("groups"),
              json::array({json::array({lab_ + ":h0", lab_ + ":h2"}), json::array({lab_ + ":h1"})}));
    ASSERT_EQ(report.at("hosts").size(), 3U);
    EXPECT_EQ(report.at("hosts").at(0).at("survey"), alone); // over an agent as when asked itself
    EXPECT_EQ(report.at("hosts").at(1).at("survey").at("nics").at(0).at("mtu_bytes"), 1400);
    // "all" are those of every lab of this user, and others may be up beside this one.
    const json all = json::parse(everywhere.out, nullptr, false);
    ASSERT_TRUE(all.is_object()) << everywhere.out << everywhere.err;
    json ours = json::array();
    for (const json& host : all.at("hosts")) {
        if (host.at("name").get<std::string>().starts_with(lab_ + ":")) {
            ours.push_back(host);
        }
    }
    EXPECT_EQ(ours, report.at("hosts"));
    EXPECT_EQ(json::parse(two.out, nullptr, false).at("groups"),
              json::array({json::array({lab_ + ":h2", lab_ + ":h0"})}));
    EXPECT_THAT(text.out, HasSubstr(lab_ + ":h0,h2 (the same on all 2): "));
    EXPECT_THAT(text.out, HasSubstr("\n" + lab_ + ":h1: "));
}

TEST_F(Doctor, NamesTheLabsAndHostsThatThereAre) {
    const bool alone = run_railbreak(home(), {"lab", "list"}).out.empty(); // others may be up, of other state folders
    const Finished none = ask_hosts("all");
    if (alone) {
        EXPECT_EQ(none.status.code, 64);
        EXPECT_THAT(none.err, HasSubstr("no lab is up; make one with: railbreak lab up NAME"));
    }
    if (!bring_up("2")) {
        GTEST_SKIP() << "no lab here";
    }
    const Finished lab = ask_hosts("doctor");
    const Finished host = ask_hosts(lab_ + ":h0,h7");
    const Finished nameless = ask_hosts(lab_ + ":");
    take_down();
    EXPECT_EQ(lab.status.code, 64);
    EXPECT_THAT(lab.err, AllOf(HasSubstr("there is no lab doctor up; labs that are up: "), HasSubstr(lab_)));
    EXPECT_EQ(host.status.code, 64);
    EXPECT_THAT(host.err, HasSubstr("the lab " + lab_ + " has no host \"h7\"; its hosts are h0, h1"));
    EXPECT_EQ(nameless.status.code, 64);
}

TEST_F(Doctor, SaysWhichHostsGiveNoAnswerAndWhatTheOthersSay) {
    if (!bring_up("2")) {
        GTEST_SKIP() << "no lab here";
    }
    const auto over = [&](const std::string& host) {
        return std::vector<std::string>{"/usr/bin/env",
                                        "RAILBREAK_STATE_DIR=" + (home() / "state").string(),
                                        RAILBREAK_BINARY,
                                        "lab",
                                        "exec",
                                        lab_,
                                        host,
                                        "--",
                                        RAILBREAK_BINARY,
                                        "agent",
                                        "--stdio"};
    };
    const auto answers = controller::survey_hosts({{"there", over("h1")},
                                                   {"silent", {"/usr/bin/sleep", "100"}},
                                                   {"nowhere", {"/no/such/program"}},
                                                   {"refused", over("h9")}},
                                                  {}, std::chrono::seconds(6));
    const Finished late = ask_hosts(lab_, {"--timeout", "1us"});
    take_down();
    ASSERT_TRUE(answers.has_value()) << answers.error().to_line();
    ASSERT_EQ(answers->size(), 4U);
    ASSERT_TRUE(answers->at(0).survey.has_value()) << answers->at(0).survey.error().to_line();
    EXPECT_EQ(answers->at(0).survey->survey.nics.size(), 1U);
    ASSERT_FALSE(answers->at(1).survey.has_value());
    EXPECT_EQ(answers->at(1).survey.error().message(), "no answer within 6 s");
    ASSERT_FALSE(answers->at(2).survey.has_value());
    ASSERT_FALSE(answers->at(3).survey.has_value());
    EXPECT_THAT(answers->at(3).survey.error().to_line(), HasSubstr("the lab " + lab_ + " has no host h9"));
    EXPECT_EQ(late.status.code, 4);
    EXPECT_THAT(late.err, HasSubstr("2 of 2 hosts gave no answer: " + lab_ + ":h0, " + lab_ + ":h1"));
    const json report = json::parse(late.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << late.out;
    EXPECT_FALSE(report.at("hosts").at(0).at("answered"));
    EXPECT_EQ(report.at("hosts").at(0).at("error").at("message"), "no answer within 1 us");
}

TEST_F(Doctor, SaysWhichHostsCanMakeAScenariosKindsOfFault) {
    if (!bring_up("2")) {
        GTEST_SKIP() << "no lab here";
    }
    const std::filesystem::path catalog = std::filesystem::path(RAILBREAK_SOURCE) / "scenarios" / "catalog";
    const Finished flap = ask_hosts(lab_, {"--scenario", catalog / "flap.yaml"});
    const Finished late = ask_hosts(lab_, {"--scenario", catalog / "late-rank.yaml", "--protect", "rail0"});
    const Finished guarded = ask_hosts(lab_, {"--scenario", catalog / "flap.yaml", "--protect", "rail0"});
    take_down();
    EXPECT_EQ(flap.status.code, 0) << flap.err;
    EXPECT_EQ(late.status.code, 0) << late.err; // a protected NIC keeps no rank from being late
    EXPECT_EQ(guarded.status.code, 3);
    EXPECT_THAT(guarded.err, HasSubstr("flap cannot be made on every host"));
    const json report = json::parse(guarded.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << guarded.out;
    const json kind = report.at("scenario").at("kinds").at(0);
    EXPECT_EQ(kind.at("kind"), "flap");
    EXPECT_EQ(kind.at("hosts").at(1).at("host"), lab_ + ":h1");
    EXPECT_FALSE(kind.at("hosts").at(1).at("possible"));
    EXPECT_THAT(kind.at("hosts").at(1).at("targets").at(0).at("reason").get<std::string>(), HasSubstr("rail0"));
}

TEST_F(Doctor, TellsAUserWithoutPrivilegesWhy) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "needs root, to become a user without privileges";
    }
    Result<launch::Child> child =
        launch::spawn({.argv = {"/usr/bin/setpriv", "--reuid=4242", "--regid=4242", "--clear-groups", "--inh-caps=-all",
                                "--bounding-set=-all", RAILBREAK_BINARY, "--json", "doctor"}});
    ASSERT_TRUE(child.has_value()) << child.error().to_line();
    std::string out;
    char part[4096];
    for (ssize_t size = 1; size > 0;) {
        size = read(child->stdout_fd.get(), part, sizeof part);
        out.append(part, size > 0 ? static_cast<std::size_t>(size) : 0);
    }
    const std::optional<launch::ExitStatus> status =
        launch::wait_for(*child, Deadline::after(std::chrono::seconds(20)));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(status->code, 3);
    const json report = json::parse(out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << out;
    EXPECT_EQ(report.at("uid"), 4242);
    EXPECT_TRUE(report.at("capabilities").empty());
    EXPECT_FALSE(report.at("kernel_not_tried").get<std::string>().empty());
    for (const json& nic : report.at("nics")) {
        for (const json& fault : nic.at("faults")) {
            EXPECT_FALSE(fault.at("possible")) << fault;
        }
    }
}

} // namespace
} // namespace railbreak::tests
