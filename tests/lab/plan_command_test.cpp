// `railbreak plan` as a user runs it: no lab and no privilege needed.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

using Words = std::vector<std::string>;

/// `railbreak plan` with usual answers for what the words do not say.
Finished plan(Words words) {
    const TemporaryFolder home;
    words.insert(words.begin(), "plan");
    const auto unless = [&](const std::string& option, const std::string& value) {
        if (std::ranges::find(words, option) == words.end()) {
            words.insert(words.end(), {option, value});
        }
    };
    unless("--bytes", "1GiB");
    unless("--rate", "200Gbit/s");
    return run_railbreak(home.path(), words);
}

json parsed(const Finished& finished) {
    EXPECT_EQ(finished.status.code, 0) << finished.err;
    return json::parse(finished.out, nullptr, false);
}

TEST(Plan, AnswersForPeople) {
    const Finished finished = plan({"--servers", "32", "--ranks-per-server", "8", "--rate", "400Gbit/s", "--slow",
                                    "3:1/2,7:7/8", "--latency", "3us"});
    EXPECT_EQ(finished.status.code, 0) << finished.err;
    EXPECT_THAT(finished.out, HasSubstr("32 servers, each with 8 ranks and 8 NICs of 400 Gbit/s; host 3 slowed 2; "
                                        "host 7 slowed 8/7\n"));
    EXPECT_THAT(finished.out, HasSubstr("OptCC paper, Theorem 13"));
    EXPECT_THAT(finished.out, HasSubstr("\nRecommended: "));
    EXPECT_EQ(finished.err, "");
}

TEST(Plan, AnswersForPrograms) {
    const json answer = parsed(plan({"--servers", "16", "--slow", "3:1/2", "--json"}));
    EXPECT_EQ(answer["schema"], "railbreak-plan");
    EXPECT_EQ(answer["vector_time_ns"], 42949672);
    EXPECT_EQ(answer["bound_time_ns"], 85899345);
    EXPECT_EQ(answer["question"]["slow"][0],
              json({{"host", 3}, {"send_slowdown", 2.0}, {"receive_slowdown", 2.0}, {"dead_nics", 0}}));
    bool binds = false;
    for (const json& bound : answer["bounds"]) {
        if (bound["binds"] == true && bound["model"] == "exclusive") {
            EXPECT_EQ(bound["name"], "theorem 6");
            EXPECT_EQ(bound["time_over_n"], 2.0);
            binds = true;
        }
    }
    EXPECT_TRUE(binds);
    for (const json& row : answer["algorithms"]) {
        EXPECT_TRUE(row["applies"] == false ? row.contains("why_not") : row["vs_bound"].get<double>() >= 1) << row;
    }
    EXPECT_TRUE(answer["recommended"].is_string());
}

TEST(Plan, OneDirectionMayBeSlow) {
    const json answer = parsed(plan({"--servers", "4", "--slow", "0:send=1/2,2:send=0.8+receive=4/5", "--json"}));
    const json& slow = answer["question"]["slow"];
    EXPECT_EQ(slow[0], json({{"host", 0}, {"send_slowdown", 2.0}, {"receive_slowdown", 1.0}, {"dead_nics", 0}}));
    EXPECT_EQ(slow[1], json({{"host", 2}, {"send_slowdown", 1.25}, {"receive_slowdown", 1.25}, {"dead_nics", 0}}));
}

TEST(Plan, NicsMayBeDead) {
    const Words question = {"--servers", "4", "--ranks-per-server", "8", "--dead", "2:0,2:5"};
    EXPECT_THAT(plan(question).out, HasSubstr("; host 2 with 2 NICs dead\n"));
    Words words = question;
    words.emplace_back("--json");
    const json answer = parsed(plan(words));
    EXPECT_EQ(answer["question"]["slow"][0]["dead_nics"], 2);
    EXPECT_NEAR(answer["bound_time_ns"].get<double>(), 42949672.96 * 2 * 3 / 30, 1); // all sends over 30 NICs
}

TEST(Plan, TwoServersAndOnlySlowServersAreAnswered) {
    const json two = parsed(plan({"--servers", "2", "--algorithm", "ring,optcc", "--slow", "0:1/2", "--json"}));
    EXPECT_EQ(two["recommended"], "ring");
    EXPECT_EQ(two["algorithms"][1]["applies"], false);
    const json all = parsed(plan({"--servers", "3", "--slow", "0:1/2,1:1/2,2:1/4", "--json"}));
    EXPECT_TRUE(all["recommended"].is_string());
    EXPECT_EQ(all["bound_time_ns"], 171798691);
}

