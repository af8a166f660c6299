#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "reports/facts.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"
#include "reports/text.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Compares with the file tests/golden/reports/<name>; with RAILBREAK_UPDATE_GOLDEN set, writes it instead.
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
    EXPECT_EQ(last_line(text), "VERDICT none: the run did not finish");
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

TEST(Facts, CompareTheFormsThatWereTriedByTheirSchedules) {
    record::RunData data = record::fixture_run();
    EXPECT_EQ(compare_forms(data), std::nullopt) << "degraded iterations are no tries";
    for (const auto& [schedule, duration_ns] : {std::pair("one-lane", 120), std::pair("two-lanes", 100)}) {
        record::IterationRow row;
        row.algorithm = "optcc";
        row.phase = "comparison";
        row.schedule = schedule;
        row.duration_ns = duration_ns;
        data.iterations.push_back(row);
        if (duration_ns == 120) {
            EXPECT_EQ(compare_forms(data), std::nullopt) << "one form alone is no comparison";
        }
    }
    const std::optional<Comparison> comparison = compare_forms(data);
    ASSERT_TRUE(comparison.has_value());
    EXPECT_EQ(comparison->algorithm, "optcc");
    EXPECT_EQ(comparison->faster, "two-lanes");
    EXPECT_EQ(comparison->slower, "one-lane");
    EXPECT_DOUBLE_EQ(comparison->slower_over_faster, 1.2);
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

} // namespace
} // namespace railbreak::reports
