// Every format of reports/format.hpp: the same run gives the same bytes, the bytes of the golden file, and no name from
// the database breaks the file. The readers here are those of libraries, not ours.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "harness/analyse/verdict.hpp"
#include "reports/escape.hpp"
#include "reports/format.hpp"
#include "reports/markdown.hpp"
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
            EXPECT_TRUE(*text == legible(*text) || format.media_type.ends_with("json"))
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
    EXPECT_EQ(file_name(*format, good_run().run.run_id), "20260131T123456Z-half-rate-nic-3f9c.json");
    EXPECT_EQ(file_name(*format, hostile_run().run.run_id), "run_.._.._20260131T123456Z-_script_.json");
    record::RunData data;
    EXPECT_EQ(file_name(*format, data.run.run_id), "run_.json");
    data.run.run_id = std::string(5000, 'x');
    EXPECT_LE(file_name(*format, data.run.run_id).size(), 255U);
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

/// The events of a trace of some kind: "X", "b" ...
std::vector<nlohmann::json> events_of(const nlohmann::json& trace, std::string_view kind) {
    std::vector<nlohmann::json> events;
    for (const nlohmann::json& event : trace.at("traceEvents")) {
        if (event.at("ph") == kind) {
            events.push_back(event);
        }
    }
    return events;
}

TEST(TraceReport, OpensAndClosesEveryPairOnce) {
    for (const auto& [name, data] : runs()) {
        const auto trace = nlohmann::json::parse(report_of(data, "trace"));
        std::map<std::pair<std::string, std::string>, double> open; // since when, by category and id
        std::size_t closed = 0;
        for (const nlohmann::json& event : trace.at("traceEvents")) {
            EXPECT_GE(event.value("ts", 0.0), 0.0) << event;
            const std::string kind = event.at("ph");
            const std::pair<std::string, std::string> key(event.value("cat", ""), event.value("id", ""));
            if (kind == "b") {
                EXPECT_TRUE(open.emplace(key, event.at("ts")).second) << event;
            } else if (kind == "e") {
                ASSERT_TRUE(open.contains(key)) << event;
                EXPECT_GE(event.at("ts"), open.at(key));
                open.erase(key);
                ++closed;
            } else if (kind == "n") {
                EXPECT_TRUE(open.contains(key)) << event;
            }
        }
        EXPECT_TRUE(open.empty()) << name;
        EXPECT_EQ(closed > 0, name != "unfinished") << name;
    }
}

TEST(TraceReport, HasEveryIterationOfEveryRankAndEveryMomentOfAFault) {
    const record::RunData data = good_run();
    const auto trace = nlohmann::json::parse(report_of(data, "trace"));
    EXPECT_EQ(events_of(trace, "X").size(), data.iterations.size() + data.rank_iterations.size());
    EXPECT_EQ(events_of(trace, "C").size(), data.counters.size());
    const auto begins = events_of(trace, "b");
    const auto fault = std::find_if(begins.begin(), begins.end(), [](const auto& e) { return e.at("cat") == "fault"; });
    ASSERT_NE(fault, begins.end());
    EXPECT_EQ(fault->at("name"), "half/ring: cap on h3 rail0");
    EXPECT_EQ(fault->at("pid"), 3) << "a process for each host";
    const std::int64_t origin = std::stoll(trace.at("otherData").at("origin_monotonic_ns").get<std::string>());
    EXPECT_NEAR(fault->at("ts").get<double>() * 1e3, static_cast<double>(data.injections[0].applied_at - origin), 1);
    EXPECT_EQ(events_of(trace, "n").size(), data.injections.size()) << "each was observed";
}

