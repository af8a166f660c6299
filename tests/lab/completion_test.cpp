// The completion scripts in the shells that they are for, and the manual pages in the programs that show them.
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "harness/record/reader.hpp"
#include "harness/record/recorder.hpp"
#include "tests/lab/simulated_home.hpp"

namespace railbreak::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

class Completion : public SimulatedHome {
protected:
    Completion() {
        for (const std::string shell : {"bash", "zsh", "fish"}) {
            const Finished script = run({"completion", shell});
            EXPECT_EQ(script.status.code, 0) << script.err;
            std::ofstream(path(shell)) << script.out;
        }
        id = json::parse(run({"list", "--json"}).out, nullptr, false)["runs"][0]["run_id"];
        EXPECT_EQ(run({"baseline", "set", "golden", "latest"}).status.code, 0);
        fs::create_directory(home.path() / "folder");
        // The name of the program as it is typed.
        fs::create_symlink(RAILBREAK_BINARY, home.path() / "railbreak");
    }
    /// Makes the run the baseline of any tag, whatever the command thinks of it.
    [[nodiscard]] bool tag_latest(const std::string& tag) {
        const auto reader = record::RunReader::open_readonly(path("runs.db"));
        const auto latest = reader ? reader->find_run("latest") : tl::unexpected(reader.error());
        auto recorder = record::Recorder::open(path("runs.db"));
        return latest && recorder && recorder->set_baseline(tag, {*latest}, 1, "");
    }

    /// Records a suite without items.
    void add_suite(const std::string& id_of_suite) {
        auto recorder = record::Recorder::open(path("runs.db"));
        record::SuiteRow suite;
        suite.suite_id = id_of_suite;
        EXPECT_TRUE(recorder && recorder->begin_suite(suite, {}));
    }

    std::string id; ///< of the run that there is
};

class BashCompletion : public Completion {
protected:
    /// What is offered for the last word of a command line, as bash splits it.
    std::vector<std::string> offered(const std::string& words) {
        const std::string script =
            "set -u; cd '" + home.path().string() + "'; source ./bash; COMP_WORDS=(./railbreak " + words +
            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _railbreak; " + "printf '%s\\n' \"${COMPREPLY[@]}\"";
        const Finished finished = run_program("/bin/bash", {"-c", script});
        EXPECT_EQ(finished.err, "");
        std::vector<std::string> lines = lines_of(finished.out);
        std::erase(lines, "");
        return lines;
    }
};

TEST_F(BashCompletion, CommandsAndOptions) {
    EXPECT_THAT(offered("''"), IsSupersetOf({"run", "report", "db", "events", "completion"}));
    EXPECT_THAT(offered("''"), Not(testing::Contains("agent"))) << "internal";
    EXPECT_THAT(offered("rec"), ElementsAre("recover"));
    EXPECT_THAT(offered("--json db p"), ElementsAre("prune"));
    EXPECT_THAT(offered("--db x db"), ElementsAre("db")) << "x is the value of --db";
    EXPECT_THAT(offered("report --fo"), ElementsAre("--format"));
    EXPECT_THAT(offered("db prune --dry"), ElementsAre("--dry-run"));
    EXPECT_THAT(offered("report --js"), ElementsAre("--json"));
    EXPECT_THAT(offered("lab exec lab h0 -- --"), ElementsAre());
}

TEST_F(BashCompletion, ValuesAndArguments) {
    EXPECT_THAT(offered("simulate --model ''"), ElementsAre("fluid", "exclusive"));
    EXPECT_THAT(offered("simulate --model = e"), ElementsAre("exclusive"));
    EXPECT_THAT(offered("report --format junit,ope"), ElementsAre("junit,openmetrics"));
    EXPECT_THAT(offered("report -o fol"), ElementsAre("folder"));
    EXPECT_THAT(offered("validate scen"), ElementsAre("scenario.yaml"));
    EXPECT_THAT(offered("schema s"), ElementsAre("scenario", "suite"));
    EXPECT_THAT(offered("schema scenario s"), ElementsAre()) << "there is one argument";
}

TEST_F(BashCompletion, WhatTheDatabaseHas) {
    EXPECT_THAT(offered("report ''"), ElementsAre("latest", id));
    EXPECT_THAT(offered("compare latest 2"), ElementsAre(id));
    EXPECT_THAT(offered("compare --baseline ''"), ElementsAre("golden"));
    EXPECT_THAT(offered("--db /nowhere report ''"), ElementsAre()) << "that database is asked";
    add_suite("20990101T000000Z-nightly-1");
    EXPECT_THAT(offered("report ''"), ElementsAre("latest", id, "20990101T000000Z-nightly-1"));
    EXPECT_THAT(offered("gate --baseline golden 2099"), ElementsAre("20990101T000000Z-nightly-1"));
    EXPECT_THAT(offered("show ''"), ElementsAre("latest", id)) << "of a run only";
    EXPECT_THAT(offered("show --artefact gan"), ElementsAre("gantt/ring.svg"));
}

TEST_F(BashCompletion, TheSecondOfSeveralRuns) {
    EXPECT_THAT(offered("compare 2"), ElementsAre(id));
    EXPECT_THAT(offered("compare latest,2"), ElementsAre("latest," + id));
    EXPECT_THAT(offered("compare latest..2"), ElementsAre("latest.." + id));
    EXPECT_THAT(offered("compare x,y..l"), ElementsAre("x,y..latest"));
    EXPECT_THAT(offered("compare x..y,l"), ElementsAre("x..y,latest"));
    EXPECT_THAT(offered("compare latest.."), ElementsAre("latest..latest", "latest.." + id));
    EXPECT_THAT(offered("report latest,2"), ElementsAre()) << "it takes one";
}

