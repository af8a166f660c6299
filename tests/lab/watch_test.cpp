// `railbreak show` and `railbreak events` as a user runs them, and colours on a terminal.
#include <algorithm>
#include <iterator>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "harness/record/recorder.hpp"
#include "tests/lab/simulated_home.hpp"

namespace railbreak::tests {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr Nanoseconds kPatience = std::chrono::seconds(20);
const std::string kEscape = "\x1b[";

using Show = SimulatedHome;
using Events = SimulatedHome;
using Colour = SimulatedHome;

TEST_F(Show, EveryPartAsTextAndAsJson) {
    const json report = json::parse(run({"report", "--json"}).out, nullptr, false);
    struct Part {
        std::string name;
        std::string text;
        json content;
    };
    for (const Part& part :
         std::vector<Part>{{"verdict", "VERDICT pass: ", report["verdicts"]},
                           {"faults", "  half under ring: cap to 500 Mbit/s on h1 rail0", report["injections"]},
                           {"iterations", "ring       degraded", report["iterations"]},
                           {"events", "  info     ", report["events"]},
                           {"bounds", "what binds", report["bounds"]},
                           {"plan", "\"algorithms\"", nullptr},
                           {"scenario", kSlowPort, kSlowPort},
                           {"environment", "\"", report["run"]["environment"]}}) {
        const Finished text = run({"show", "--section", part.name});
        EXPECT_EQ(text.status.code, 0) << text.err;
        EXPECT_THAT(text.out, HasSubstr(part.text)) << part.name;
        const json shown = json::parse(run({"show", "latest", "--section", part.name, "--json"}).out, nullptr, false);
        EXPECT_EQ(shown["schema"], "railbreak-run-section");
        EXPECT_EQ(shown["section"], part.name);
        EXPECT_EQ(shown["run_id"], report["run"]["run_id"]);
        if (part.content != nullptr) {
            EXPECT_EQ(shown["content"], part.content) << part.name;
        }
    }
}

TEST_F(Show, AnArtefactIsWrittenByteByByte) {
    const json summary = json::parse(run({"show", "--json"}).out, nullptr, false)["content"];
    ASSERT_FALSE(summary["artefacts"].empty());
    const std::string name = summary["artefacts"][0]["name"];
    EXPECT_THAT(run({"show"}).out, HasSubstr(name));
    const std::string file = path("artefact");
    const Finished written = run({"show", "--artefact", name, "-o", file});
    EXPECT_EQ(written.out, "wrote " + file + "\n") << written.err;
    std::ifstream stream(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    EXPECT_EQ(content.size(), summary["artefacts"][0]["size_bytes"]);
    EXPECT_EQ(run({"show", "--artefact", name}).out, content);
    EXPECT_EQ(json::parse(run({"show", "--artefact", name, "--json"}).out, nullptr, false)["content"], content);
    const Finished unknown = run({"show", "--artefact", "x"});
    EXPECT_EQ(unknown.status.code, 64);
    EXPECT_THAT(unknown.err, HasSubstr("its artefacts: " + name));
}

TEST_F(Events, LevelsAndNumbersSelect) {
    const Finished all = run({"events", "--json"});
    EXPECT_EQ(all.status.code, 0) << all.err;
    const auto lines = static_cast<std::size_t>(std::count(all.out.begin(), all.out.end(), '\n'));
    ASSERT_GT(lines, 1U);
    const json first = json::parse(all.out.substr(0, all.out.find('\n')), nullptr, false);
    EXPECT_EQ(first["schema"], "railbreak-event");
    const Finished rest = run({"events", "--json", "--since", std::to_string(first["id"].get<int>())});
    EXPECT_EQ(all.out.substr(all.out.find('\n') + 1), rest.out);
    EXPECT_EQ(run({"events", "--level", "error"}).out, "");
}

record::RunRow new_run() {
    return {.run_id = "20260131T000000Z-live-0001",
            .scenario_name = "live",
            .plan_json = "{}",
            .backend = "lab",
            .environment_json = "{}",
            .started_realtime_ns = 1};
}

record::EventRow event(std::int64_t run, std::int64_t at, const std::string& level, const std::string& text) {
    return {
        .run = run, .at = at, .level = level, .source = "agent h3", .kind = "phase", .text = text, .facts_json = "{}"};
}

TEST_F(Events, FollowsARunUntilItsVerdictAndEndsWithItsExitCode) {
    Result<record::Recorder> recorder = record::Recorder::open(path("runs.db")); // this process is the controller
    ASSERT_TRUE(recorder) << recorder.error().to_line();
    const Result<std::int64_t> id = recorder->begin_run(new_run());
    ASSERT_TRUE(id && recorder->add_event(event(*id, 1'000'000'000, "info", "one")));
    RailbreakProcess text(home.path(), {"events", "--follow", "--level", "warning"});
    RailbreakProcess lines(home.path(), {"events", "latest", "--follow", "--json"});
    ASSERT_TRUE(lines.wait_for_stdout("\"one\"", kPatience));
    ASSERT_TRUE(recorder->add_event(event(*id, 2'500'000'000, "warning", "two\x1b[31m")));
    ASSERT_TRUE(lines.wait_for_stdout("\"two", kPatience));
    ASSERT_TRUE(text.wait_for_stdout("two?[31m", kPatience)) << "what steers a terminal is replaced";
    ASSERT_TRUE(recorder->add_event(event(*id, 3'000'000'000, "error", "three")));
    ASSERT_TRUE(recorder->finish_run(*id, 2, {{0, "run", "", "fail", "h3 is late", {}, {}, {}}}));
    const std::optional<Finished> told = text.finish(kPatience);
    ASSERT_TRUE(told);
    EXPECT_EQ(told->status.code, 1);
    EXPECT_EQ(told->out, "    1.500 s  warning  agent h3      phase             two?[31m\n"
                         "    2.000 s  error    agent h3      phase             three\n"
                         "VERDICT fail: h3 is late\n");
    const std::optional<Finished> parsed = lines.finish(kPatience);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->status.code, 1);
    const std::size_t last = parsed->out.rfind('{', parsed->out.size() - 2);
    const json end = json::parse(parsed->out.substr(last), nullptr, false);
    EXPECT_EQ(end["schema"], "railbreak-run-end");
    EXPECT_EQ(end["verdict"], "fail");
    EXPECT_EQ(end["exit_code"], 1);
}

TEST_F(Events, SaysThatTheControllerOfARunIsGone) {
    const pid_t controller = ::fork();
    if (controller == 0) { // records a run and dies
        Result<record::Recorder> recorder = record::Recorder::open(path("runs.db"));
        const Result<std::int64_t> id = recorder->begin_run(new_run());
        ::_exit(id && recorder->add_event(event(*id, 1, "info", "one")) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(controller, &status, 0), controller);
    ASSERT_EQ(status, 0);
    const Finished followed = run({"events", "--follow"});
    EXPECT_EQ(followed.status.code, 4) << "as of every run that was aborted";
    EXPECT_THAT(run({"report"}).out, HasSubstr("VERDICT none: the run has not ended; what it recorded last, 0.000 s "
                                               "after its beginning: one\n"));
    EXPECT_THAT(run({"report", "--format", "superbench"}).out, HasSubstr("\"allreduce-perf/return_code\":4"));
    EXPECT_THAT(followed.out,
                HasSubstr("  one\nVERDICT none: the run did not finish: the process that recorded it is gone"));
}

TEST_F(Events, OfAFinishedRunEndAtOnceWithItsVerdict) {
    const Finished followed = run({"events", "--follow"});
    EXPECT_EQ(followed.status.code, 0);
    EXPECT_THAT(followed.out, HasSubstr("\nVERDICT pass: "));
}

// `script` gives a program a terminal of its own.
TEST_F(Colour, OnATerminalUnlessNoColorSaysNo) {
    const auto on_terminal = [&](const std::string& environment, const std::string& words) {
        const std::string command = environment + " '" + RAILBREAK_BINARY + "' " + words;
        return run_program("/usr/bin/script", {"-qec", command, "/dev/null"});
    };
    const std::string simulate = "simulate '" + path("scenario.yaml") + "'";
    for (const std::string& words : std::vector<std::string>{"report", "list", simulate}) {
        const Finished plain = on_terminal("TERM=xterm NO_COLOR=1", words);
        EXPECT_EQ(plain.status.code, 0) << plain.out;
        EXPECT_THAT(plain.out, AllOf(HasSubstr("pass"), Not(HasSubstr(kEscape + "1;")))) << words;
        EXPECT_THAT(on_terminal("TERM=xterm NO_COLOR=", words).out, HasSubstr(kEscape + "1;32mpass")) << words;
        EXPECT_THAT(on_terminal("TERM=dumb", words).out, Not(HasSubstr(kEscape + "1;"))) << words;
    }
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"report"}, {"list"}, {"show"}, {"events"}}) {
        EXPECT_THAT(run(words).out, Not(HasSubstr("\x1b"))) << "no terminal";
    }
}

constexpr const char* kHealthy = R"(railbreak: 1
name: healthy
cluster: {hosts: 2, rate: 1Gbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  algorithms: [ring]
  iterations: {warmup: 1, steady: 3, degraded: 0, recovered: 0}
)";

TEST(RunProgress, TellsIterationsAndTimeLeftOnATerminal) {
    const TemporaryFolder home;
    const std::string file = (home.path() / "healthy.yaml").string();
    std::ofstream(file) << kHealthy;
    const std::string command = std::string("'") + RAILBREAK_BINARY + "' run '" + file + "'";
    const Finished run = run_railbreak(home.path(), {"-qec", command, "/dev/null"}, 2 * kPatience, "/usr/bin/script");
    if (run.status.code == 3) {
        GTEST_SKIP() << "no lab here: " << run.out;
    }
    ASSERT_EQ(run.status.code, 0) << run.out;
    for (const std::string i : {"1", "2", "3"}) {
        EXPECT_THAT(run.out, HasSubstr("\r\x1b[Kring steady " + i + "/3: "));
    }
    EXPECT_THAT(run.out, HasSubstr("; about 0 s left\r\x1b[K"));
}

} // namespace
} // namespace railbreak::tests