TEST(TraceReport, ClosesAFaultThatWasNeverRevertedAndSaysSo) {
    record::RunData data = good_run();
    data.injections.resize(2);
    data.injections[0].reverted_at = 0;
    data.injections[0].restored_at = 0;
    data.injections[1].applied_at = 0;
    const std::string text = report_of(data, "trace");
    const auto trace = nlohmann::json::parse(text);
    EXPECT_THAT(text, HasSubstr("half/ring: cap on h3 rail0: never reverted"));
    EXPECT_THAT(text, HasSubstr("half/optcc: cap on h3 rail0: not applied"));
    std::vector<nlohmann::json> ends = events_of(trace, "e");
    std::erase_if(ends, [](const auto& event) { return event.at("cat") != "fault"; });
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].at("args").at("reverted"), false);
    double last = 0;
    for (const nlohmann::json& event : events_of(trace, "X")) {
        last = std::max(last, event.at("ts").get<double>() + event.at("dur").get<double>());
    }
    EXPECT_GE(ends[0].at("ts"), last) << "it acted until the run ended";
}

/// The words of the lines of a table of nccl-tests that are no comments.
std::vector<std::vector<std::string>> read_columns(const std::string& text) {
    std::vector<std::vector<std::string>> rows;
    for (const std::string& line : lines_of(text)) {
        std::istringstream in(line);
        std::vector<std::string> row;
        for (std::string word; in >> word;) {
            row.push_back(word);
        }
        if (!line.starts_with('#')) {
            rows.push_back(row);
        }
    }
    return rows;
}

TEST(NcclReport, HasTheColumnsOfNcclTests) {
    const std::string text = report_of(good_run(), "nccl");
    EXPECT_THAT(text,
                HasSubstr("\n#       size         count      type   redop    root     time   algbw   busbw  #wrong "
                          "    time   algbw   busbw  #wrong \n"));
    const auto rows = read_columns(text);
    ASSERT_EQ(rows.size(), 9U) << "three algorithms in three phases";
    EXPECT_EQ(rows[0], (std::vector<std::string>{"33554432", "8388608", "float", "sum", "-1", "N/A", "N/A", "N/A",
                                                 "N/A", "994593", "0.0337", "0.0590", "0"}));
    EXPECT_THAT(text, HasSubstr("\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.05"));
    EXPECT_EQ(read_columns(report_of(bad_run(), "nccl")).at(0).at(12), "1") << "a wrong iteration";
    for (const auto& row : read_columns(report_of(hostile_run(), "nccl"))) {
        EXPECT_EQ(row.size(), 13U);
    }
    record::RunData simulated = good_run();
    simulated.run.backend = record::kSimulatedBackend;
    EXPECT_EQ(read_columns(report_of(simulated, "nccl")).at(0).at(12), "N/A") << "nothing was computed";
}

TEST(NcclReport, HasTheShapeOfVersion3OfTheJson) {
    const auto json = nlohmann::json::parse(report_of(good_run(), "nccl-json"));
    EXPECT_EQ(json.at("version"), 3);
    EXPECT_EQ(json.at("config").at("devices").size(), 8U);
    EXPECT_EQ(json.at("out_of_bounds").at("okay"), "true");
    const auto& result = json.at("results").at(1);
    EXPECT_EQ(result.at("experiment_name"), "ring degraded");
    EXPECT_TRUE(result.at("out_of_place").is_null());
    EXPECT_DOUBLE_EQ(result.at("in_place").at("time"), 1968320.039);
    const auto& each = result.at("in_place_per_iter");
    EXPECT_EQ(each.at("times_us"), (std::vector<double>{1967320.039, 1968320.039, 1969320.039}));
    EXPECT_DOUBLE_EQ(each.at("p50_us"), 1968320.039);
    EXPECT_NEAR(each.at("stdev_us"), 816.497, 1e-3);
    const auto& processes = each.at("per_process_max_times_us");
    ASSERT_EQ(processes.size(), 8U);
    for (std::size_t i = 0; i < 3; ++i) {
        double slowest = 0;
        for (const auto& process : processes) {
            slowest = std::max(slowest, process.at(i).get<double>());
        }
        EXPECT_NEAR(slowest, each.at("times_us").at(i), 0.001) << "as nccl-tests' own analysis checks it";
    }
}

