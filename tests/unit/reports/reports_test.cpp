#include <algorithm>
#include <cmath>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/analyse/analyse.hpp"
#include "reports/facts.hpp"
#include "reports/format.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/run_page.hpp"
#include "reports/html/view.hpp"
#include "reports/json.hpp"
#include "reports/section.hpp"
#include "reports/table.hpp"
#include "reports/text.hpp"
#include "scenarios/load.hpp"
#include "scenarios/plan.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using record::RunData;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_plain(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), 120U) << line;
        EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; })) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << "\"" << line << "\"";
    }
    EXPECT_TRUE(text.ends_with('\n'));
}

std::string last_line(const std::string& text) {
    const std::size_t end = text.find_last_not_of('\n');
    const std::size_t start = text.rfind('\n', end);
    return text.substr(start + 1, end - start);
}

TEST(RunTable, OfAGoodRun) {
    const std::string text = run_table(good_run());
    expect_plain(text);
    expect_golden("good.txt", text);
    EXPECT_EQ(last_line(text), "VERDICT pass: all 5 checks passed");
}

TEST(RunTable, OfABadRun) {
    const std::string text = run_table(bad_run());
    expect_plain(text);
    expect_golden("bad.txt", text);
    for (const auto& row : bad_run().verdicts) {
        EXPECT_THAT(text, HasSubstr(row.reason.substr(0, 30))) << "the reason of every check that did not pass";
    }
}