TEST(Plan, OptionsReachTheOneAlgorithm) {
    const json answer =
        parsed(plan({"--servers", "8", "--slow", "3:1/2", "--algorithm", "optcc", "--option", "k=5", "--json"}));
    EXPECT_THAT(answer["algorithms"][0]["schedule"].get<std::string>(), HasSubstr("k=5"));
}

TEST(Plan, ASweepIsATableOfRowsForEachPointAndAlgorithm) {
    const Words words = {"--sweep", "p=4..16,ell=1..2+3", "--algorithm", "ring,optcc"};
    Words json_words = words;
    json_words.emplace_back("--json");
    const json answer = parsed(plan(json_words));
    ASSERT_EQ(answer["rows"].size(), 3U * 3U * 2U);
    EXPECT_EQ(answer["rows"][0]["servers"], 4);
    EXPECT_EQ(answer["rows"][17]["servers"], 16);
    EXPECT_EQ(answer["rows"][17]["slowdown"], 3.0);
    for (const json& row : answer["rows"]) {
        EXPECT_GE(row["vs_bound"].get<double>(), 1) << row;
        if (row["algorithm"] == "ring") { // without costs a ring takes as much longer as the slowest port
            EXPECT_NEAR(row["vs_healthy"].get<double>(), row["slowdown"].get<double>(), 1e-6);
        }
    }
    Words csv_words = words;
    csv_words.emplace_back("--csv");
    const Finished csv = plan(csv_words);
    EXPECT_THAT(csv.out, testing::StartsWith("servers,slow_servers,slowdown,bytes,algorithm,schedule,time_ns,"
                                             "vs_healthy,vs_bound,why_not\n4,1,1,1073741824,ring,\"ring(p=4)\","));
    EXPECT_EQ(std::ranges::count(csv.out, '\n'), 1 + 18);
    const Finished steps = plan({"--sweep", "p=4..10:3,m=0..2:1,bytes=1MiB..4MiB", "--algorithm", "ring", "--csv"});
    EXPECT_EQ(std::ranges::count(steps.out, '\n'), 1 + 3 * 3 * 3);
}

TEST(Plan, SimulatesWhenAskedTo) {
    for (const char* model : {"exclusive", "fluid"}) {
        const json answer = parsed(plan({"--servers", "8", "--slow", "3:1/2", "--algorithm", "ring,optcc", "--simulate",
                                         "--model", model, "--json"}));
        for (const json& row : answer["algorithms"]) {
            EXPECT_GE(row["simulated_ns"].get<std::int64_t>(), answer["bound_time_ns"].get<std::int64_t>()) << row;
        }
    }
    const json swept = parsed(plan({"--sweep", "p=4..8,ell=2", "--algorithm", "ring", "--simulate", "--json"}));
    EXPECT_EQ(swept["simulated"], true);
    EXPECT_NEAR(swept["rows"][1]["vs_healthy"].get<double>(), 2.0, 1e-6);
}

TEST(Plan, TheRecommendedPlanIsDrawnAndExported) {
    const TemporaryFolder home;
    const std::string picture = (home.path() / "plan.svg").string();
    const std::string trace = (home.path() / "plan.json").string();
    const Words question = {"--servers", "5", "--slow", "4:1/2", "--bytes", "20MiB"};
    const auto with = [&](const Words& more) {
        Words words = question;
        words.insert(words.end(), more.begin(), more.end());
        return plan(words);
    };
    const Finished drawn = with({"--gantt", picture, "--export", "chrome-trace", "-o", trace});
    EXPECT_EQ(drawn.status.code, 0) << drawn.err;
    EXPECT_THAT(drawn.out, HasSubstr("\nRecommended: optcc"));
    std::ifstream svg(picture);
    EXPECT_THAT(std::string(std::istreambuf_iterator<char>(svg), {}), HasSubstr("<svg"));
    std::ifstream events(trace);
    EXPECT_FALSE(json::parse(events, nullptr, false).is_discarded());
    const json exported = parsed(with({"--export", "json", "--algorithm", "ring"}));
    EXPECT_THAT(exported.dump(), HasSubstr("ring(p=5)"));
    EXPECT_THAT(with({"--export", "msccl-xml", "--algorithm", "ring"}).out, HasSubstr("<algo "));
}

struct Refusal {
    Words words;
    std::string reason; ///< part of the line on stderr
};