TEST(SuperbenchReport, HasALineForEachHost) {
    const auto lines = lines_of(report_of(good_run(), "superbench"));
    ASSERT_EQ(lines.size(), 8U);
    const auto third = nlohmann::json::parse(lines[3]);
    EXPECT_EQ(third.at("node"), "h3");
    EXPECT_EQ(third.at("allreduce-perf/return_code"), 0);
    EXPECT_NEAR(third.at("allreduce-perf/ring_steady_33554432_busbw"), 0.059039, 1e-6);
    EXPECT_NEAR(third.at("allreduce-perf/optcc_degraded_33554432_time"), 1362419.096, 1e-3);
    EXPECT_NEAR(third.at("nic-goodput/send_bw:0"), 0.05975375, 1e-8);
    for (const auto& [key, value] : third.items()) {
        EXPECT_TRUE(key == "node" || value.is_number()) << key;
    }
    EXPECT_EQ(nlohmann::json::parse(lines_of(report_of(bad_run(), "superbench"))[0]).at("allreduce-perf/return_code"),
              5)
        << "a fault that is not restored";
    EXPECT_EQ(nlohmann::json::parse(report_of(unfinished_run(), "superbench")).at("allreduce-perf/return_code"), 4);
    record::RunData data = good_run();
    for (const auto& [verdict, code] : std::map<std::string, int>{
             {"pass", 0}, {"fail", 1}, {"inconclusive", 2}, {"invalid", 2}, {"refused", 3}, {"aborted", 4}}) {
        data.verdicts = {{0, "run", "", verdict, "why", {}, {}, {}}};
        EXPECT_EQ(nlohmann::json::parse(lines_of(report_of(data, "superbench"))[0]).at("allreduce-perf/return_code"),
                  code);
        EXPECT_EQ(static_cast<int>(analyse::exit_code_of(data.verdicts)), code) << "what railbreak run ends with";
    }
}

TEST(MarkdownReport, BeginsWithTheVerdictAndKeepsItsTablesWhole) {
    EXPECT_TRUE(report_of(good_run(), "markdown")
                    .starts_with("## railbreak: half-rate-nic: pass\n\n**all 5 checks passed**\n"));
    EXPECT_TRUE(
        report_of(unfinished_run(), "markdown")
            .starts_with(
                "## railbreak: half-rate-nic: unfinished\n\n**the run has not ended; nothing is recorded of it**\n"));
    for (const auto& [name, data] : runs()) {
        std::ptrdiff_t columns = 0;
        for (std::string line : lines_of(report_of(data, "markdown"))) {
            for (std::size_t at = line.find("\\"); at != std::string::npos; at = line.find("\\", at)) {
                line.erase(at, 2); // an escaped letter
            }
            const auto bars = std::count(line.begin(), line.end(), '|');
            if (!line.starts_with('|')) {
                columns = 0;
                continue;
            }
            EXPECT_EQ(line.find('<'), std::string::npos) << line;
            EXPECT_TRUE(columns == 0 || bars == columns) << name << ": " << line;
            columns = bars;
        }
    }
}

TEST(MarkdownReport, ShowsAnyTextAsItIs) {
    EXPECT_EQ(markdown_text("a_b*c`d|e[f](g)<h>&"), "a\\_b\\*c\\`d\\|e\\[f\\](g)&lt;h&gt;&amp;");
    EXPECT_EQ(markdown_text("see http://x @me :tada: www.x"), "see http&#58;//x &#64;me &#58;tada: www&#46;x");
    EXPECT_EQ(markdown_text("ring: steady\n2"), "ring: steady 2");
    record::RunData data = good_run();
    data.run.command_line = "run ````` x";
    EXPECT_THAT(report_of(data, "markdown"), HasSubstr("\n``````sh\nrun ````` x\n``````\n"));
}

} // namespace
} // namespace railbreak::reports