TEST(RunTable, OfAnUnfinishedRun) {
    const std::string text = run_table(unfinished_run());
    expect_plain(text);
    expect_golden("unfinished.txt", text);
    EXPECT_EQ(last_line(text), "VERDICT none: the run has not ended; nothing is recorded of it");
    record::RunData data = good_run(); // as it is while it runs, or when its controller died
    data.run.finished_realtime_ns = 0;
    data.verdicts.clear();
    data.events.clear();
    data.iterations.resize(2);
    const std::string last =
        "the run has not ended; what it recorded last, 2.000 s after its beginning: iteration 2 of "
        "ring warmup";
    for (std::int32_t i = 0; i < 2; ++i) {
        data.iterations[static_cast<std::size_t>(i)] = {
            .algorithm = "ring", .phase = "warmup", .iteration = i + 1, .started_at = (2 * i + 1) * 1'000'000'000LL};
    }
    for (const Format& format : formats()) {
        if (format.name == "text" || format.name == "json" || format.name == "html" || format.name == "junit" ||
            format.name == "markdown") {
            EXPECT_THAT(*format.write(data), ::testing::HasSubstr(last)) << format.name;
        }
    }
    EXPECT_THAT(*section_text(data, "verdict"), ::testing::HasSubstr(last));
}

TEST(RunTable, ColoursOnlyWhenAsked) {
    const std::string plain = run_table(bad_run());
    std::string coloured = run_table(bad_run(), {.colour = true});
    EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
    EXPECT_THAT(coloured, HasSubstr("VERDICT \x1b[1;31mfail\x1b[0m: "));
    // Without the escapes it is the same text.
    for (std::size_t at = coloured.find('\x1b'); at != std::string::npos; at = coloured.find('\x1b')) {
        coloured.erase(at, coloured.find('m', at) - at + 1);
    }
    EXPECT_EQ(coloured, plain);
}

TEST(RunTable, StaysInItsColumnsWithLongNames) {
    record::RunData data = good_run();
    for (auto& row : data.iterations) {
        row.algorithm += std::string(90, 'x');
    }
    for (auto& row : data.bounds) {
        row.algorithm += std::string(90, 'x');
    }
    data.run.environment_json = "{\"a\":\"" + std::string(500, 'y') + "\"}";
    data.verdicts[0].reason = std::string(300, 'z');
    expect_plain(run_table(data));
}

TEST(RunJson, OfEachRun) {
    expect_golden("good.json", run_json(good_run()));
    expect_golden("bad.json", run_json(bad_run()));
    expect_golden("unfinished.json", run_json(unfinished_run()));
}

TEST(RunJson, CarriesTheFiguresOfTheRows) {
    const auto json = nlohmann::json::parse(run_json(good_run()));
    EXPECT_EQ(json.at("verdict"), "pass");
    EXPECT_EQ(json.at("run").at("seed"), "18446744073709551615") << "as text: JSON readers round large numbers";
    EXPECT_EQ(json.at("iterations").size(), good_run().iterations.size());
    EXPECT_EQ(json.at("injections").at(0).at("ordered_offset_ns").get<std::int64_t>() + origin_ns(good_run()),
              good_run().injections[0].ordered_at);
    EXPECT_EQ(json.at("cluster").at("healthy_send_goodput").at("max_bits_per_s"), 478'070'000);
    EXPECT_EQ(json.at("injections").at(0).at("observation").at("rate_bytes_per_s"), 31'250'000);
    EXPECT_TRUE(nlohmann::json::parse(run_json(bad_run())).at("injections").at(1).at("observed_offset_ns").is_null());
}

TEST(Reports, GiveTheSameBytesForTheSameRun) {
    EXPECT_EQ(run_table(good_run()), run_table(good_run()));
    EXPECT_EQ(run_json(bad_run()), run_json(bad_run()));
}

TEST(RunJson, SurvivesTextThatIsNotUtf8AndFactsThatAreNotJson) {
    record::RunData data = good_run();
    data.run.environment_json = "{broken";
    data.injections[0].error = "\xFF\xFE";
    const auto json = nlohmann::json::parse(run_json(data));
    EXPECT_EQ(json.at("run").at("environment"), "{broken");
    EXPECT_EQ(json.at("injections").at(0).at("error"), "\xEF\xBF\xBD\xEF\xBF\xBD");
    expect_plain(run_table(data));
}

TEST(ListTable, ShowsEveryRunWithItsReason) {
    const std::string text = list_table(summaries());
    expect_plain(text);
    expect_golden("list.txt", text);
    expect_golden("list.json", list_json(summaries()));
    EXPECT_EQ(list_table({}), "No runs yet.\n");
    EXPECT_THAT(list_table(summaries(), {.colour = true}), HasSubstr("\x1b[1;32mpass\x1b[0m"));
}

void add_try(record::RunData& data, const std::string& algorithm, const std::string& schedule, std::int64_t duration_ns,
             const std::string& error = "") {
    record::IterationRow row;
    row.algorithm = algorithm;
    row.phase = "comparison";
    row.schedule = schedule;
    row.duration_ns = duration_ns;
    row.error = error;
    data.iterations.push_back(row);
}

TEST(Facts, ListTheFormsThatWereTriedFromTheFastest) {
    record::RunData data = record::fixture_run();
    EXPECT_TRUE(compare_forms(data).empty()) << "degraded iterations are no tries";
    add_try(data, "optcc", "slow", 150);
    EXPECT_TRUE(compare_forms(data).empty()) << "one form alone is no comparison";
    add_try(data, "optcc", "failed", 90, "no progress for 5 s");
    EXPECT_TRUE(compare_forms(data).empty()) << "a failed try has no time";
    add_try(data, "optcc", "optcc U", 100);
    add_try(data, "optcc", "middle", 110);
    add_try(data, "optcc", "middle", 130);
    const std::vector<Comparison> comparisons = compare_forms(data);
    ASSERT_EQ(comparisons.size(), 1U);
    EXPECT_EQ(comparisons[0].algorithm, "optcc");
    EXPECT_EQ(comparisons[0].kept, "optcc U") << "the schedule of the degraded iterations";
    ASSERT_EQ(comparisons[0].forms.size(), 3U);
    EXPECT_EQ(comparisons[0].forms[0].schedule, "optcc U");
    EXPECT_EQ(comparisons[0].forms[0].over_fastest, 1.0);
    EXPECT_EQ(comparisons[0].forms[1].schedule, "middle");
    EXPECT_EQ(comparisons[0].forms[1].time_median_ns, 120.0);
    EXPECT_DOUBLE_EQ(comparisons[0].forms[1].over_fastest, 1.2);
    EXPECT_DOUBLE_EQ(comparisons[0].forms[2].over_fastest, 1.5);
}

TEST(Facts, CompareTheFormsOfEachAlgorithmByItself) {
    record::RunData data;
    add_try(data, "b", "b one", 100);
    add_try(data, "a", "a one", 50);
    add_try(data, "b", "b two", 80);
    add_try(data, "a", "a two", 60);
    const std::vector<Comparison> comparisons = compare_forms(data);
    ASSERT_EQ(comparisons.size(), 2U);
    EXPECT_EQ(comparisons[0].algorithm, "b") << "in the order of the run";
    EXPECT_EQ(comparisons[0].forms[0].schedule, "b two");
    EXPECT_EQ(comparisons[0].kept, "") << "no degraded iteration ran";
    EXPECT_EQ(comparisons[1].forms[0].schedule, "a one");
    EXPECT_THAT(run_table(data), Not(HasSubstr("(kept)")));
    EXPECT_TRUE(nlohmann::json::parse(run_json(data)).at("comparison").at(0).at("kept").is_null());
}

TEST(Facts, NameTheSchedulesOfAPhaseInTheOrderOfTheirFirstUse) {
    record::RunData data;
    add_try(data, "optcc", "second", 1);
    add_try(data, "optcc", "first", 1);
    add_try(data, "optcc", "second", 1);
    add_try(data, "optcc", "", 1);
    add_try(data, "ring", "other", 1);
    EXPECT_EQ(schedules_of(data, "optcc", "comparison"), (std::vector<std::string>{"second", "first"}));
    EXPECT_TRUE(schedules_of(data, "optcc", "steady").empty());
}

TEST(RunTable, NamesTheSchedulesOnlyOfAnAlgorithmThatChangesThem) {
    const std::string text = run_table(good_run());
    EXPECT_THAT(text, HasSubstr("\n  optcc warmup, steady, recovered: ring(p=8)\n"
                                "  optcc degraded: optcc-star(k=32,straggler=3)\n"));
    EXPECT_THAT(text, Not(HasSubstr("  ring warmup")));
    EXPECT_THAT(run_table(bad_run()), Not(HasSubstr("Schedules"))) << "each algorithm ran one schedule";
}

TEST(RunTable, ShowsABoundOnce) {
    record::RunData data = good_run();
    const auto lines_with = [](const std::string& text, std::string_view part) {
        std::istringstream lines(text);
        int count = 0;
        for (std::string line; std::getline(lines, line);) {
            count += line.find(part) != std::string::npos ? 1 : 0;
        }
        return count;
    };
    EXPECT_EQ(lines_with(run_table(data), "Theorem 6"), 2) << "healthy and degraded";
    for (auto& row : data.bounds) {
        row.time_ns += row.algorithm == "optcc" && row.phase == "degraded" ? 50'000 : 0;
    }
    EXPECT_EQ(lines_with(run_table(data), "Theorem 6"), 3) << "another figure is another line";
    for (auto& row : data.bounds) {
        row.time_over_n += row.algorithm == "ring" && row.phase == "steady" ? 1 : 0;
    }
    const std::string text = run_table(data);
    EXPECT_EQ(lines_with(text, "Theorem 6"), 5);
    EXPECT_THAT(text, HasSubstr("optcc, optcc-shared\n")) << "in the same phases";
}

TEST(Text, WrapsAtSpacesAndCutsLongWords) {
    EXPECT_EQ(wrapped("short", 2), "short\n");
    const std::string word(200, 'w');
    EXPECT_EQ(wrapped(word, 2), std::string(120, 'w') + "\n  " + std::string(80, 'w') + "\n");
    EXPECT_EQ(wrapped(std::string(100, 'a') + " " + std::string(30, 'b'), 4),
              std::string(100, 'a') + "\n    " + std::string(30, 'b') + "\n");
}

TEST(Text, AlignsAndCutsTheLastColumnThenTheWidest) {
    EXPECT_EQ(aligned({{"a", "bb"}, {"ccc", "d"}}, "lr"), "a    bb\nccc   d\n");
    const std::string line = aligned({{std::string(200, 'x'), "end"}}, "ll");
    EXPECT_EQ(line.size(), 121U);
    EXPECT_THAT(line, HasSubstr("x~  end\n"));
    const std::string last = aligned({{std::string(60, 'x'), std::string(100, 'y')}}, "ll");
    EXPECT_EQ(last, std::string(60, 'x') + "  " + std::string(57, 'y') + "~\n");
}

/// The plan that the fixture's run carried out, with an expectation about when OptCC is back to normal.
scenarios::Plan plan_with_recovery(const std::string& band) {
    const scenarios::KnownAlgorithms known{.list = {{"ring"}, {"optcc"}, {"optcc-shared"}}, .check_options = {}};
    const auto scenario = scenarios::load_scenario(
        "railbreak: 1\nname: half-rate-nic\ncluster: {hosts: 8, rate: 500Mbit/s}\n"
        "workload: {collective: allreduce, bytes: 32MiB, algorithms: [ring, optcc, optcc-shared]}\n"
        "faults:\n  - {name: half, kind: cap, target: {host: 3}, fraction: 1/2, during: degraded}\n"
        "expect:\n  - {algorithm: optcc, metric: recovery_time, band: " +
            band + ", max: 2s}\n",
        "test.yaml", known);
    return *scenarios::expand(*scenario, 1);
}

/// The verdict on the recovery of OptCC, after the page of the same run was found to say the same.
record::VerdictRow agreed_recovery(RunData data, const std::string& band) {
    const scenarios::Plan plan = plan_with_recovery(band);
    data.run.plan_json = plan.canonical_json;
    const auto rows = analyse::analyse(data, plan).verdicts;
    const auto row = std::ranges::find(rows, "half/optcc recovery_time", &record::VerdictRow::subject);
    std::erase_if(data.iterations, [](const auto& one) { return one.algorithm != "optcc"; });
    std::erase_if(data.injections, [](const auto& one) { return one.algorithm != "optcc"; });
    const html::View view = html::view_of(data);
    const std::string page = run_html(data);
    const std::string tile = "<p class=\"tilelabel\">Back to normal</p>";
    const bool no_data = row->reason.starts_with("no data: ");
    const bool missing = row->reason.starts_with("none of ");
    EXPECT_EQ(page.find(tile) != std::string::npos, !no_data) << row->reason;
    EXPECT_EQ(page.find("<p class=\"value\">never<") != std::string::npos, missing) << row->reason;
    EXPECT_EQ(page.find("back to normal ") != std::string::npos, !no_data && !missing) << "the mark in the chart";
    if (row->measured) {
        const double measured_ns = std::round(*row->measured * 1e9);
        EXPECT_THAT(page, HasSubstr("back to normal " + html::duration(measured_ns) + " after the fault"));
        EXPECT_EQ(static_cast<double>(view.algorithms.at(0).recovery->time_ns), measured_ns);
    }
    return *row;
}

TEST(RunHtml, IsBackToNormalWhereTheVerdictSaysSo) {
    RunData data = record::fixture_run();
    const auto recovered = record::iterations_of(data, "optcc", "recovered");
    EXPECT_EQ(agreed_recovery(data, "5%").verdict, "pass") << "with the first recovered iteration";

    recovered[0]->duration_ns *= 2;
    recovered[1]->correct = false;
    record::VerdictRow row = agreed_recovery(data, "5%");
    EXPECT_EQ(row.verdict, "fail") << "only with the third, which is late";
    EXPECT_THAT(row.reason, HasSubstr("recovered iteration 3 ended, within 5 % of the steady median"));

    recovered[2]->duration_ns = recovered[2]->duration_ns * 107 / 100; // within 10 % of the steady median
    row = agreed_recovery(data, "5%");
    EXPECT_EQ(row.verdict, "fail");
    EXPECT_THAT(row.reason, HasSubstr("none of 3 iterations was back within 5 % of the steady median"));
    EXPECT_THAT(agreed_recovery(data, "10%").reason, HasSubstr("recovered iteration 3 ended, within 10 %"));

    data.injections.at(1).reverted_at = recovered[2]->started_at + recovered[2]->duration_ns + 1;
    EXPECT_EQ(agreed_recovery(data, "5%").reason, "no data: no iteration ended after the fault was undone");
    data.injections.at(1).reverted_at = 0;
    EXPECT_EQ(agreed_recovery(data, "5%").reason, "no data: the fault was never undone");
}

} // namespace
} // namespace railbreak::reports
