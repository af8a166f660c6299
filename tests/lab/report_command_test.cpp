// `railbreak report` and `railbreak import` as a user runs them, on a run that was simulated: no lab, no privilege.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kScenario = R"(railbreak: 1
name: slow-port
description: one port at half its rate
cluster: {hosts: 4, rate: 1Gbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  dtype: float32
  algorithms: [ring]
  iterations: {warmup: 0, steady: 1, degraded: 1, recovered: 1}
  iteration_timeout: 10s
lease: 30s
faults:
  - {name: half, kind: cap, target: {host: 1}, direction: both, fraction: 1/2, during: degraded}
)";

constexpr const char* kNcclText =
    R"(# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 20
#  Rank  0 Group  0 Pid   4711 on    node-a device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4712 on    node-b device  0 [0000:0b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
     1048576        262144     float     sum      -1   152.30    6.88    6.88       0   149.90    7.00    7.00       0
# Out of bounds values : 0 OK
)";

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Report : public testing::Test {
protected:
    Report() {
        std::ofstream(home.path() / "scenario.yaml") << kScenario;
        std::ofstream(home.path() / "nccl.txt") << kNcclText;
        EXPECT_EQ(run({"simulate", (home.path() / "scenario.yaml").string()}).status.code, 0);
    }
    Finished run(const std::vector<std::string>& words) { return run_railbreak(home.path(), words); }
    [[nodiscard]] std::set<std::string> files_in(const std::string& folder) const {
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator(home.path() / folder)) {
            names.insert(entry.path().filename().string());
        }
        return names;
    }

    TemporaryFolder home;
};

TEST_F(Report, WritesSeveralFormatsAtOnceAndTheSameBytesAgain) {
    const std::string formats = "html,junit,openmetrics,trace,nccl,nccl-json,superbench,markdown,text,json";
    const std::string folder = (home.path() / "a" / "b").string();
    const Finished first = run({"report", "latest", "--format", formats, "-o", folder, "--name", "nightly", "--json"});
    ASSERT_EQ(first.status.code, 0) << first.err;
    const json list = json::parse(first.out, nullptr, false);
    EXPECT_EQ(list["schema"], "railbreak-report-files");
    ASSERT_EQ(list["files"].size(), 10U);
    EXPECT_EQ(list["files"][1]["path"], folder + "/nightly.junit.xml");
    EXPECT_EQ(list["files"][1]["media_type"], "application/xml");
    std::vector<std::string> before;
    for (const json& file : list["files"]) {
        before.push_back(content(file["path"].get<std::string>()));
        EXPECT_FALSE(before.back().empty()) << file;
        // One format alone is printed, and it is the same.
        EXPECT_EQ(run({"report", "--format", file["format"]}).out, before.back()) << file;
    }
    // Files that are there are replaced, and nothing else stays behind.
    std::ofstream(folder + "/nightly.prom") << "old";
    EXPECT_EQ(run({"report", "--format", formats, "-o", folder, "--name", "nightly"}).status.code, 0);
    for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(content(list["files"][i]["path"].get<std::string>()), before[i]);
    }
    EXPECT_EQ(files_in("a/b").size(), 10U);
}

TEST_F(Report, NamesFilesAfterTheRunAndTellsWhatItWrote) {
    const std::string folder = (home.path() / "reports").string();
    const Finished finished = run({"report", "--format", "junit,markdown", "-o", folder});
    EXPECT_EQ(finished.status.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr("wrote " + folder + "/2"));
    for (const std::string& name : files_in("reports")) {
        EXPECT_THAT(name, testing::ContainsRegex("^2[0-9]*T[0-9]*Z-slow-port-[0-9a-f]*[.](junit[.]xml|md)$"));
    }
    EXPECT_THAT(run({"report", "--format", "markdown", "-o", "-"}).out, HasSubstr("## railbreak: slow-port: pass"));
}

