// Every command with --json: what it prints is JSON that says what it is. And what manual pages say of every command.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "harness/record/recorder.hpp"
#include "tests/lab/simulated_home.hpp"

namespace railbreak::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

/// Visits a command of `man --json` and all below it.
void for_each_command(const json& command, const std::function<void(const json&)>& visit) {
    visit(command);
    for (const json& below : command["commands"]) {
        for_each_command(below, visit);
    }
}

std::string content(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class EveryCommand : public SimulatedHome {
protected:
    EveryCommand() { model = json::parse(run({"man", "--json"}).out, nullptr, false)["command"]; }
    json model;
};

/// Exit code of what may be impossible here; an error is as good a result then.
constexpr int kAsTheHostIs = -1;

/// How a command is called, and the schema of what it prints.
struct Call {
    std::string command;
    std::vector<std::string> words;
    std::string schema;
    int exit_code = 0;
};

/// Commands in an order in which each has what it needs.
std::vector<Call> calls(const std::string& scenario, const std::string& folder) {
    return {{"simulate", {scenario}, "railbreak-run-report"},
            {"validate", {scenario}, "railbreak-validate"},
            {"report", {}, "railbreak-run-report"},
            {"report", {"--format", "junit", "-o", folder}, "railbreak-report-files"},
            {"list", {}, "railbreak-run-list"},
            {"show", {}, "railbreak-run-section"},
            {"show", {"-o", folder + "/summary"}, "railbreak-show-file"},
            {"events", {}, "railbreak-event"},
            {"events", {"--follow"}, "railbreak-event"},
            {"compare", {"latest", "latest"}, "railbreak-compare-report"},
            {"trend", {"slow-port"}, "railbreak-trend-report"},
            {"import", {folder + "/nccl.txt"}, "railbreak-import"},
            {"db check", {}, "railbreak-db-check"},
            {"db export", {"-o", folder + "/tables"}, "railbreak-db-export"},
            {"db prune", {"--keep", "5", "--dry-run"}, "railbreak-db-prune"},
            {"baseline set", {"tag", "latest"}, "railbreak-baselines"},
            {"baseline list", {}, "railbreak-baselines"},
            {"gate", {"--baseline", "tag"}, "railbreak-gate-report", 2}, // the run itself is no baseline for it
            {"baseline drop", {"tag"}, "railbreak-baselines"},
            {"lab list", {}, "railbreak-labs"},
            {"lab up", {"json-test", "--hosts", "2"}, "railbreak-labs", kAsTheHostIs},
            {"lab down", {"json-test"}, "railbreak-lab-down", kAsTheHostIs},
            {"doctor", {}, "railbreak-doctor", kAsTheHostIs},
            {"recover", {}, "railbreak-recover"},
            {"plan", {"--servers", "4", "--bytes", "1MiB", "--rate", "1Gbit/s"}, "railbreak-plan"},
            {"completion", {"bash"}, "railbreak-completion"},
            {"man", {}, "railbreak-commands"},
            {"man", {"-o", folder + "/man"}, "railbreak-man-files"},
            // What has no result here still has an error that is one.
            {"report", {"nothing"}, "railbreak-error", 64},
            {"show", {"--artefact", "nothing"}, "railbreak-error", 64},
            {"events", {"nothing", "--follow"}, "railbreak-error", 64},
            {"run", {folder + "/no-scenario"}, "railbreak-error", 64},
            {"simulate", {folder + "/no-scenario"}, "railbreak-error", 64},
            {"lab up", {"--rate", "fast"}, "railbreak-error", 64},
            {"lab down", {"nothing"}, "railbreak-error", 64},
            {"lab exec", {"nothing", "h0", "--", "true"}, "railbreak-error", 64},
            {"man", {"nothing"}, "railbreak-error", 64},
            {"completion", {}, "railbreak-error", 64},
            {"completion", {"csh"}, "railbreak-error", 64},
            {"no-such-command", {}, "railbreak-error", 64}};
}

/// Commands whose --json is looked at elsewhere, or that print what is JSON in its own right.
const std::set<std::string> kElsewhere{
    "halt",  // ends the runs of this host: safety_test.cpp
    "schema" // a JSON Schema: below
};

constexpr const char* kNccl =
    R"(# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 20
#  Rank  0 Group  0 Pid   4711 on    node-a device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4712 on    node-b device  0 [0000:0b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
     1048576        262144     float     sum      -1   152.30    6.88    6.88       0   149.90    7.00    7.00       0
# Out of bounds values : 0 OK
)";

