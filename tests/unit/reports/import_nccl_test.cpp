// What nccl-tests prints and writes, read back, and everything that must be refused. The samples have the columns and
// keys of nccl-tests 2.17 and its neighbours.
#include <algorithm>
#include <cstdint>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/statistics.hpp"
#include "reports/import_nccl.hpp"
#include "reports/nccl.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText = R"(# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on    node-a device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   4712 on    node-a device  1 [0000:0b:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid    815 on    node-b device  0 [0000:07:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid    816 on    node-b device  1 [0000:0b:00] NVIDIA H100 80GB HBM3
node-a:4711:4799 [0] NCCL INFO Using network Socket
#
#                                                              out-of-place                       in-place          
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong 
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         
     1048576        262144     float     sum      -1   152.30    6.88   10.33       0   149.90    7.00   10.49       0
     2097152        524288     float     sum      -1   211.10    9.93   14.90       0   209.70   10.00   15.00     N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 12.6802 
#
# Collective test concluded: all_reduce_perf
)";

constexpr std::string_view kJson = R"({"version":3,"start_time":"2026-01-31 12:34:56",
"args":["./build/all_reduce_perf","-b","1M","-J","out.json"],
"env":["HOME=/home/u","NCCL_IB_HCA==mlx5_0","AWS_SECRET=x"],"nccl_version":22807,
"config":{"nthreads":1,"ngpus":2,"minimum_bytes":1048576,"maximum_bytes":1048576,"step_factor":2,"warmup_iters":1,
"iterations":3,"aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":"false",
"per_iter_timing":"true","per_iter_skip":1,"parallel_init":"false","devices":[
{"rank":0,"group":0,"pid":4711,"hostname":"node-a","device":0,"device_hex":"0000:07:00","device_info":"H100"},
{"rank":2,"group":0,"pid":815,"hostname":"node-b","device":0,"device_hex":"0000:07:00","device_info":"H100"}]},
"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1","out_of_place":null,
"in_place":{"time":149.9,"alg_bw":6.995,"bus_bw":10.4927,"nwrong":0.0},
"in_place_per_iter":{"skipped_iterations":1,"min_us":149.0,"max_us":400.5,"times_us":[400.5,149.0,150.8]},
"actual_iterations":3,"experiment_name":"AllReduce"}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":10.49,"okay":"unchecked"},
"errors":[],"end_time":"2026-01-31 12:35:06"})";

Result<std::vector<record::RunData>> read(std::string_view text) {
    return import_nccl({.text = text, .file = "nccl.out", .name = "a100", .realtime_ns = 1'800'000'000'000'000'000});
}

std::string refusal(std::string_view text) {
    const auto runs = read(text);
    return runs ? "it was read" : runs.error().to_line();
}

