// Every format of reports/format.hpp: the same run gives the same bytes, the bytes of the golden file, and no name from
// the database breaks the file. The readers here are those of libraries, not ours.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pugixml.hpp>

#include "reports/escape.hpp"
#include "reports/format.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;

std::string report_of(const record::RunData& data, std::string_view format) {
    const Result<const Format*> found = find_format(format);
    return found ? (*found)->write(data).value_or("") : "";
}

const std::map<std::string, record::RunData>& runs() {
    static const std::map<std::string, record::RunData> kRuns{
        {"good", good_run()}, {"bad", bad_run()}, {"unfinished", unfinished_run()}, {"hostile", hostile_run()}};
    return kRuns;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(Formats, GiveTheSameBytesForTheSameRunAndThoseOfTheGoldenFiles) {
    for (const Format& format : formats()) {
        for (const auto& [name, data] : runs()) {
            const Result<std::string> text = format.write(data);
            ASSERT_TRUE(text) << format.name << ": " << text.error().message();
            EXPECT_EQ(*text, format.write(data).value_or("")) << format.name;
            if (format.media_type != "text/html") { // a library comes with it; it has tests of its own
                expect_golden(name + std::string(format.suffix), *text);
            }
            EXPECT_TRUE(text->ends_with('\n')) << format.name;
            // JSON carries the names as they are, for programs.
            EXPECT_TRUE(*text == legible(*text) || format.media_type == "application/json")
                << format.name << " of " << name << " holds bytes that a viewer may choke on";
        }
    }
}

TEST(Formats, HaveNamesAndSuffixesOfTheirOwn) {
    std::set<std::string_view> names;
    std::set<std::string_view> suffixes;
    for (const Format& format : formats()) {
        names.insert(format.name);
        suffixes.insert(format.suffix);
        EXPECT_EQ(find_format(format.name).value_or(nullptr), &format);
        EXPECT_TRUE(format.suffix.starts_with('.'));
    }
    EXPECT_EQ(names.size(), formats().size());
    EXPECT_EQ(suffixes.size(), formats().size());
}

TEST(Formats, AnUnknownNameIsRefusedWithTheNamesThatThereAre) {
    const auto error = find_format("junitt").error();
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.to_line(), HasSubstr("did you mean junit? the formats are: text, json,"));
    const std::vector<std::string> names{"json", "text", "json"};
    const auto found = find_formats(names);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2U) << "each once";
    EXPECT_EQ(found->front()->name, "json");
    EXPECT_FALSE(find_formats(std::vector<std::string>{"json", ""}));
}

TEST(Formats, AFileStaysInItsFolder) {
    const Format* format = find_format("json").value_or(nullptr);
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(file_name(*format, good_run()), "20260131T123456Z-half-rate-nic-3f9c.json");
    EXPECT_EQ(file_name(*format, hostile_run()), "run_.._.._20260131T123456Z-_script_.json");
    record::RunData data;
    EXPECT_EQ(file_name(*format, data), "run_.json");
    data.run.run_id = std::string(5000, 'x');
    EXPECT_LE(file_name(*format, data).size(), 255U);
}

