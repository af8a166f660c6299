// The reports of suites in every format: golden files, and what becomes of each kind of item.
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "harness/analyse/suite.hpp"
#include "harness/record/figures_json.hpp"
#include "reports/escape.hpp"
#include "reports/format.hpp"
#include "reports/html/suite_page.hpp"
#include "reports/junit.hpp"
#include "reports/markdown.hpp"
#include "reports/openmetrics.hpp"
#include "reports/suite_json.hpp"
#include "reports/suite_table.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;

TEST(SuiteReport, IsThatOfTheGoldenFiles) {
    expect_golden("suite.txt", suite_table(mixed_suite()));
    expect_golden("suite.json", suite_json(mixed_suite()));
    EXPECT_EQ(suite_json(mixed_suite()), suite_json(mixed_suite()));
}

TEST(SuiteReport, IsTheSameInEveryFormatEachTime) {
    for (const Format& format : formats()) {
        if (format.write_suite == nullptr) {
            continue;
        }
        const std::string text = format.write_suite(mixed_suite(), runs_of_mixed_suite());
        EXPECT_EQ(text, format.write_suite(mixed_suite(), runs_of_mixed_suite())) << format.name;
        EXPECT_TRUE(text.ends_with('\n')) << format.name;
        if (format.media_type != "text/html") { // a library comes with it; it has tests of its own
            expect_golden("suite" + std::string(format.suffix), text);
        }
    }
}

TEST(SuiteReport, JunitHasEveryItemOnceAndSaysWhatDidNotRun) {
    pugi::xml_document document;
    const std::string text = suite_junit(mixed_suite(), runs_of_mixed_suite());
    ASSERT_TRUE(document.load_string(text.c_str()));
    std::map<std::string, std::string> outcome; // of each package's verdict
    std::set<std::string> ids;
    for (const pugi::xml_node suite : document.child("testsuites").children("testsuite")) {
        EXPECT_TRUE(ids.insert(suite.attribute("id").value()).second) << "an id twice";
        if (std::string_view(suite.attribute("name").value()) == "run") {
            const pugi::xml_node test = suite.find_child_by_attribute("testcase", "name", "verdict");
            const bool added = outcome.emplace(suite.attribute("package").value(), test.first_child().name()).second;
            EXPECT_TRUE(added) << suite.attribute("package").value();
        }
    }
    ASSERT_EQ(outcome.size(), mixed_suite().items.size());
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=0]"), "");
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=1]"), "failure");
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=3]"), "skipped") << "refused";
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=4]"), "error") << "its run is gone";
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=5]"), "error") << "interrupted";
    EXPECT_EQ(outcome.at("railbreak.nightly.half[host=6]"), "skipped") << "waits";
}

