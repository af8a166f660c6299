// The reports of suites in every format: golden files, and what becomes of each kind of item.
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include "harness/analyse/suite.hpp"
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
