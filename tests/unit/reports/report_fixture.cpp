#include "tests/unit/reports/report_fixture.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/record/run_fixture.hpp"

namespace railbreak::reports {

using record::RunData;

namespace {

constexpr std::string_view kKept = "optcc-star(k=32,straggler=3)";

// Moves what happened at `from` or later by `by` nanoseconds.
void delay(RunData& data, std::int64_t from, std::int64_t by) {
    const auto move = [&](std::int64_t& at) { at += at >= from ? by : 0; };
    for (auto& row : data.iterations) {
        move(row.started_at);
    }
    for (auto& row : data.rank_iterations) {
        move(row.started_at);
        move(row.ended_at);
    }
    for (auto& row : data.injections) {
        for (std::int64_t* at :
             {&row.ordered_at, &row.applied_at, &row.observed_at, &row.reverted_at, &row.restored_at}) {
            move(*at);
        }
    }
    for (auto& row : data.events) {
        move(row.at);
    }
}

// OptCC runs a ring while nothing is wrong, and three forms are tried on the damage. The fastest was kept.
void add_comparison(RunData& data) {
    const auto degraded = record::iterations_of(data, "optcc", "degraded");
    for (auto& row : data.iterations) {
        row.schedule = row.algorithm == "optcc-shared" ? "optcc-shared-cut(k=64,straggler=3)" : "ring(p=8)";
    }
    for (record::IterationRow* row : degraded) {
        row->schedule = kKept;
    }
    record::IterationRow row = *degraded.front();
    std::int64_t now = row.started_at;
    std::vector<record::IterationRow> tries;
    for (const auto& [schedule, duration_ns] :
         {std::pair(std::string_view("optcc-cut(k=64,straggler=3)"), 1'491'000'000LL),
          std::pair(std::string_view("optcc-star(k=16,straggler=3)"), 1'372'500'000LL),
          std::pair(kKept, 1'361'500'000LL)}) {
        row.id = 1000 + static_cast<std::int64_t>(tries.size());
        row.phase = "comparison";
        row.iteration = static_cast<std::int32_t>(tries.size()) + 1;
        row.schedule = schedule;
        row.started_at = now;
        row.duration_ns = duration_ns;
        now += duration_ns + 2'000'000;
        tries.push_back(row);
    }
    const auto at = std::find_if(data.iterations.begin(), data.iterations.end(), [](const auto& other) {
        return other.algorithm == "optcc" && other.phase == "degraded";
    });
    const auto index = at - data.iterations.begin();
    delay(data, tries.front().started_at, now - tries.front().started_at);
    data.iterations.insert(data.iterations.begin() + index, tries.begin(), tries.end());
}

} // namespace

RunData good_run() {
    RunData data = record::fixture_run();
    add_comparison(data);
    data.verdicts = {{1, "run", "", "pass", "all 5 checks passed", {}, {}, {}},
                     {1, "teardown", "", "pass", "all 3 injections verified as restored", {}, {}, {}},
                     {1, "correctness", "ring", "pass", "10 iterations, every digest right on 8 ranks", {}, {}, {}},
                     {1, "fault", "half/ring", "pass", "seen in goodput", 238'700'000.0, 215'000'000.0, 263'000'000.0},
                     {1,
                      "expectation",
                      "optcc/degraded overhead_exclusive",
                      "pass",
                      "median overhead_exclusive of 3 iterations is 1.0782, not above the maximum of 1.1",
                      1.0782,
                      {},
                      1.1}};
    return data;
}

RunData bad_run() {
    RunData data = record::fixture_run();
    std::erase_if(data.iterations, [](const auto& row) { return row.algorithm == "optcc-shared"; });
    data.iterations.back().error = "rank 3 on h3: \xE2\x98\xA0 no progress \x1b[31mfor 5 s";
    iterations_of(data, "ring", "steady").at(1)->correct = false;
    data.injections.pop_back();
    data.injections[1].observed_at = 0;
    data.injections[1].measured_send_bits_per_s = 0;
    data.injections[1].measured_receive_bits_per_s = 0;
    data.injections[1].restored_at = 0;
    data.injections[1].error = "the class on the switch's port h3-rail0 still has the rate 250 Mbit/s after three "
                               "tries over netlink, although "
                               "each was acknowledged";
    data.verdicts = {
        {1, "run", "", "fail", "correctness of ring: steady iteration 2: wrong result (and 2 more)", {}, {}, {}},
        {1,
         "teardown",
         "half/optcc",
         "fail",
         "h3 rail0 was not verified as restored: the class on the switch's port h3-rail0 still has the rate 250 "
         "Mbit/s; "
         "run railbreak recover --all on that host",
         {},
         {},
         {}},
        {1, "correctness", "ring", "fail", "steady iteration 2: wrong result", {}, {}, {}},
        {1, "fault", "half/optcc", "inconclusive", "the fault was applied but never observed", {}, {}, {}},
        {1,
         "expectation",
         "tree/degraded vs_healthy",
         "inconclusive",
         "no data: no iteration was completed",
         {},
         {},
         1.1}};
    data.run.finished_realtime_ns = 0;
    return data;
}

RunData unfinished_run() {
    RunData data;
    data.run = record::fixture_run().run;
    data.run.finished_realtime_ns = 0;
    data.run.environment_json = "";
    return data;
}

RunData hostile_run() {
    constexpr std::string_view kScenario = "<script>alert(1)</script>";
    constexpr std::string_view kAlgorithm = "opt`cc`|<i>&\"\n\x1b[31m\xFF\\";
    constexpr std::string_view kHost = "h\"0\" \xF0\x9F\x98\x80 'x' \xE2\x80\xAEgpj";
    constexpr std::string_view kFault = "half]]>|\t--><!-- \xC0\x80";
    RunData data = bad_run();
    data.run.scenario_name = kScenario;
    data.run.run_id = "../../20260131T123456Z-<script>";
    data.run.command_line = "railbreak run '<script>alert(1)</script>.yaml' ```\n| rm";
    data.run.environment_json = "{\"NCCL_\\\"X\\\"\":\"<b>\\u0007|\",\"cpu\":{\"a\":[1,2]}}";
    for (auto& host : data.hosts) {
        host.name = std::string(kHost) + std::to_string(host.host);
    }
    for (auto& nic : data.nics) {
        nic.name = "rail|`0`<br>";
    }
    const auto rename = [&](std::string& name) { name = name == "optcc" ? std::string(kAlgorithm) : name; };
    for (auto& row : data.iterations) {
        rename(row.algorithm);
        row.schedule += "<&>";
    }
    for (auto& row : data.bounds) {
        rename(row.algorithm);
    }
    for (auto& row : data.injections) {
        rename(row.algorithm);
        row.name = kFault;
        row.params_json = "{broken";
    }
    for (auto& row : data.verdicts) {
        if (row.scope == "fault") {
            row.subject = std::string(kFault) + "/" + std::string(kAlgorithm);
        }
        row.reason += " <b>\xED\xA0\x80</b> | `x` [a](b) *c* _d_";
    }
    data.events.push_back({1, data.events.front().at + 1, "error", std::string(kHost), "broken", "\x07 a\r\nb", "{"});
    return data;
}

std::vector<record::RunSummary> summaries() {
    const record::RunRow run = record::fixture_run().run;
    const record::RunSummary good{run.run_id,
                                  run.scenario_name,
                                  "lab",
                                  run.plan_hash,
                                  run.seed,
                                  8,
                                  run.started_realtime_ns,
                                  run.finished_realtime_ns,
                                  "pass",
                                  "all 17 checks passed",
                                  ""};
    record::RunSummary bad = good;
    bad.run_id = "20260131T120000Z-half-rate-nic-0001";
    bad.verdict = "inconclusive";
    bad.reason = "fault of half/optcc: the fault was applied but never observed, which takes more room than there is";
    bad.teardown_problem = "h3 rail0 was not verified as restored";
    record::RunSummary running = good;
    running.run_id = "20260131T110000Z-half-rate-nic-0002";
    running.finished_realtime_ns = 0;
    running.verdict = "";
    running.reason = "";
    return {good, bad, running};
}

record::SuiteData mixed_suite() {
    record::SuiteData data;
    data.suite = {.suite_id = "20260131T123456Z-nightly-3f9c",
                  .name = "nightly",
                  .plan_hash = "5f2a8b50dd9b00da0f0a920b83f75fe0",
                  .seed = 18'446'744'073'709'551'615ULL,
                  .backend = "lab",
                  .cluster = "lab on node7 <\x1b[31m>",
                  .version = "0.1.0 abc",
                  .command_line = "railbreak run nightly.yaml",
                  .environment_json = R"({"cpus":2})",
                  .started_realtime_ns = 1'769'862'896'000'000'000,
                  .finished_realtime_ns = 0};
    const auto add = [&](const std::string& name, const std::string& state, std::int32_t attempts,
                         const std::string& verdict, const std::string& reason, bool has_run = true) {
        const auto index = static_cast<std::int32_t>(data.items.size());
        data.items.push_back({.suite = 1,
                              .item = index,
                              .name = name,
                              .scenario_name = "half",
                              .params_json = index == 0 ? R"({"host":"0"})" : "not json",
                              .plan_hash = "77",
                              .state = state,
                              .run = has_run ? index + 1 : 0,
                              .attempts = attempts,
                              .reason = has_run ? "" : reason});
        data.run_ids.push_back(has_run ? "20260131T123456Z-half-" + std::to_string(index) : "");
        data.verdicts.push_back(verdict);
        data.reasons.push_back(reason);
    };
    add("half[host=0]", "done", 1, "pass", "all 5 checks passed");
    add("half[host=1]", "done", 2, "fail", "expectation of ring/degraded: above the maximum");
    add("half[host=<script>\n\x1b[2J\"]", "done", 1, "inconclusive", "\x1b]0;evil\x07 \"quoted\" \xff");
    add("half[host=3]", "done", 0, "", "refused by the site policy", false);
    add("half[host=4]", "done", 1, "", "", false);
    add("half[host=5]", "running", 1, "", "");
    add("half[host=6]", "waiting", 0, "", "", false);
    add("half[host=7]", "skipped", 0, "", "half[host=1] did not pass", false);
    return data;
}

std::vector<RunData> runs_of_mixed_suite() {
    const record::SuiteData suite = mixed_suite();
    std::vector<RunData> runs{good_run(), bad_run(), hostile_run()};
    for (std::size_t i = 0; i < runs.size(); ++i) {
        runs[i].run.run_id = suite.run_ids[i];
    }
    return runs;
}

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(RAILBREAK_SOURCE_DIR) + "/tests/golden/reports/" + name;
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path) << text;
    }
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_EQ(text, golden.str()) << "differs from " << path << " (RAILBREAK_UPDATE_GOLDEN=1 writes it anew)";
}

} // namespace railbreak::reports