TEST(SuiteReport, MetricsOfItemsDifferByItemAndStandTogether) {
    const std::string text = suite_openmetrics(mixed_suite(), runs_of_mixed_suite());
    EXPECT_THAT(text, HasSubstr("railbreak_suite_verdict{suite=\"nightly\",verdict=\"fail\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("railbreak_suite_items{suite=\"nightly\",outcome=\"pass\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("railbreak_run_verdict{scenario=\"half-rate-nic\",item=\"half[host=0]\",verdict="
                                "\"pass\"} 1\n"));
    std::set<std::string> samples;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << line << " a second time";
    }
}

TEST(SuiteReport, MarkdownHasWhatDidNotPassFirst) {
    const std::string text = suite_markdown(mixed_suite(), runs_of_mixed_suite());
    EXPECT_THAT(text, ::testing::StartsWith("## railbreak: suite nightly: fail\n"));
    EXPECT_LT(text.find("What did not pass"), text.find("All items (8)"));
    EXPECT_EQ(text.find("<script>"), std::string::npos);
}

TEST(SuiteReport, PageHasTheVerdictOfTheSuite) {
    for (const std::string word : {"pass", "inconclusive", "refused", "aborted", "fail", "invalid"}) {
        record::SuiteData suite = mixed_suite();
        for (std::size_t i = 0; i < suite.items.size(); ++i) {
            suite.items[i].state = "done";
            suite.verdicts[i] = i == 0 ? word : word == "invalid" ? "fail" : "inconclusive";
        }
        const analyse::SuiteOutcome outcome = analyse::judge_suite(suite);
        const std::string page = suite_html(suite, {});
        EXPECT_THAT(page, HasSubstr(fmt::format("<div class=\"banner v-{}\">", to_string(outcome.verdict)))) << word;
        EXPECT_THAT(page, HasSubstr(fmt::format("<p class=\"reason\">{}", suite.items[word == "pass" ? 1 : 0].name)));
    }
    EXPECT_THAT(suite_html(mixed_suite(), {}), HasSubstr("1 interrupted, 1 skipped, 1 unknown, 1 waiting, 1 pass."));
}

TEST(SuiteReport, AnItemWhoseRunWasPrunedKeepsItsVerdictAndFiguresInEveryFormat) {
    record::SuiteData suite = mixed_suite();
    std::vector<record::RunData> runs = runs_of_mixed_suite();
    const auto report = [&](std::string_view name) { return (*find_format(name))->write_suite(suite, runs); };
    const std::string all_there = report("openmetrics");
    record::PrunedOutcome& pruned = suite.items[0].pruned;
    pruned = {.run_id = suite.run_ids[0],
              .verdict = "pass",
              .reason = suite.reasons[0],
              .started_realtime_ns = runs[0].run.started_realtime_ns,
              .finished_realtime_ns = runs[0].run.finished_realtime_ns,
              .figures_json = record::figures_json(record::phase_statistics(runs[0]))};
    suite.items[0].run = 0;
    suite.items[0].scenario_name = runs[0].run.scenario_name;
    suite.run_ids[0].clear();
    runs.erase(runs.begin());

    EXPECT_THAT(report("text"), ::testing::ContainsRegex("half\\[host=0\\] +pass +1 +deleted"));
    EXPECT_THAT(report("json"), HasSubstr("\"pruned_run_id\": \"" + pruned.run_id + "\""));
    EXPECT_THAT(report("markdown"),
                HasSubstr("| pass | half\\[host=0\\] | ring 1.558, optcc 1.078, optcc-shared 1.051 | deleted |"));
    EXPECT_THAT(report("html"), HasSubstr(">deleted<"));
    const std::string junit = report("junit");
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(junit.c_str()));
    const pugi::xml_node item = document.child("testsuites").first_child();
    EXPECT_STREQ(item.attribute("package").value(), "railbreak.nightly.half[host=0]");
    EXPECT_STREQ(item.attribute("tests").value(), "1");
    EXPECT_STREQ(item.attribute("errors").value(), "0");
    EXPECT_STREQ(item.child("testcase").attribute("name").value(), "verdict");
    EXPECT_FALSE(item.child("testcase").first_child()) << "it passed";

    // Every gauge that is left is as it was.
    std::istringstream lines(report("openmetrics"));
    int of_item = 0;
    for (std::string line; std::getline(lines, line);) {
        EXPECT_THAT(all_there, HasSubstr(line + "\n"));
        of_item += line.find("item=\"half[host=0]\"") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(of_item, 40);
    suite.verdicts[0] = pruned.verdict = "fail";
    const std::string failed = report("junit");
    ASSERT_TRUE(document.load_string(failed.c_str()));
    EXPECT_STREQ(document.child("testsuites").first_child().child("testcase").first_child().name(), "failure");
}

TEST(SuiteReport, LabelsOfAMatrixAreTextInEveryFormat) {
    const std::string label = "<b>a</b>\n| `x` [y](z)\r\x1b[31m ]]> & \"q\" 'r' \\ \xff\xe2\x80\xae =1+1";
    record::SuiteData suite = mixed_suite();
    for (const std::size_t item : {std::size_t{0}, std::size_t{3}}) { // with a run, and without one
        suite.items[item].name = "half[what=" + label + "]#" + std::to_string(item);
        suite.items[item].params_json =
            nlohmann::json({{"what", label}}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        suite.items[item].scenario_name = label;
    }
    suite.suite.name = label;
    const std::vector<record::RunData> runs = runs_of_mixed_suite();
    const auto report = [&](std::string_view name) { return (*find_format(name))->write_suite(suite, runs); };

    for (const char letter : report("text")) {
        EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
    }
    for (const std::string_view format : {"markdown", "html", "openmetrics", "junit"}) {
        const std::string text = report(format);
        EXPECT_EQ(text.find("<b>a"), format == "openmetrics" ? text.find("<b>a</b>\\n") : std::string::npos) << format;
        EXPECT_EQ(text.find('\x1b'), std::string::npos) << format;
        EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << format << ": turns the writing round";
        EXPECT_EQ(legible(text), text) << format;
    }
    EXPECT_EQ(nlohmann::json::parse(report("json")).at("items").at(0).at("params").at("what").get<std::string>(),
              nlohmann::json::parse(suite.items[0].params_json).at("what").get<std::string>());

    std::istringstream markdown(report("markdown"));
    for (std::string line; std::getline(markdown, line);) {
        if (line.starts_with("| ")) {
            std::size_t bars = 0;
            for (std::size_t i = 0; i < line.size(); ++i) {
                bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\') ? 1 : 0;
            }
            EXPECT_EQ(bars, 5U) << line;
        }
    }
    pugi::xml_document document;
    const std::string junit = report("junit");
    ASSERT_TRUE(document.load_string(junit.c_str()));
    for (const pugi::xml_node node : document.child("testsuites").children("testsuite")) {
        EXPECT_EQ(std::string_view(node.attribute("package").value()).find_first_of("\r\x1b"), std::string::npos);
    }
    std::istringstream metrics(report("openmetrics"));
    for (std::string line; std::getline(metrics, line);) {
        EXPECT_TRUE(line.starts_with("railbreak_") || line.starts_with("# ")) << line;
    }
}

TEST(SuiteReport, TellsTheWorstOfTheItems) {
    record::SuiteData data = mixed_suite();
    const auto verdict = [&] {
        const analyse::SuiteOutcome outcome = analyse::judge_suite(data);
        return std::pair(std::string(to_string(outcome.verdict)), static_cast<int>(exit_code_of(outcome)));
    };
    EXPECT_EQ(verdict(), std::pair(std::string("fail"), 1)) << "a proven failure stands, whatever is left";
    data.verdicts[1] = "invalid";
    EXPECT_EQ(verdict(), std::pair(std::string("invalid"), 2));
    data.verdicts[2] = "fail";
    EXPECT_EQ(verdict(), std::pair(std::string("invalid"), 1));
    data.verdicts[1] = data.verdicts[2] = "pass";
    EXPECT_EQ(verdict(), std::pair(std::string("aborted"), 4)) << "two items have not run";
    data.items[5].state = data.items[6].state = "skipped";
    EXPECT_EQ(verdict(), std::pair(std::string("refused"), 3));
    data.items[3].state = "skipped";
    EXPECT_EQ(verdict(), std::pair(std::string("inconclusive"), 2)) << "the run of one item was deleted";
    data.verdicts[4] = "pass";
    EXPECT_EQ(verdict(), std::pair(std::string("pass"), 0));
    data.items[0].reason = "teardown not verified: h1";
    EXPECT_EQ(verdict(), std::pair(std::string("pass"), 5)) << "beside the verdict, never in its place";
}

} // namespace
} // namespace railbreak::reports