TEST_F(Report, WrongInputIsToldInOneLine) {
    const std::string file = (home.path() / "nccl.txt").string();
    struct Case {
        std::vector<std::string> words;
        std::string told;
    };
    for (const Case& wrong : std::vector<Case>{
             {{"report", "--format", "junitt"},
              "there is no report format \"junitt\"; did you mean junit? the formats"},
             {{"report", "--format", "junit,text", "-o", "-"}, "2 formats cannot share standard output"},
             {{"report", "--format", "junit", "--json"}, "--json and --format junit both say what is printed"},
             {{"report", "--format", "junit", "--name", "x"}, "--name names files"},
             {{"report", "--format", "junit", "-o", "x", "--name", "../x"}, "\"../x\" cannot be the name of files"},
             {{"report", "--format", "junit", "-o", file}, "cannot create the folder " + file},
             {{"import", "/nowhere"}, "cannot read /nowhere"},
             {{"import", (home.path() / "scenario.yaml").string()}, "ranks: none"}}) {
        const Finished finished = run(wrong.words);
        EXPECT_EQ(finished.status.code, 64) << finished.err;
        EXPECT_THAT(finished.err, HasSubstr(wrong.told));
        EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    }
}

TEST_F(Report, ARunOfNcclTestsIsImportedAndReportedLikeOthers) {
    const Finished imported = run({"import", (home.path() / "nccl.txt").string(), "--name", "h100", "--json"});
    ASSERT_EQ(imported.status.code, 0) << imported.err;
    const json runs = json::parse(imported.out, nullptr, false)["runs"];
    ASSERT_EQ(runs.size(), 1U);
    const std::string id = runs[0]["run_id"];
    EXPECT_THAT(id, HasSubstr("-h100-"));
    const json report = json::parse(run({"report", id, "--json"}).out, nullptr, false);
    EXPECT_EQ(report["verdict"], "inconclusive");
    EXPECT_EQ(report["run"]["backend"], "import");
    EXPECT_EQ(report["phases"][0]["algorithm"], "nccl");
    EXPECT_EQ(report["phases"][0]["time_median_ns"], 149900.0);
    EXPECT_THAT(run({"report", id, "--format", "markdown"}).out, HasSubstr("as told"));
    EXPECT_THAT(run({"list"}).out, HasSubstr(id));
}

TEST_F(Report, ATextIsImportedOnceWheneverThatIs) {
    const std::string file = (home.path() / "nccl.txt").string();
    ASSERT_EQ(run({"import", file}).status.code, 0);
    // A text does not say when it began, so the id begins with the moment of the import. As if that were long ago:
    const auto reader = record::RunReader::open_readonly(home.path() / "runs.db");
    auto former = reader->load_run("latest");
    ASSERT_TRUE(former) << former.error().to_line();
    former->run.run_id = "20200101T000000Z" + former->run.run_id.substr(former->run.run_id.find('-'));
    {
        auto recorder = record::Recorder::open(home.path() / "old.db");
        const auto id = recorder->begin_run(former->run);
        ASSERT_TRUE(id && recorder->finish_run(*id, 1, former->verdicts));
    }
    fs::copy_file(file, home.path() / "copy");
    const std::vector<std::string> old{"--db", (home.path() / "old.db").string(), "import"};
    const auto import_again = [&](std::vector<std::string> words) {
        words.insert(words.begin(), old.begin(), old.end());
        return run(words);
    };
    const Finished again = import_again({(home.path() / "copy").string(), "--name", "nccl"});
    EXPECT_EQ(again.status.code, 64);
    EXPECT_THAT(again.err, HasSubstr("this file was imported before, as " + former->run.run_id));
    EXPECT_EQ(import_again({file, "--name", "other"}).status.code, 0);
    std::ofstream(file, std::ios::app) << "# another one\n";
    EXPECT_EQ(import_again({file}).status.code, 0) << "another content";
}

} // namespace
} // namespace railbreak::tests