TEST(Escape, ReplacesWhatIsNoTextAndKeepsTheRest) {
    const std::string_view bad = "\xEF\xBF\xBD";
    EXPECT_EQ(legible("a\tb\nc \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
              "a\tb\nc \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
    for (const std::string_view one :
         {"\x01", "\r", "\x7F", "\xC2\x85", "\xFF", "\x80", "\xEF\xBF\xBE", "\xE2\x80\xAE", "\xE2\x81\xA6"}) {
        EXPECT_EQ(legible(one), bad);
    }
    EXPECT_EQ(legible(std::string_view("\0", 1)), bad);
    EXPECT_EQ(legible("\xC0\x80"), std::string(bad) + std::string(bad)) << "an overlong form";
    EXPECT_EQ(legible("\xED\xA0\x80").size(), 9U) << "a surrogate";
    EXPECT_EQ(legible("\xF4\x90\x80\x80").size(), 12U) << "beyond the last character";
    EXPECT_EQ(legible("\xE2\x82"), std::string(bad) + std::string(bad)) << "cut off";
    EXPECT_EQ(one_line("a\n\tb"), "a  b");
}

/// What a reader of JUnit's XML makes of it.
struct ReadCases {
    std::map<std::string, std::string> outcome; // by suite and name of the case
    int tests = 0;
};

ReadCases read_junit(const std::string& text) {
    pugi::xml_document document;
    EXPECT_TRUE(document.load_string(text.c_str()));
    ReadCases read;
    for (const pugi::xml_node suite : document.child("testsuites").children("testsuite")) {
        int counts[4] = {};
        for (const pugi::xml_node test : suite.children("testcase")) {
            const pugi::xml_node outcome = test.first_child();
            const std::string_view kind = outcome.name();
            ++counts[0];
            counts[1] += kind == "failure" ? 1 : 0;
            counts[2] += kind == "error" ? 1 : 0;
            counts[3] += kind == "skipped" ? 1 : 0;
            read.outcome[std::string(suite.attribute("name").value()) + ": " + test.attribute("name").value()] =
                outcome ? std::string(kind) + " " + outcome.attribute("type").value() : "pass";
        }
        EXPECT_EQ(suite.attribute("tests").as_int(), counts[0]);
        EXPECT_EQ(suite.attribute("failures").as_int(), counts[1]);
        EXPECT_EQ(suite.attribute("errors").as_int(), counts[2]);
        EXPECT_EQ(suite.attribute("skipped").as_int(), counts[3]);
        read.tests += counts[0];
    }
    return read;
}

TEST(JunitReport, HasACaseForEveryCheck) {
    for (const auto& [name, data] : runs()) {
        const int rows = static_cast<int>(data.verdicts.size());
        EXPECT_EQ(read_junit(report_of(data, "junit")).tests, std::max(rows, 1)) << name;
    }
}

TEST(JunitReport, SaysFailureErrorAndSkippedAsCiSystemsMeanThem) {
    EXPECT_THAT(read_junit(report_of(bad_run(), "junit")).outcome,
                ::testing::UnorderedElementsAre(
                    ::testing::Pair("run: verdict", "failure fail"),
                    ::testing::Pair("run: teardown half/optcc", "failure fail"),
                    ::testing::Pair("ring: correctness", "failure fail"),
                    ::testing::Pair("optcc: fault half/optcc", "error inconclusive"),
                    ::testing::Pair("tree: expectation tree/degraded vs_healthy", "error inconclusive")));
    record::RunData data = unfinished_run();
    EXPECT_EQ(read_junit(report_of(data, "junit")).outcome.at("run: verdict"), "error unfinished");
    for (const auto& [verdict, outcome] :
         {std::pair("pass", "pass"), std::pair("refused", "skipped refused"), std::pair("invalid", "error invalid"),
          std::pair("aborted", "error aborted")}) {
        data.verdicts = {{1, "run", "", verdict, "why", {}, {}, {}}};
        EXPECT_EQ(read_junit(report_of(data, "junit")).outcome.at("run: verdict"), outcome);
    }
}

TEST(JunitReport, ShowsHostileNamesAsText) {
    const std::string text = report_of(hostile_run(), "junit");
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(text.c_str()));
    const pugi::xml_node suite = document.child("testsuites").child("testsuite");
    EXPECT_STREQ(suite.attribute("package").value(), "railbreak.<script>alert(1)</script>");
    EXPECT_THAT(suite.child("system-out").text().get(), HasSubstr("reproduce: railbreak run '<script>alert(1)"));
    EXPECT_THAT(suite.child("system-err").text().get(), HasSubstr("error: h\"0\""));
}

/// Samples of a text of metrics by name and labels, read by the rules of the format.
std::map<std::string, double> read_metrics(const std::string& text) {
    std::map<std::string, double> samples;
    std::set<std::string> families;
    std::string family;
    for (const std::string& line : lines_of(text)) {
        if (line.starts_with("# HELP ")) {
            family = line.substr(7, line.find(' ', 7) - 7);
            EXPECT_TRUE(families.insert(family).second) << family << " twice";
        }
        if (line.starts_with('#')) {
            continue;
        }
        const std::size_t value = line.rfind("} ");
        const std::string key = line.substr(0, value + 1);
        EXPECT_EQ(key.substr(0, key.find('{')), family);
        EXPECT_TRUE(samples.emplace(key, std::stod(line.substr(value + 2))).second) << key << " twice";
    }
    return samples;
}

TEST(OpenMetricsReport, CarriesTheFiguresOfTheRun) {
    const auto samples = read_metrics(report_of(bad_run(), "openmetrics"));
    const auto at = [&](const std::string& name, const std::string& labels) {
        const auto found = samples.find("railbreak_" + name + "{scenario=\"half-rate-nic\"" + labels + "}");
        return found != samples.end() ? found->second : -1.0;
    };
    const std::string steady = ",algorithm=\"ring\",phase=\"steady\"";
    EXPECT_EQ(at("run_verdict", ",verdict=\"fail\""), 1);
    EXPECT_EQ(at("run_verdict", ",verdict=\"pass\""), 0);
    EXPECT_EQ(at("checks", ",verdict=\"inconclusive\""), 2);
    EXPECT_EQ(at("teardown_verified", ""), 0);
    EXPECT_EQ(at("wrong_iterations", steady), 1);
    EXPECT_NEAR(at("iteration_median_seconds", steady), 0.994593, 1e-6);
    EXPECT_NEAR(at("overhead_ratio", steady + ",model=\"fluid\""), 1.012, 1e-3);
    EXPECT_EQ(at("time_vs_healthy_ratio", steady), 1);
    EXPECT_EQ(at("injections_observed", ",algorithm=\"ring\",kind=\"cap\""), 1);
    EXPECT_EQ(at("injections_observed", ",algorithm=\"optcc\",kind=\"cap\""), 0);
    EXPECT_EQ(at("run_end_timestamp_seconds", ""), -1) << "it did not end";
    EXPECT_TRUE(report_of(bad_run(), "openmetrics").ends_with("\n# EOF\n"));
}

TEST(OpenMetricsReport, EscapesLabelsAndLeavesOutWhatLooksAlike) {
    record::RunData data = hostile_run();
    const auto before = read_metrics(report_of(data, "openmetrics"));
    EXPECT_THAT(report_of(data, "openmetrics"), HasSubstr("algorithm=\"opt`cc`|<i>&\\\"\\n"));
    for (const std::string_view byte : {"\xFE", "\xFF"}) {
        record::IterationRow row = data.iterations.front();
        row.algorithm = byte;
        data.iterations.push_back(row);
    }
    EXPECT_GT(read_metrics(report_of(data, "openmetrics")).size(), before.size());
}

} // namespace
} // namespace railbreak::reports