/// Clusters that cannot be.
std::vector<Refusal> refusals_of_clusters() {
    return {
        {{}, "--servers: 0 servers; allowed: 2 to 65536"},
        {{"--servers", "1"}, "--servers: 1 servers; allowed: 2 to 65536"},
        {{"--servers", "-3"}, "allowed: 2 to 65536"},
        {{"--servers", "10000000"}, "--servers: 10000000 servers; allowed: 2 to 65536"},
        {{"--servers", "20000", "--ranks-per-server", "64"}, "1280000 ranks in all; allowed: at most 65536"},
        {{"--servers", "4", "--ranks-per-server", "0"}, "--ranks-per-server: 0 ranks; allowed: 1 to 64"},
        {{"--servers", "4", "--nics", "0"}, "--nics: 0 NICs a server; allowed: 1 to 64"},
        {{"--servers", "4", "--nics", "65"}, "--nics: 65 NICs a server; allowed: 1 to 64"},
        {{"--servers", "4", "--nvlink", "0"}, "--nvlink: \"0\" is no ratio; allowed: "},
        {{"--servers", "4", "--bytes", "0B"}, "--bytes: 0B is no message; allowed: 4B to 1TiB"},
        {{"--servers", "4", "--bytes", "10B"}, "--bytes: 10B is no message"},
        {{"--servers", "4", "--bytes", "2TiB"}, "--bytes: 2TiB is no message"},
        {{"--servers", "4", "--bytes", "lots"}, "--bytes: "},
        {{"--servers", "4", "--rate", "0bit/s"}, "--rate: 0bit/s is no rate of a NIC; allowed: 1Mbit/s to"},
        {{"--servers", "4", "--rate", "400"}, "--rate: "},
        {{"--servers", "4", "--rate", "9999999Tbit/s"}, "--rate: "},
        {{"--servers", "4", "--slow", "4:1/2"}, "--slow: there is no host 4; allowed: hosts 0 to 3"},
        {{"--servers", "4", "--slow", "1:1/2,1:1/3"}, "--slow: host 1 is there twice; allowed: each host once"},
        {{"--servers", "4", "--slow", "1:3/2"}, "--slow: 3/2 in \"1:3/2\" is not between 1/100 and 1; allowed: "},
        {{"--servers", "4", "--slow", "1:0"}, "--slow: 0 in \"1:0\" is not between 1/100 and 1"},
        {{"--servers", "4", "--slow", "1:fast"}, "--slow: \"fast\" in \"1:fast\" is no fraction"},
        {{"--servers", "4", "--slow", "half"}, "--slow: \"half\" is not understood; allowed: HOST:FRACTION"},
        {{"--servers", "4", "--slow", "1:up=1/2"}, "--slow: \"1:up=1/2\" is not understood"},
        {{"--servers", "4", "--slow", "1:send=1/2+send=1/2"}, "is not understood"},
        {{"--servers", "4", "--slow", "1:send=1/2+"}, "is not understood"},
        {{"--servers", "4", "--dead", "5:0"}, "--dead: there is no host 5; allowed: hosts 0 to 3"},
        {{"--servers", "4", "--dead", "1:1"}, "--dead: \"1:1\" names no NIC; allowed: NICs 0 to 0"},
        {{"--servers", "4", "--dead", "1"}, "--dead: \"1\" is not understood; allowed: HOST:NIC"},
        {{"--servers", "4", "--nics", "2", "--dead", "1:0,1:1"}, "--dead: host 1 has no NIC left"},
        {{"--servers", "4", "--nics", "2", "--slow", "1:1/2", "--dead", "1:1"}, "host 1 is also in --slow"},
    };
}

/// Things that cannot be asked of a cluster.
std::vector<Refusal> refusals_of_questions() {
    return {
        {{"--servers", "4", "--latency", "2s"}, "--latency: 2s a flow is too much; allowed: 0ns to 1s"},
        {{"--servers", "4", "--overhead", "1"}, "--overhead: "},
        {{"--servers", "4", "--model", "solid"},
         "--model: there is no port model \"solid\"; allowed: exclusive, fluid"},
        {{"--servers", "4", "--algorithm", "magic"}, "--algorithm: there is no algorithm \"magic\"; allowed: ring"},
        {{"--servers", "4", "--option", "k=4"}, "--option: options are those of one algorithm"},
        {{"--servers", "4", "--algorithm", "optcc", "--option", "k"}, "--option: \"k\" is not understood"},
        {{"--servers", "4", "--algorithm", "ring", "--option", "k=4"},
         "--option: ring has no option \"k\"; allowed: channels (1..4)"},
        {{"--servers", "4", "--slow", "1:1/2", "--algorithm", "optcc", "--option", "k=0"},
         "k = \"0\" is not a number of segments; k is"},
        {{"--servers", "4", "--algorithm", "optcc", "--option", "k=4", "--option", "k=5"},
         "--option: k is there twice"},
        {{"--servers", "4", "--csv"}, "--csv is for --sweep"},
        {{"--servers", "4", "--slow", "1:1/2", "--sweep", "ell=2"}, "--sweep slows servers itself"},
        {{"--servers", "4", "--export", "pdf"}, "pdf"},
        {{"--servers", "4", "-o", "x"}, "--output is for --export"},
        {{"--servers", "4", "--sweep", "p=4", "--gantt", "x.svg"}, "--gantt and --export are for one plan"},
        {{"--servers", "2", "--algorithm", "optcc", "--slow", "1:1/2", "--gantt", "x.svg"}, "at least 3 servers"},
        {{"--servers", "4", "--gantt", "/nowhere/x.svg"}, "/nowhere/x.svg"},
    };
}