TEST_F(EveryCommand, PrintsJsonThatSaysWhatItIs) {
    std::ofstream(path("nccl.txt")) << kNccl;
    const std::string told = content(fs::path(RAILBREAK_SOURCE) / "docs" / "json.md");
    std::set<std::string> called = kElsewhere;
    for (const Call& call : calls(path("scenario.yaml"), home.path().string())) {
        called.insert(call.command);
        std::istringstream names(call.command);
        std::vector<std::string> words{std::istream_iterator<std::string>(names), {}};
        words.emplace_back("--json");
        words.insert(words.end(), call.words.begin(), call.words.end());
        const Finished finished = run(words);
        if (call.exit_code != kAsTheHostIs) {
            EXPECT_EQ(finished.status.code, call.exit_code) << call.command << ": " << finished.err;
        }
        json document = json::parse(finished.out, nullptr, false);
        if (call.schema == "railbreak-event") { // a line each
            document = json::parse(finished.out.substr(0, finished.out.find('\n')), nullptr, false);
        }
        ASSERT_TRUE(document.is_object()) << call.command << ": " << finished.out;
        if (call.exit_code != kAsTheHostIs || finished.status.code == 0 || document["schema"] != "railbreak-error") {
            EXPECT_EQ(document.value("schema", ""), call.schema) << call.command;
        }
        EXPECT_THAT(told, HasSubstr("`" + call.schema + "`")) << call.command;
        EXPECT_EQ(document.value("version", 0), 1) << call.command;
        if (call.schema == "railbreak-error") {
            EXPECT_EQ(document["exit_code"], call.exit_code);
            EXPECT_NE(document["message"], "");
        }
    }
    for_each_command(model, [&](const json& command) {
        if (command["commands"].empty()) {
            EXPECT_TRUE(called.contains(command["name"])) << command["name"] << " is not among the calls above";
        }
    });
    EXPECT_EQ(json::parse(run({"--version", "--json"}).out, nullptr, false)["schema"], "railbreak-version");
    EXPECT_TRUE(json::parse(run({"schema", "suite", "--json"}).out, nullptr, false).contains("$schema"));
}

TEST_F(EveryCommand, HasFailedWhenItsResultIsLost) {
    for (const std::string words :
         {"--help", "--version", "--version --json", "run --help", "db prune --help", "man", "man db", "man --json",
          "completion bash", "completion --runs", "list", "report", "schema", "no-such-command --json"}) {
        const std::string call = std::string("'") + RAILBREAK_BINARY + "' " + words + " >/dev/full";
        const Finished lost = run_program("/bin/sh", {"-c", call});
        EXPECT_EQ(lost.status.code, 64) << words;
        EXPECT_THAT(lost.err, HasSubstr("cannot write the result to standard output: ")) << words;
    }
    EXPECT_THAT(run({"--help"}).out, HasSubstr("Exit codes: 0 pass"));
    EXPECT_THAT(run({"db", "prune", "--help"}).out, HasSubstr("--vacuum"));
    EXPECT_THAT(run({"--version"}).out, HasSubstr("optional parts"));
}