// The sample with its first `from` replaced.
std::string changed(std::string_view sample, std::string_view from, std::string_view to) {
    std::string text(sample);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ImportNccl, ReadsWhatAllReducePerfPrints) {
    const auto runs = read(kText);
    ASSERT_TRUE(runs) << runs.error().to_line();
    ASSERT_EQ(runs->size(), 2U) << "one for each size";
    const record::RunData& run = runs->front();
    EXPECT_EQ(run.run.scenario_name, "a100-1048576");
    EXPECT_EQ(run.run.backend, "import");
    EXPECT_EQ(run.run.bytes, 1048576);
    EXPECT_EQ(run.run.dtype, "float32");
    EXPECT_EQ(run.run.hosts, 2);
    EXPECT_EQ(run.ranks.size(), 4U);
    EXPECT_EQ(run.hosts.at(1).name, "node-b");
    EXPECT_EQ(run.ranks.at(2).pid, 815);
    const auto statistics = record::phase_statistics(run);
    ASSERT_EQ(statistics.size(), 2U);
    EXPECT_EQ(statistics[0].algorithm, "nccl");
    EXPECT_EQ(statistics[0].time_median_ns, 149'900);
    EXPECT_NEAR(*statistics[0].busbw_bytes_per_s / 1e9, 10.49, 0.005) << "as nccl-tests computed it";
    EXPECT_EQ(statistics[0].wrong, 0);
    EXPECT_EQ(statistics[1].algorithm, "nccl-out-of-place");
    EXPECT_EQ(statistics[1].time_median_ns, 152'300);
    EXPECT_THAT(run.events.at(0).text, HasSubstr("each is the mean of 20 iterations; 1 other lines were passed over"));
}

TEST(ImportNccl, ClaimsNothingThatRailbreakDidNotSee) {
    const auto runs = read(kText);
    ASSERT_TRUE(runs);
    const auto& verdicts = runs->front().verdicts;
    EXPECT_EQ(verdicts.at(0).scope, "run");
    EXPECT_EQ(verdicts.at(0).verdict, "inconclusive");
    EXPECT_EQ(verdicts.at(0).reason, "imported from nccl-tests: railbreak verified nothing of it");
    EXPECT_EQ(verdicts.at(1).reason, "nccl-tests counted no wrong element; railbreak did not see the data");
    EXPECT_EQ(runs->at(1).verdicts.at(1).reason, "nccl-tests did not check the result (#wrong is N/A)");
    const auto wrong = read(changed(kText, "10.49       0", "10.49 1.2e+01"));
    ASSERT_TRUE(wrong) << wrong.error().to_line();
    EXPECT_EQ(wrong->front().verdicts.at(0).verdict, "fail");
    EXPECT_EQ(wrong->front().verdicts.at(0).reason, "correctness of nccl: nccl-tests counted 12 wrong elements");
    EXPECT_EQ(record::phase_statistics(wrong->front()).at(0).wrong, 1);
    const auto cut = read(kText.substr(0, kText.find("# Out of bounds")));
    ASSERT_TRUE(cut);
    EXPECT_THAT(cut->front().verdicts.at(0).reason, HasSubstr("may have been cut off"));
}

TEST(ImportNccl, ReadsTheJsonWithEachIteration) {
    const auto runs = read(kJson);
    ASSERT_TRUE(runs) << runs.error().to_line();
    ASSERT_EQ(runs->size(), 1U);
    const record::RunData& run = runs->front();
    EXPECT_EQ(run.run.scenario_name, "a100");
    EXPECT_TRUE(run.run.run_id.starts_with("20260131T123456Z-a100-")) << run.run.run_id;
    EXPECT_EQ(run.run.finished_realtime_ns - run.run.started_realtime_ns, 10'000'000'000);
    EXPECT_EQ(run.ranks.size(), 4U) << "two GPUs in each process";
    ASSERT_EQ(run.iterations.size(), 3U);
    EXPECT_EQ(run.iterations[0].phase, "warmup") << "nccl-tests leaves it out of its figures";
    EXPECT_EQ(run.iterations[0].duration_ns, 400'500);
    EXPECT_EQ(run.iterations[2].phase, "steady");
    EXPECT_EQ(run.iterations[2].iteration, 2);
    EXPECT_EQ(run.iterations[2].started_at, run.iterations[1].started_at + 149'000) << "one after the other";
    EXPECT_EQ(nlohmann::json::parse(run.run.environment_json),
              (nlohmann::json{{"nccl_version", "22807"}, {"NCCL_IB_HCA", "=mlx5_0"}}))
        << "and no secrets";
    EXPECT_EQ(read(kJson)->front().run.run_id, run.run.run_id) << "the same file is the same run";
}

TEST(ImportNccl, ReadsTheColumnsOfOtherOptionsByTheirNames) {
    // -I 1: figures of the iterations, and a time stamp at the end.
    std::string text(kText);
    text = changed(text, "time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
                   "time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min i_max i_p99 i_cv% "
                   "timestamp");
    text = changed(text, "10.33       0", "10.33 0 1 2 3 4");
    text = changed(text, "10.49       0", "10.49 0 1 2 3 4 2026-01-31 12:00:00");
    text = changed(text, "14.90       0", "14.90 0 1 2 3 4");
    text = changed(text, "15.00     N/A", "15.00 N/A 1 2 3 4 2026-01-31 12:00:00");
    const auto runs = read(text);
    ASSERT_TRUE(runs) << runs.error().to_line();
    EXPECT_EQ(runs->size(), 2U);
    EXPECT_EQ(runs->front().iterations.front().duration_ns, 149'900);
    // Rounds of the same size are further iterations.
    const std::size_t line = kText.find("     1048576");
    text = std::string(kText);
    text.insert(line, kText.substr(line, kText.find('\n', line) - line + 1));
    const auto twice = read(text);
    ASSERT_TRUE(twice);
    EXPECT_EQ(twice->front().iterations.size(), 4U) << "two in place, two out of place";
    EXPECT_EQ(twice->front().iterations.at(1).iteration, 2);
}

TEST(ImportNccl, NamesFilePlaceValueAndWhatIsAllowed) {
    EXPECT_EQ(refusal(changed(kText, "149.90", "14x.9")),
              "nccl.out:15: time: 14x.9 [file=nccl.out, where=15, value=14x.9]; allowed: a number");
    EXPECT_THAT(refusal(changed(kText, "149.90", "-1")), HasSubstr("nccl.out:15: time: -1 [")) << "below 0";
    EXPECT_THAT(refusal(changed(kText, "     0\n", "\n")), HasSubstr("nccl.out:15: a result: 12 words"));
    EXPECT_THAT(refusal(changed(kText, "float", "flaot")), HasSubstr("type: flaot ["));
    EXPECT_THAT(refusal(changed(kText, "sum", "none")), HasSubstr("redop: none ["));
    EXPECT_THAT(refusal(changed(kText, "262144", "262145")), HasSubstr("count: 262145 ["));
    EXPECT_THAT(refusal(changed(kText, "#wrong     time", "error     time")), HasSubstr("a column: error ["));
    EXPECT_THAT(refusal(changed(kText, "all_reduce_perf", "all_gather_perf")), HasSubstr("allowed: all_reduce_perf"));
    EXPECT_THAT(refusal(changed(kText, "6.88   10.33", "6.88    5.16")),
                HasSubstr("allowed: 1.500 times algbw, as of an AllReduce over 4 ranks"));
    EXPECT_THAT(refusal(changed(kText, "Rank  1 Group  0", "Rank  0 Group  0")), HasSubstr("a rank's number: 0 ["));
    EXPECT_THAT(refusal(kText.substr(kText.find("     1048576"))), HasSubstr("a result without a header"));
    EXPECT_THAT(refusal(changed(changed(kText, "149.90", "N/A"), "152.30", "N/A")),
                HasSubstr("line 15: time: N/A twice"));
    EXPECT_THAT(refusal(""), HasSubstr("ranks: none"));
    EXPECT_THAT(refusal(kText.substr(0, kText.find("     1048576"))), HasSubstr("results: none"));
}

TEST(ImportNccl, NamesThePlaceInTheJson) {
    EXPECT_EQ(refusal(changed(kJson, "149.9,", "\"nan\",")),
              "nccl.out:results[0].in_place: time: \"nan\" [file=nccl.out, where=results[0].in_place, value=\"nan\"]; "
              "allowed: a number");
    EXPECT_THAT(refusal(changed(kJson, "[400.5,", "[1e300,")),
                HasSubstr("nccl.out:results[0].in_place_per_iter.times_us[0]: "));
    EXPECT_THAT(refusal(changed(kJson, "\"time\"", "\"cpu_time\"")), HasSubstr("the key: \"time\" ["));
    EXPECT_THAT(refusal(changed(kJson, "\"version\":3", "\"version\":4")),
                HasSubstr("allowed: a whole number, 1 to 3"));
    EXPECT_THAT(refusal(changed(kJson, "\"ngpus\":2", "\"ngpus\":3")), HasSubstr("rank: 2 ["));
    EXPECT_THAT(refusal(changed(kJson, "all_reduce_perf", "alltoall_perf")), HasSubstr("args[0]: the test: "));
    EXPECT_THAT(refusal(kJson.substr(0, 500)), HasSubstr("it is no JSON: "));
    EXPECT_THAT(refusal("{}"), HasSubstr("the key: \"version\""));
}

TEST(ImportNccl, RefusesReportsOfRailbreakItself) {
    EXPECT_THAT(refusal(run_nccl_text(good_run())), HasSubstr("a report of railbreak in the columns of nccl-tests"));
    EXPECT_THAT(refusal(run_nccl_json(good_run())), HasSubstr("a report of railbreak in the shape of nccl-tests"));
}

TEST(ImportNccl, WhateverIsDamagedIsReadOrRefusedAndNothingElse) {
    std::mt19937_64 random(20'260'131);
    for (int round = 0; round < 1000; ++round) {
        std::string text(round % 2 == 0 ? kText : kJson);
        for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
            const std::size_t at = random() % text.size();
            const std::size_t length = std::min<std::size_t>(random() % 12, text.size() - at);
            switch (random() % 4) { // not an enum
            case 0: text[at] = static_cast<char>(random()); break;
            case 1: text.erase(at, length); break;
            case 2: text.insert(at, text.substr(random() % text.size(), length)); break;
            default: text.insert(at, std::to_string(random())); break;
            }
        }
        const auto runs = read(text);
        if (!runs) {
            EXPECT_EQ(runs.error().kind(), ErrorKind::kInput);
            EXPECT_THAT(runs.error().to_line(), HasSubstr("nccl.out:"));
            EXPECT_FALSE(runs.error().advice().empty());
            continue;
        }
        for (const record::RunData& run : *runs) {
            EXPECT_GT(run.run.bytes, 0);
            EXPECT_FALSE(run.ranks.empty());
            EXPECT_FALSE(run.iterations.empty());
            EXPECT_GT(run.run.finished_realtime_ns, run.run.started_realtime_ns);
            EXPECT_FALSE(run.verdicts.empty());
            EXPECT_NE(run.verdicts.front().verdict, "pass");
            EXPECT_TRUE(std::all_of(run.iterations.begin(), run.iterations.end(),
                                    [](const auto& row) { return row.duration_ns > 0; }));
        }
    }
}

} // namespace
} // namespace railbreak::reports
