// `railbreak doctor` in a lab's host, beside a default route, and without any privilege: different answers, each true.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

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
            run_railbreak(home(), {"lab", "exec", "doctored", "h0", "--", RAILBREAK_BINARY, "--json", "doctor"});
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

    TemporaryFolder folder_;
};

TEST_F(Doctor, TellsForAHostOfTheLabHowEachFaultWouldBeMade) {
    const Finished up = run_railbreak(home(), {"lab", "up", "doctored", "--hosts", "2", "--nics", "2"});
    if (up.status.code == 3) {
        GTEST_SKIP() << "no lab here: " << up.err;
    }
    ASSERT_EQ(up.status.code, 0) << up.err;
    const json report = ask_in_lab();
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", "doctored"}).status.code, 0);
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
    const Finished up = run_railbreak(home(), {"lab", "up", "doctored", "--hosts", "2"});
    if (up.status.code == 3) {
        GTEST_SKIP() << "no lab here: " << up.err;
    }
    const json first = ask_in_lab();
    const json second = ask_in_lab();
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", "doctored"}).status.code, 0);
    EXPECT_EQ(first, second);
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