/// Sweeps that make no sense.
std::vector<Refusal> refusals_of_sweeps() {
    return {
        {{"--sweep", "q=4"}, "--sweep: \"q\" is not understood"},
        {{"--sweep", "p=1..4"}, "--sweep: p = 1 is out of range; allowed: whole numbers, 2 to 65536"},
        {{"--sweep", "p=4,ell=1/2"}, "--sweep: ell = 1/2 is out of range; allowed: 1 to 100"},
        {{"--sweep", "p=16..4"}, "--sweep: \"16..4\" of p is no range"},
        {{"--sweep", "p=2..65536:1"}, "--sweep: p has too many values"},
        {{"--sweep", "p=4,ell=1..2:0"}, "--sweep: \"0\" is no step of ell; allowed: a number above 0"},
        {{"--sweep", "p=4..8:1/2"}, "--sweep: \"1/2\" is no step of p; allowed: a whole number above 0"},
        {{"--sweep", "p=4,bytes=4B..16B:1B"}, "--sweep: \"1B\" is no step of bytes; allowed: a size of whole elements"},
        {{"--sweep", "p=8,m=0..3"}, "does not get from 0 to 3 by doubling; allowed: m=0..3:1"},
        {{"--sweep", "p=4,"}, "--sweep: nothing follows the last comma"},
        {{"--sweep", "p=4+"}, "--sweep: nothing follows the last + of p"},
        {{"--sweep", "p=4..8,m=9"}, "--sweep: more servers would be slow than there are"},
        {{"--sweep", "p=4,p=8"}, "is not understood, or there twice"},
    };
}

TEST(Plan, SaysInOneLineWhatIsWrongAndWhatIsAllowed) {
    for (const auto& refusals : {refusals_of_clusters(), refusals_of_questions(), refusals_of_sweeps()}) {
        for (const Refusal& refusal : refusals) {
            const Finished finished = plan(refusal.words);
            const std::string what = testing::PrintToString(refusal.words);
            EXPECT_EQ(finished.status.code, 64) << what;
            EXPECT_EQ(finished.out, "") << what;
            EXPECT_THAT(finished.err, HasSubstr(refusal.reason)) << what;
            EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
        }
    }
}

TEST(Plan, AnExportThatFailsLeavesNoFileAndSaysSoInJson) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "plan").string();
    const auto refused = [](const Finished& finished, const std::string& words) {
        EXPECT_EQ(finished.status.code, 64);
        EXPECT_THAT(finished.err, HasSubstr(words));
    };
    refused(plan({"--servers", "4", "--export", "json", "-o", "/dev/full"}), "cannot write /dev/full: No space left");
    // 1 MiB is no multiple of 7 elements: the error says which sizes would do.
    refused(plan({"--servers", "7", "--bytes", "1MiB", "--algorithm", "ring", "--export", "msccl-xml", "-o", file}),
            "take 262143 or 262150 elements");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    const json error = json::parse(plan({"--servers", "4", "--export", "pdf", "--json"}).out);
    EXPECT_EQ(error["schema"], "railbreak-error");
    EXPECT_EQ(error["kind"], "usage");
}

TEST(Plan, ACommandLineThatIsNotUnderstoodIsAnErrorInJson) {
    for (const Words& words : {Words{"--servers", "four"}, Words{"--frobnicate"}, Words{"--servers"}}) {
        Words with_json = words;
        with_json.insert(with_json.begin(), "--json");
        const Finished finished = plan(with_json);
        EXPECT_EQ(finished.status.code, 64);
        const json error = json::parse(finished.out, nullptr, false);
        EXPECT_EQ(error.value("schema", ""), "railbreak-error") << finished.out;
        EXPECT_THAT(finished.err, HasSubstr("; see railbreak --help"));
    }
}

} // namespace
} // namespace railbreak::tests