TEST_F(EveryCommand, ComparesABaselineScenarioByScenario) {
    std::ofstream(path("other.yaml")) << std::string(kSlowPort).replace(std::string(kSlowPort).find("slow-port"), 9,
                                                                        "other-one");
    ASSERT_EQ(run({"simulate", path("other.yaml")}).status.code, 0);
    const json list = json::parse(run({"list", "--json"}).out, nullptr, false)["runs"];
    const std::string other = list[0]["run_id"];
    const std::string slow = list[1]["run_id"];
    ASSERT_EQ(run({"baseline", "set", "gold", slow, other}).status.code, 0);
    ASSERT_EQ(run({"simulate", path("other.yaml"), path("scenario.yaml")}).status.code, 0);
    const json runs = json::parse(run({"list", "--json"}).out, nullptr, false)["runs"];
    const std::string both = runs[0]["run_id"].get<std::string>() + "," + runs[1]["run_id"].get<std::string>();
    const Finished compared = run({"compare", "--baseline", "gold", both, "--json"});
    EXPECT_EQ(compared.status.code, 0) << compared.err;
    const json document = json::parse(compared.out, nullptr, false);
    EXPECT_EQ(document["schema"], "railbreak-compare-scenarios");
    ASSERT_EQ(document["scenarios"].size(), 2U) << compared.out;
    EXPECT_EQ(document["scenarios"][0]["a"]["scenario"], "slow-port");
    EXPECT_EQ(document["scenarios"][1]["b"]["scenario"], "other-one");
    const Finished one = run({"compare", "--baseline", "gold"});
    EXPECT_EQ(one.status.code, 0) << one.err;
    EXPECT_THAT(one.out, HasSubstr("[1 of 1] slow-port"));
    EXPECT_THAT(one.out, HasSubstr("\nonly A has other-one"));
    EXPECT_EQ(one.err, "");
    const Finished same = run({"compare", "--baseline", "gold", slow});
    EXPECT_THAT(same.err, HasSubstr("1 of the runs is in both sets"));
    EXPECT_EQ(run({"compare", slow + "," + other, both}).status.code, 64) << "a set by hand is of one scenario";
    std::ofstream(path("nccl.txt")) << kNccl;
    ASSERT_EQ(run({"import", path("nccl.txt")}).status.code, 0);
    const Finished nothing = run({"compare", "--baseline", "gold", "latest"});
    EXPECT_EQ(nothing.status.code, 64);
    EXPECT_THAT(nothing.err, HasSubstr("the baseline gold has no scenario of these runs"));
}

TEST_F(EveryCommand, GateKnowsWhatBecameOfAnItemWhoseRunWasPruned) {
    ASSERT_EQ(run({"baseline", "set", "gold", "latest"}).status.code, 0);
    const fs::path database = path("runs.db");
    const record::RunRow lost{.run_id = "20200101T000000Z-lost-1", .scenario_name = "lost", .backend = "lab"};
    {
        auto recorder = record::Recorder::open(database);
        ASSERT_TRUE(recorder);
        const auto id = recorder->begin_run(lost);
        ASSERT_TRUE(id && recorder->finish_run(*id, 1, {{0, "run", "", "fail", "h3 was late", {}, {}, {}}}));
        record::SuiteRow suite;
        suite.suite_id = "20200101T000000Z-nightly-1";
        ASSERT_TRUE(recorder->begin_suite(suite, {{.name = "lost[host=3]", .state = "done", .run = *id}}));
    }
    const Finished pruned = run({"db", "prune", "--older-than", "1d"});
    EXPECT_THAT(pruned.out, HasSubstr("deleted " + lost.run_id + " (fail)")) << pruned.err;
    const Finished gate = run({"gate", "20200101T000000Z-nightly-1", "--baseline", "gold"});
    EXPECT_EQ(gate.status.code, 1) << gate.err;
    EXPECT_THAT(gate.out, HasSubstr("lost[host=3]: its run was deleted, and its times with it; fail: h3 was late"));
    const Finished report = run({"report", "20200101T000000Z-nightly-1"});
    EXPECT_THAT(report.out, HasSubstr("VERDICT fail: lost[host=3]: h3 was late"));
}

