#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/limits.hpp"
#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using testing::algorithms;
using testing::errors_of;
using ::testing::HasSubstr;
using testing::kFull;
using testing::load;
using testing::with;

TEST(LoadScenario, ReadsEveryKey) {
    const auto result = load(kFull);
    ASSERT_TRUE(result) << errors_of(result);
    const Scenario& scenario = *result;
    EXPECT_EQ(scenario.version, 1);
    EXPECT_EQ(scenario.name, "full");
    EXPECT_EQ(scenario.description, "uses every key");
    EXPECT_EQ(scenario.cluster.hosts, 8);
    EXPECT_EQ(scenario.cluster.ranks_per_host, 2);
    EXPECT_EQ(scenario.cluster.ranks(), 16);
    EXPECT_EQ(scenario.cluster.nics_per_host, 2);
    EXPECT_EQ(scenario.cluster.local_rate, BitRate::bits_per_s(2'000'000'000));
    EXPECT_EQ(scenario.cluster.rate.bits_per_s(), 500'000'000U);
    EXPECT_EQ(scenario.cluster.mtu_bytes, 9000);
    EXPECT_EQ(scenario.workload.bytes.bytes(), 33'554'432U);
    EXPECT_EQ(scenario.workload.dtype, Dtype::kFloat32);
    EXPECT_THAT(scenario.workload.labels(), ::testing::ElementsAre("ring", "optcc"));
    EXPECT_EQ(scenario.workload.iterations.warmup, 1);
    EXPECT_EQ(scenario.workload.iterations.steady, 4);
    EXPECT_EQ(scenario.workload.iterations.degraded, 5);
    EXPECT_EQ(scenario.workload.iterations.recovered, 6);
    EXPECT_EQ(scenario.workload.iteration_timeout, std::chrono::seconds(20));
    EXPECT_EQ(scenario.lease, std::chrono::seconds(15));
    EXPECT_EQ(scenario.source_text, kFull);
    EXPECT_EQ(scenario.source_name, "test.yaml");
}

TEST(LoadScenario, ReadsFaultsAndExpectations) {
    const auto result = load(kFull);
    ASSERT_TRUE(result) << errors_of(result);
    ASSERT_EQ(result->faults.size(), 3U);
    const FaultSpec& cap = result->faults[0];
    EXPECT_EQ(cap.name, "half-rate");
    EXPECT_EQ(cap.kind, FaultKind::kCap);
    EXPECT_EQ(cap.target.host, 3);
    EXPECT_EQ(cap.direction, Direction::kSend);
    EXPECT_EQ(cap.rate, BitRate::bits_per_s(250'000'000));
    EXPECT_FALSE(cap.fraction);
    EXPECT_FALSE(cap.at_iteration);
    EXPECT_EQ(result->faults[1].target.nic, 1);
    EXPECT_EQ(result->faults[1].direction, Direction::kBoth);
    EXPECT_EQ(result->faults[1].fraction, Rational(1, 3));
    const FaultSpec& blink = result->faults[2];
    EXPECT_EQ(blink.kind, FaultKind::kLinkDown);
    EXPECT_FALSE(blink.target.host);
    EXPECT_EQ(blink.target.nic, 0);
    EXPECT_EQ(blink.at_iteration, 2);
    EXPECT_EQ(blink.offset, std::chrono::milliseconds(200));
    EXPECT_EQ(blink.duration, std::chrono::milliseconds(300));
    ASSERT_EQ(result->expectations.size(), 2U);
    EXPECT_EQ(result->expectations[0].algorithm, "optcc");
    EXPECT_EQ(result->expectations[0].metric, Metric::kOverheadExclusive);
    EXPECT_FALSE(result->expectations[0].min);
    EXPECT_EQ(result->expectations[0].max, 1.10);
    EXPECT_FALSE(result->expectations[1].algorithm);
    EXPECT_EQ(result->expectations[1].phase, Phase::kRecovered);
    EXPECT_EQ(result->expectations[1].min, 0.97);
}

TEST(LoadScenario, FillsInDefaults) {
    const auto result = load("railbreak: 1\nname: x\ncluster: {hosts: 2, rate: 1Gbit/s}\n"
                             "workload: {collective: allreduce, bytes: 4B, algorithms: [ring]}\n");
    ASSERT_TRUE(result) << errors_of(result);
    EXPECT_EQ(result->cluster.ranks_per_host, 1);
    EXPECT_EQ(result->cluster.nics_per_host, 1);
    EXPECT_EQ(result->cluster.local_rate, BitRate{});
    EXPECT_EQ(result->cluster.mtu_bytes, 1500);
    EXPECT_EQ(result->workload.dtype, Dtype::kFloat32);
    EXPECT_EQ(result->workload.iterations.warmup, 1);
    EXPECT_EQ(result->workload.iterations.steady, 3);
    EXPECT_EQ(result->workload.iteration_timeout, kDefaultIterationTimeout);
    EXPECT_EQ(result->lease, kDefaultLease);
    EXPECT_TRUE(result->faults.empty());
    EXPECT_TRUE(result->expectations.empty());
}

TEST(LoadScenario, TakesTextAsWritten) {
    // Other readers see false, 8 and null here.
    const auto result = load(with(kFull, "name: half-rate", "name: no"));
    ASSERT_TRUE(result) << errors_of(result);
    EXPECT_EQ(result->faults[0].name, "no");
    const auto octal = load(with(kFull, "name: half-rate", "name: 010"));
    ASSERT_TRUE(octal) << errors_of(octal);
    EXPECT_EQ(octal->faults[0].name, "010");
}

TEST(LoadScenario, AcceptsByteOrderMarkAndCarriageReturns) {
    std::string text = "\xef\xbb\xbf";
    for (const char c : kFull) {
        text += c == '\n' ? "\r\n" : std::string(1, c);
    }
    const auto result = load(text);
    EXPECT_TRUE(result) << errors_of(result);
}

TEST(LoadScenario, AllowsVectorsSmallerThanTheNumberOfRanks) {
    const auto result = load(with(kFull, "bytes: 32MiB", "bytes: 8B"));
    EXPECT_TRUE(result) << errors_of(result);
}

TEST(LoadScenario, AllowsFaultsThatCompose) {
    const auto caps = load(with(kFull, "target: {host: 2, nic: 1}", "target: {host: 3, nic: 0}"));
    EXPECT_TRUE(caps) << errors_of(caps);
    const auto cap_and_down = load(with(kFull, "host: random", "host: 3"));
    EXPECT_TRUE(cap_and_down) << errors_of(cap_and_down);
}

TEST(LoadScenario, CountsColumnsInCharacters) {
    const auto result = load(with(kFull, "{hosts: 8, ", "{\"h\xc3\xb6sts\": 8, hosts: no, "));
    ASSERT_FALSE(result);
    EXPECT_THAT(errors_of(result), HasSubstr("test.yaml:4:11: unknown key \"h\xc3\xb6sts\""));
    EXPECT_THAT(errors_of(result), HasSubstr("test.yaml:4:30: cluster.hosts: \"no\" is not a whole number"));
}

TEST(LoadScenario, ReportsAllErrorsInTheOrderOfTheFile) {
    std::string text = with(kFull, "lease: 15s", "lease: 15");
    text = with(text, "hosts: 8", "hosts: 80");
    text = with(text, "max: 1.03", "max: nan");
    const auto result = load(text);
    ASSERT_FALSE(result);
    ASSERT_EQ(result.error().size(), 3U);
    EXPECT_EQ(result.error()[0].at, (Position{4, 18}));
    EXPECT_EQ(result.error()[1].at.line, 12);
    EXPECT_EQ(result.error()[2].at.line, 32);
    EXPECT_THAT(to_error(result.error()).to_line(), HasSubstr("(and 2 more)"));
    EXPECT_EQ(to_error(result.error()).kind(), ErrorKind::kInput);
}

TEST(LoadScenario, StopsAfterTwentyErrors) {
    std::string text(kFull);
    for (int i = 0; i < 1000; ++i) {
        text += "key" + std::to_string(i) + ": 1\n";
    }
    const auto result = load(text);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().size(), DiagnosticSink::kLimit);
}

/// A directory that goes away with the test.
class LoadScenarioFile : public ::testing::Test {
protected:
    LoadScenarioFile() {
        std::string pattern = (std::filesystem::temp_directory_path() / "railbreak-scenarios-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
            throw std::runtime_error("mkdtemp failed");
        }
        dir_ = pattern;
    }
    ~LoadScenarioFile() override { std::filesystem::remove_all(dir_); }

    std::string write(std::string_view name, std::string_view text) {
        const std::filesystem::path path = dir_ / name;
        std::ofstream(path, std::ios::binary) << text;
        return path.string();
    }

    std::filesystem::path dir_;
};

TEST_F(LoadScenarioFile, ReadsAFile) {
    const auto result = load_scenario_file(write("a.yaml", kFull), algorithms());
    ASSERT_TRUE(result) << errors_of(result);
    EXPECT_EQ(result->name, "full");
}

TEST_F(LoadScenarioFile, RefusesWhatIsNoFile) {
    const std::string missing = (dir_ / "missing.yaml").string();
    EXPECT_EQ(errors_of(load_scenario_file(missing, algorithms())),
              missing + ":1:1: cannot read the file: No such file or directory; "
                        "give the path of a scenario file that you may read\n");
    EXPECT_EQ(errors_of(load_scenario_file(dir_.string(), algorithms())),
              dir_.string() + ":1:1: is a directory; give the path of a scenario file\n");
    const std::string fifo = (dir_ / "fifo").string();
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(errors_of(load_scenario_file(fifo, algorithms())),
              fifo + ":1:1: is not a regular file; give the path of a scenario file\n");
}

TEST_F(LoadScenarioFile, ReportsAReadThatFails) {
    // Opens like a regular file, but nothing is mapped at address 0.
    EXPECT_THAT(errors_of(load_scenario_file("/proc/self/mem", algorithms())),
                HasSubstr("/proc/self/mem:1:1: cannot read the file: Input/output error"));
}

TEST_F(LoadScenarioFile, RefusesLargeFilesBeforeParsing) {
    const std::string path = write("large.yaml", std::string(10'000'000, '['));
    EXPECT_EQ(errors_of(load_scenario_file(path, algorithms())),
              path + ":1:1: the file is larger than 1048576 bytes; a scenario is a few kilobytes of text\n");
}

TEST(Algorithms, MayHaveOptionsAndALabel) {
    const auto result = load(with(kFull, "[ring, optcc]",
                                  "[{name: ring}, {name: optcc, k: 4, plan: bs}, {name: optcc, k: 8, as: eight}, "
                                  "{name: ring, as: again}, optcc]"));
    ASSERT_TRUE(result) << errors_of(result);
    using Options = std::vector<std::pair<std::string, std::string>>;
    const std::vector<AlgorithmSpec> expected{{"ring", {}, "ring"},
                                              {"optcc", Options{{"k", "4"}, {"plan", "bs"}}, "optcc(k=4,plan=bs)"},
                                              {"optcc", Options{{"k", "8"}}, "eight"},
                                              {"ring", {}, "again"},
                                              {"optcc", {}, "optcc"}};
    EXPECT_EQ(result->workload.algorithms, expected);
}

TEST(Algorithms, ExpectationsNameLabels) {
    const std::string labelled = with(kFull, "[ring, optcc]", "[ring, {name: optcc, k: 4, as: four}]");
    EXPECT_EQ(errors_of(load(labelled)),
              "test.yaml:31:17: expect[0].algorithm: \"optcc\" does not run in this scenario; allowed: ring, four\n");
    EXPECT_TRUE(load(with(labelled, "algorithm: optcc,", "algorithm: four,")));
}

} // namespace
} // namespace railbreak::scenarios