TEST_F(BashCompletion, CommandsOfManAndTablesOfExport) {
    EXPECT_THAT(offered("man comple"), ElementsAre("completion"));
    EXPECT_THAT(offered("man ''"), IsSupersetOf({"run", "db", "man"}));
    EXPECT_THAT(offered("man agen"), ElementsAre()) << "internal";
    EXPECT_THAT(offered("db export --table v_suite"), ElementsAre("v_suites", "v_suite_items"));
    EXPECT_THAT(offered("lab exec lab h0 ru"), ElementsAre()) << "a command of the host";
}

TEST_F(Completion, WordsThatAShellWouldReadOtherwiseAreNotOffered) {
    const std::string hostile = "a$(touch " + path("touched") + ")";
    EXPECT_EQ(run({"baseline", "set", hostile, "latest"}).status.code, 64);
    ASSERT_TRUE(tag_latest(hostile)) << "as an older railbreak, or another program, could";
    EXPECT_EQ(run({"completion", "--tags"}).out, "golden\n");
    EXPECT_EQ(run({"completion", "--runs"}).out, "latest\n" + id + "\n");
    EXPECT_EQ(run({"completion", "--scenarios"}).out, "slow-port\n");
}

// In a terminal of its own, through zsh's completion system: a word that only one candidate continues is completed.
TEST_F(Completion, InZsh) {
    if (::access("/usr/bin/zsh", X_OK) != 0) {
        GTEST_SKIP() << "zsh is not installed";
    }
    add_suite("20990101T000000Z-nightly-1");
    struct Case {
        std::string typed;
        std::string completed;
    };
    std::string script =
        "zmodload zsh/zpty; export TERM=dumb; zpty shell zsh -f -i\n"
        "zpty -w shell 'PS1=; cd " +
        home.path().string() +
        "; path=($PWD $path); autoload -Uz compinit && compinit -u -D && source ./zsh && bindkey -e && "
        "print -r rea''dy'\n"
        "zpty -r shell out '*ready*'\n";
    std::string expected;
    for (const Case& one : std::vector<Case>{{"rec", "recover "},
                                             {"db pru", "db prune "},
                                             {"simulate --model exc", "simulate --model exclusive "},
                                             {"report --format junit,openm", "report --format junit,openmetrics"},
                                             {"report 202", "report " + id},
                                             {"compare --baseline g", "compare --baseline golden "},
                                             {"report -o fol", "report -o folder/"},
                                             {"compare latest..2", "compare latest.." + id},
                                             {"compare latest,2", "compare latest," + id},
                                             {"man comple", "man completion "},
                                             {"db export --table v_summ", "db export --table v_summary "},
                                             {"show --artefact gan", "show --artefact gantt/ring.svg "},
                                             {"report 209", "report 20990101T000000Z-nightly-1 "},
                                             {"report --outp", "report --output"}}) {
        // Typed, completed, and the line emptied again.
        script += "zpty -w -n shell $'railbreak " + one.typed + "\\t'; zpty -r shell out '*railbreak " + one.completed +
                  "*' && print '" + one.completed + "'; zpty -w -n shell $'\\C-u'\n";
        expected += one.completed + "\n";
    }
    const Finished finished = run_program("/usr/bin/timeout", {"30", "/usr/bin/zsh", "-f", "-c", script});
    EXPECT_EQ(finished.out, expected) << finished.err;
}

TEST_F(Completion, InFish) {
    if (::access("/usr/bin/fish", X_OK) != 0) {
        GTEST_SKIP() << "fish is not installed";
    }
    const auto offered = [&](const std::string& line) {
        const std::string script =
            "cd " + home.path().string() + "; set PATH $PWD $PATH; source ./fish; complete -C 'railbreak " + line + "'";
        const Finished finished =
            run_program("/usr/bin/env", {"HOME=" + home.path().string(), "/usr/bin/fish", "--no-config", "-c", script});
        EXPECT_EQ(finished.err, "");
        std::vector<std::string> words = lines_of(finished.out);
        for (std::string& word : words) {
            word.resize(std::min(word.find('\t'), word.size()));
        }
        return words;
    };
    EXPECT_THAT(offered("rec"), ElementsAre("recover"));
    EXPECT_THAT(offered("--db x db p"), ElementsAre("prune"));
    EXPECT_THAT(offered("simulate --model exc"), ElementsAre("exclusive"));
    EXPECT_THAT(offered("report --format junit,openm"), ElementsAre("junit,openmetrics"));
    EXPECT_THAT(offered("report 2"), ElementsAre(id));
    EXPECT_THAT(offered("report -o fol"), ElementsAre("folder/"));
    EXPECT_THAT(offered("report --outp"), ElementsAre("--output"));
    EXPECT_THAT(offered("compare --baseline g"), ElementsAre("golden"));
    EXPECT_THAT(offered("validate scen"), ElementsAre("scenario.yaml"));
    EXPECT_THAT(offered("compare latest..2"), ElementsAre("latest.." + id));
    EXPECT_THAT(offered("compare latest,2"), ElementsAre("latest," + id));
    EXPECT_THAT(offered("man comple"), ElementsAre("completion"));
    EXPECT_THAT(offered("db export --table v_summ"), ElementsAre("v_summary"));
    EXPECT_THAT(offered("show --artefact gan"), ElementsAre("gantt/ring.svg"));
    add_suite("20990101T000000Z-nightly-1");
    EXPECT_THAT(offered("report 209"), ElementsAre("20990101T000000Z-nightly-1"));
}

} // namespace
} // namespace railbreak::tests
