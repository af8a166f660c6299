// `railbreak run --dry-run`: says what would be changed and how it would be undone, and changes and records nothing.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class DryRun : public ::testing::Test {
protected:
    void SetUp() override {
        const Finished probe = run_railbreak(home(), {"lab", "up", "probe", "--hosts", "2"});
        if (probe.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << probe.err;
        }
        ASSERT_EQ(run_railbreak(home(), {"lab", "down", "probe"}).status.code, 0);
    }

    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }
    [[nodiscard]] std::string scenario(const std::string& faults) const {
        const std::string path = (home() / "dry.yaml").string();
        std::ofstream(path) << "railbreak: 1\nname: dry\ncluster: {hosts: 3, rate: 200Mbit/s}\n"
                               "workload: {collective: allreduce, bytes: 1MiB, algorithms: [ring]}\nfaults:\n"
                            << faults;
        return path;
    }

    TemporaryFolder folder_;
};

TEST_F(DryRun, TellsChangesAndUndoHostByHostAndRecordsNothing) {
    const Finished asked = run_railbreak(
        home(), {"run", "--dry-run",
                 scenario("  - {name: half, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n"
                          "  - {name: blink, kind: link_down, target: {host: 2}, at: {iteration: 1}, for: 100ms}\n")});
    EXPECT_EQ(asked.status.code, 0) << asked.err;
    EXPECT_THAT(asked.out, HasSubstr("h1\n  half (cap) during the degraded phase"));
    EXPECT_THAT(asked.out, HasSubstr("do    rail0: htb class fb01:1 from 200 Mbit/s to 100 Mbit/s"));
    EXPECT_THAT(asked.out, HasSubstr("undo  rail0: htb class fb01:1 back to 200 Mbit/s"));
    EXPECT_THAT(asked.out, HasSubstr("h2\n  blink (link_down) at the start of degraded iteration 1, for 100 ms"));
    EXPECT_FALSE(std::filesystem::exists(home() / "runs.db"));
    EXPECT_TRUE(wait_until_none(home(), std::chrono::seconds(10)).empty());
}

TEST_F(DryRun, ALabsNicHasNoSecondSpeed) {
    const Finished asked = run_railbreak(
        home(), {"run", "--dry-run",
                 scenario("  - {name: half, kind: cap, target: {host: 1}, rate: 100Mbit/s, mechanism: link_modes, "
                          "during: degraded}\n")});
    EXPECT_EQ(asked.status.code, 3) << asked.err;
    EXPECT_THAT(asked.out, HasSubstr("rail0 cannot change its speed: it is no hardware (veth)"));
    const std::string both =
        "  - {name: out, kind: link_down, target: {host: 1}, mechanism: pci_remove, at: {iteration: 1}, for: 50ms}\n"
        "  - {name: slow, kind: cap, target: {host: 2}, rate: 50Mbit/s, direction: send, mechanism: dcb_class_rate, "
        "during: degraded}\n";
    const Finished others = run_railbreak(home(), {"run", "--dry-run", scenario(both)});
    EXPECT_EQ(others.status.code, 3) << others.err;
    EXPECT_THAT(others.out, HasSubstr("rail0 is no hardware (veth)"));
    EXPECT_THAT(others.out, HasSubstr("rail0: the driver has no rate limit per traffic class"));
}

TEST_F(DryRun, IsJsonOnDemand) {
    const Finished asked = run_railbreak(
        home(), {"--json", "run", "--dry-run",
                 scenario("  - {name: half, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n")});
    ASSERT_EQ(asked.status.code, 0) << asked.err;
    const json forecast = json::parse(asked.out, nullptr, false);
    ASSERT_TRUE(forecast.is_object()) << asked.out;
    EXPECT_EQ(forecast.at("schema"), "railbreak-forecast");
    EXPECT_TRUE(forecast.at("possible"));
    ASSERT_EQ(forecast.at("faults").size(), 1U);
    EXPECT_EQ(forecast.at("faults").at(0).at("host"), 1);
    EXPECT_FALSE(forecast.at("faults").at(0).at("changes").empty());
    EXPECT_FALSE(forecast.at("faults").at(0).at("undo").empty());
}

} // namespace
} // namespace railbreak::tests