TEST_F(EveryCommand, IsDescribedWithAllThatItTakes) {
    const std::string readme = content(fs::path(RAILBREAK_SOURCE) / "README.md");
    for_each_command(model, [&](const json& command) {
        EXPECT_NE(command["purpose"], "") << command["name"];
        const std::string name = command["name"];
        EXPECT_THAT(readme, HasSubstr(name.find(' ') == std::string::npos ? "railbreak " + name : name)) << "README.md";
        for (const char* kind : {"options", "arguments"}) {
            for (const json& value : command[kind]) {
                EXPECT_NE(value["description"], "") << command["name"] << ": " << value;
            }
        }
    });
}

TEST_F(EveryCommand, HasAPageWithoutComplaint) {
    const std::string folder = path("man");
    ASSERT_EQ(run({"man", "-o", folder}).status.code, 0);
    std::set<std::string> pages;
    for (const auto& entry : fs::directory_iterator(folder)) {
        pages.insert(entry.path().filename().string());
        const Finished groff =
            run_program("/usr/bin/groff", {"-man", "-ww", "-Tutf8", "-z", "-K", "utf8", entry.path().string()});
        EXPECT_EQ(groff.status.code, 0);
        EXPECT_EQ(groff.err, "") << entry.path();
        if (::access("/usr/bin/mandoc", X_OK) == 0) {
            // Pages have no date, on purpose: the same version gives the same pages.
            const Finished lint =
                run_program("/usr/bin/mandoc", {"-T", "lint", "-W", "warning", entry.path().string()});
            EXPECT_EQ(std::count(lint.out.begin(), lint.out.end(), '\n'), 1) << lint.out;
            EXPECT_THAT(lint.out, HasSubstr("missing date"));
        }
    }
    for (const json& command : model["commands"]) {
        EXPECT_TRUE(pages.contains("railbreak-" + command["name"].get<std::string>() + ".1")) << command["name"];
    }
}

/// A page as it is read, without what makes letters bold.
std::string plain_text(const Finished& page) {
    std::string text;
    for (const char letter : page.out) {
        if (letter == '\b') {
            text.pop_back();
        } else {
            text += letter;
        }
    }
    return text;
}

TEST_F(EveryCommand, PagesTellOfAllOptionsExitCodesVariablesAndFiles) {
    const auto page_of = [&](const std::string& name) {
        std::ofstream(path("page.1")) << run({"man", name}).out;
        return plain_text(
            run_program("/usr/bin/env", {"GROFF_NO_SGR=1", "groff", "-man", "-Tascii", "-rLL=2000n", path("page.1")}));
    };
    const std::string first = page_of("");
    for (const std::string code : {"0", "1", "2", "3", "4", "5", "64", "70"}) {
        EXPECT_THAT(first.substr(first.find("EXIT STATUS")), HasSubstr("\n       " + code + " ")) << code;
    }
    EXPECT_THAT(first, HasSubstr("railbreak.db"));
    // Every variable that the code asks for is told.
    const fs::path source = RAILBREAK_SOURCE;
    for (const char* module : {"base", "harness", "injectors", "reports", "scenarios", "collective"}) {
        for (const auto& entry : fs::recursive_directory_iterator(source / module)) {
            const std::string code = entry.path().extension() == ".cpp" ? content(entry.path()) : "";
            for (std::size_t at = code.find("getenv(\""); at != std::string::npos; at = code.find("getenv(\"", at)) {
                at += 8;
                EXPECT_THAT(first, HasSubstr(code.substr(at, code.find('"', at) - at))) << entry.path();
            }
        }
    }
    for (const json& command : model["commands"]) {
        const std::string page = page_of(command["name"]);
        for_each_command(command, [&](const json& below) {
            for (const json& option : below["options"]) {
                for (const json& name : option["names"]) {
                    EXPECT_TRUE(name == "-h" || name == "--help" || page.find(name) != std::string::npos)
                        << below["name"] << " " << name;
                }
            }
        });
    }
}

} // namespace
} // namespace railbreak::tests
