#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <pugixml.hpp>

#include "harness/record/statistics.hpp"
#include "reports/html/assets.hpp"
#include "reports/html/chart.hpp"
#include "reports/html/element.hpp"
#include "reports/html/figures.hpp"
#include "reports/html/run_page.hpp"
#include "reports/html/suite_page.hpp"
#include "reports/html/trend_page.hpp"
#include "reports/html/view.hpp"
#include "tests/unit/record/run_fixture.hpp"
#include "tests/unit/reports/report_fixture.hpp"

namespace railbreak::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The page without what was embedded at build time, and without its hashes.
std::string skeleton(std::string page) {
    const auto cut = [&](std::string_view from, std::string_view to) {
        const std::size_t start = page.find(from);
        ASSERT_NE(start, std::string::npos) << from;
        const std::size_t begin = start + from.size();
        page.erase(begin, page.find(to, begin) - begin);
    };
    cut("<style>", "</style>");
    cut("<script>", "</script>");
    cut("Content-Security-Policy\" content=\"", "\"");
    return page;
}

void expect_golden(const std::string& name, const std::string& text) {
    const std::string path = std::string(RAILBREAK_SOURCE_DIR) + "/tests/golden/reports/" + name;
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path) << text;
    }
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    EXPECT_TRUE(text == golden.str()) << "differs from " << path << " (RAILBREAK_UPDATE_GOLDEN=1 writes it anew)";
}

// The page as a tree. It is XHTML as well, so a strict parser takes it.
pugi::xml_document parsed(const std::string& html) {
    pugi::xml_document document;
    const std::string page = skeleton(html);
    const pugi::xml_parse_result result = document.load_string(page.c_str(), pugi::parse_default | pugi::parse_doctype);
    EXPECT_TRUE(result) << result.description() << " at " << page.substr(static_cast<std::size_t>(result.offset), 200);
    return document;
}

pugi::xml_document parsed(const record::RunData& data) {
    return parsed(run_html(data));
}

pugi::xml_node table_named(const pugi::xml_document& document, const std::string& caption) {
    for (const pugi::xpath_node& found : document.select_nodes("//table")) {
        if (found.node().child("caption").text().as_string() == caption) {
            return found.node();
        }
    }
    ADD_FAILURE() << "no table \"" << caption << "\"";
    return {};
}

std::string text_of(const pugi::xml_node& node) {
    std::string text;
    for (const pugi::xpath_node& found : node.select_nodes(".//text()")) {
        text += found.node().value();
    }
    return text;
}

constexpr std::string_view kHostile =
    "<script>alert(1)</script>\"'&amp; \xF0\x9F\x94\xA5 \x1b[31m \xff\xfe \xE2\x80\xAE"
    "</style><img src=x onerror=alert(1)>]]>--><!-- javascript:alert(1)";

// Every text of a run is hostile.
record::RunData all_hostile() {
    record::RunData data = bad_run();
    const std::string text(kHostile);
    data.run.scenario_name = text;
    data.run.run_id = text;
    data.run.backend = text;
    data.run.version = text;
    data.run.dtype = text;
    data.run.command_line = text;
    data.run.scenario_text = text;
    data.run.plan_json = "{\"x\":\"</script><script>alert(1)</script>\"}";
    data.run.environment_json = R"({"</dt><script>":"<b onclick=alert(1)>","broken":{"a":["<i>"]}})";
    for (auto& host : data.hosts) {
        host.name = text;
        host.netns = text;
    }
    for (auto& nic : data.nics) {
        nic.name = nic.address = nic.mac = text;
    }
    for (auto& row : data.iterations) {
        row.algorithm += text;
        row.schedule = text;
    }
    data.iterations[2].phase = text;
    data.iterations[3].error = text;
    data.iterations[4].started_at = data.events[0].at = std::numeric_limits<std::int64_t>::max();
    data.iterations[5].duration_ns = data.injections[0].reverted_at = std::numeric_limits<std::int64_t>::max();
    data.iterations[6].started_at = data.injections[0].ordered_at = std::numeric_limits<std::int64_t>::min();
    data.counters.push_back({1, 0, 0, 1, "rtnl_link_stats64", "tx_bytes", std::numeric_limits<std::int64_t>::min()});
    for (auto& row : data.bounds) {
        row.algorithm += text;
        row.name = row.branch = text;
    }
    for (auto& row : data.injections) {
        row.algorithm += text;
        row.name = row.kind = row.mechanism = row.realism = row.data_path = row.error = row.observation_json = text;
        row.params_json = text;
        row.collateral_json = R"(["<script>",1])";
    }
    for (auto& row : data.verdicts) {
        row.subject = row.reason = text;
    }
    data.verdicts.push_back({1, text, text, text, text, std::nan(""), 1e300, -1e300});
    data.events.push_back({1, 1, text, text, text, text, text});
    data.artefacts.push_back({1, "gantt/" + text, "image/svg+xml", "<svg><script>alert(1)</script></svg>"});
    data.artefacts.push_back({1, "gantt/other", "text/html", text});
    return data;
}

TEST(RunHtml, OfEachRun) {
    expect_golden("good.html", skeleton(run_html(good_run())));
    expect_golden("bad.html", skeleton(run_html(bad_run())));
    expect_golden("unfinished.html", skeleton(run_html(unfinished_run())));
}

TEST(RunHtml, GivesTheSameBytesForTheSameRun) {
    EXPECT_TRUE(run_html(good_run()) == run_html(good_run()));
}

// A suite of three items: one passed, one failed, one still waits.
record::SuiteData small_suite(const std::string& text) {
    record::SuiteData suite;
    suite.suite = {1,
                   "20260131T120000Z-nightly-3f9c",
                   "nightly" + text,
                   "suite: nightly" + text,
                   "{}",
                   "0123",
                   7,
                   "lab",
                   "lab on node7" + text,
                   "0.1.0",
                   "railbreak run nightly.yaml" + text,
                   "{\"cpu\":\"Example\"}",
                   1'769'862'896'123'456'789,
                   1'769'862'990'000'000'000};
    for (std::int32_t i = 0; i < 3; ++i) {
        suite.items.push_back({1, i, "half-rate[host=3]#" + std::to_string(i) + text, "half-rate", "{\"host\":\"3\"}",
                               1, "0123", i == 2 ? "waiting" : "done", i == 2 ? 0 : i + 1, i == 2 ? 0 : i + 1, ""});
    }
    suite.run_ids = {good_run().run.run_id, "other", ""};
    suite.verdicts = {"pass", "fail", ""};
    suite.reasons = {"all 5 checks passed" + text, "a digest is wrong" + text, ""};
    return suite;
}

std::vector<record::RunData> runs_of_small_suite() {
    std::vector<record::RunData> runs{good_run(), bad_run()};
    runs[1].run.run_id = "other";
    return runs;
}

// Thirty nights: one series that becomes slower from night 20 on, with a missing value; another that is steady.
analyse::Trend small_trend(const std::string& text) {
    analyse::Trend trend;
    trend.scenario_name = "half-rate-nic" + text;
    trend.cluster = "lab on node7" + text;
    trend.notes = {"2 runs of another cluster are left out" + text};
    for (std::size_t i = 0; i < 30; ++i) {
        analyse::TrendRun run{.run_id = "run-" + std::to_string(i) + text, .plan_hash = "0123", .verdict = "pass"};
        run.started_realtime_ns = 1'769'862'896'000'000'000 + static_cast<std::int64_t>(i) * 86'400'000'000'000;
        run.verdict = i == 12 ? "fail" : "pass";
        run.gap = i == 15 ? std::optional(4.5) : std::nullopt;
        run.new_plan = i == 3;
        trend.runs.push_back(run);
    }
    for (const std::string phase : {"steady", "degraded"}) {
        analyse::TrendSeries series{.algorithm = "ring" + text, .phase = phase, .points = {}, .changes = {}};
        for (std::size_t i = 0; i < 30; ++i) {
            analyse::TrendPoint point{.iterations = 3, .counts = i != 12};
            point.value = 1e9 + static_cast<double>(i * 7919 % 13) * 1e6 + (i >= 20 && phase == "degraded" ? 3e7 : 0);
            point.overhead = *point.value / 0.99e9;
            if (i >= 8) {
                point.baseline = 1.006e9;
                point.band_low = 0.995e9;
                point.band_high = 1.015e9;
                point.change = *point.value / *point.baseline - 1;
                point.outside = *point.value > 1.015e9;
            }
            series.points.push_back(point);
        }
        series.points[6].value.reset();
        if (phase == "degraded") {
            series.changes = {{20, 1.006e9, 1.036e9, 0.0012}};
        }
        trend.series.push_back(std::move(series));
    }
    return trend;
}

TEST(SuiteHtml, OfASmallSuite) {
    const std::string page = suite_html(small_suite(""), runs_of_small_suite());
    expect_golden("suite.html", skeleton(page));
    EXPECT_TRUE(page == suite_html(small_suite(""), runs_of_small_suite()));
    EXPECT_THAT(page, HasSubstr("3 items: 1 fail, 1 waiting, 1 pass."));
    const pugi::xml_document document = parsed(page);
    EXPECT_EQ(table_named(document, "Every item").child("tbody").select_nodes("tr").size(), 3U);
    EXPECT_EQ(table_named(document, "Items that did not pass").child("tbody").select_nodes("tr").size(), 2U);
}

TEST(TrendHtml, OfThirtyNights) {
    const std::string page = trend_html(small_trend(""));
    expect_golden("trend.html", skeleton(page));
    EXPECT_TRUE(page == trend_html(small_trend("")));
    EXPECT_THAT(page, HasSubstr("+3.0 % from 2026-02-20 on"));
    EXPECT_THAT(page, HasSubstr("no change of level found"));
    EXPECT_THAT(page, HasSubstr("4.5 times the usual distance"));
    const pugi::xml_document document = parsed(page);
    EXPECT_EQ(table_named(document, "Runs of ring degraded").child("tbody").select_nodes("tr").size(), 30U);
    EXPECT_EQ(document.select_nodes("//figure[@id='trend-1']//*[@class='change']/title").size(), 1U);
}

TEST(RunHtml, IsWellFormedAndOrderly) {
    const std::string hostile(kHostile);
    for (const std::string& page :
         {run_html(good_run()), run_html(bad_run()), run_html(unfinished_run()), run_html(record::RunData{}),
          run_html(all_hostile()), suite_html(small_suite(""), runs_of_small_suite()),
          suite_html(small_suite(hostile), {all_hostile()}), suite_html({}, {}), trend_html(small_trend("")),
          trend_html(small_trend(hostile)), trend_html({})}) {
        EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
        const pugi::xml_document document = parsed(page);
        EXPECT_EQ(document.select_nodes("//h1").size(), 1U);
        std::set<std::string> ids;
        for (const pugi::xpath_node& found : document.select_nodes("//*/@id")) {
            EXPECT_TRUE(ids.insert(found.attribute().value()).second) << found.attribute().value() << " twice";
        }
        int level = 1;
        for (const pugi::xpath_node& found : document.select_nodes("//h1|//h2|//h3|//h4")) {
            const int next = found.node().name()[1] - '0';
            EXPECT_LE(next, level + 1) << "a heading leaves a level out: " << text_of(found.node());
            level = next;
        }
        for (const pugi::xpath_node& found : document.select_nodes("//a/@href")) {
            const std::string target = found.attribute().value();
            EXPECT_EQ(target.front(), '#');
            EXPECT_EQ(ids.count(target.substr(1)), 1U) << target;
        }
    }
}

TEST(RunHtml, NamesEveryPictureAndEveryColumn) {
    const pugi::xml_document document = parsed(good_run());
    for (const pugi::xpath_node& found : document.select_nodes("//svg[not(@aria-hidden)]")) {
        EXPECT_STREQ(found.node().attribute("role").value(), "img");
        EXPECT_STRNE(found.node().child("title").text().as_string(), "");
        EXPECT_STRNE(found.node().child("desc").text().as_string(), "");
    }
    for (const pugi::xpath_node& found : document.select_nodes("//table")) {
        EXPECT_STRNE(found.node().child("caption").text().as_string(), "");
    }
    EXPECT_TRUE(document.select_nodes("//th[not(@scope)]").empty());
    EXPECT_TRUE(document.select_nodes("//thead//th[not(text())]").empty());
    EXPECT_TRUE(document.select_nodes("//*[@style]").empty()) << "the policy forbids styles of single elements";
}

TEST(RunHtml, ShowsHostileTextAsText) {
    const std::string page = run_html(all_hostile());
    EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
    EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
    EXPECT_THAT(page, Not(HasSubstr("\x1b")));
    EXPECT_THAT(page, Not(HasSubstr("\xE2\x80\xAE"))) << "no mark that reorders text";
    const pugi::xml_document document = parsed(all_hostile());
    EXPECT_EQ(document.select_nodes("//script").size(), 1U);
    EXPECT_EQ(text_of(document.select_node("//h1").node()),
              "<script>alert(1)</script>\"'&amp; \xF0\x9F\x94\xA5 \xE2\x90\x9B[31m \xEF\xBF\xBD\xEF\xBF\xBD [U+202E]"
              "</style><img src=x onerror=alert(1)>]]>--><!-- javascript:alert(1)");
    for (const pugi::xpath_node& found : document.select_nodes("//@*")) {
        EXPECT_FALSE(std::string(found.attribute().name()).starts_with("on")) << found.attribute().name();
    }
    for (const pugi::xpath_node& found : document.select_nodes("//@src|//@href")) {
        const std::string value = found.attribute().value();
        EXPECT_TRUE(value.starts_with("#") || value.starts_with("data:image/svg+xml;base64,")) << value;
    }
    EXPECT_EQ(document.select_nodes("//img").size(), 1U) << "a picture of another kind than SVG is not embedded";
}

TEST(RunHtml, FetchesNothingAndRunsOnlyWhatWasEmbedded) {
    const std::string page = run_html(good_run());
    const auto hash = [](std::string_view text) {
        std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
        SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
        std::array<unsigned char, 64> encoded{};
        EVP_EncodeBlock(encoded.data(), digest.data(), SHA256_DIGEST_LENGTH);
        return std::string("'sha256-") + reinterpret_cast<const char*>(encoded.data()) + "'";
    };
    const auto between = [&](std::string_view from, std::string_view to) {
        const std::size_t begin = page.find(from) + from.size();
        return page.substr(begin, page.find(to, begin) - begin);
    };
    EXPECT_EQ(between("Content-Security-Policy\" content=\"", "\""),
              "default-src 'none'; style-src " + hash(between("<style>", "</style>")) + "; script-src " +
                  hash(between("<script>", "</script>")) + "; img-src data:; base-uri 'none'; form-action 'none'");
    EXPECT_THAT(between("<script>", "</script>"), HasSubstr("Redistribution and use in source and binary forms"));
    EXPECT_EQ(html::script(), between("<script>", "</script>")) << "nothing in it ends the element early";
    EXPECT_EQ(html::style_sheet(), between("<style>", "</style>"));
    EXPECT_THAT(between("<style>", "</style>"), Not(HasSubstr("@import")));
    EXPECT_LT(page.size(), 600'000U);
}

TEST(RunHtml, CarriesTheFiguresOfTheStatistics) {
    const record::RunData data = good_run();
    const pugi::xml_document document = parsed(data);
    const std::vector<record::PhaseStatistics> statistics = record::phase_statistics(data);
    const auto rows = table_named(document, "Times of every algorithm and phase").child("tbody").select_nodes("tr");
    ASSERT_EQ(rows.size(), statistics.size());
    for (std::size_t i = 0; i < statistics.size(); ++i) {
        const record::PhaseStatistics& entry = statistics[i];
        std::vector<pugi::xml_node> cells;
        for (const pugi::xml_node& cell : rows[i].node().children()) {
            cells.push_back(cell);
        }
        ASSERT_EQ(cells.size(), 13U);
        EXPECT_EQ(text_of(cells[0]), entry.algorithm);
        EXPECT_EQ(text_of(cells[1]), entry.phase);
        EXPECT_EQ(text_of(cells[2]), std::to_string(entry.iterations));
        const std::vector<std::optional<double>> values{
            entry.time_min_ns,       entry.time_median_ns,     entry.time_max_ns,
            entry.algbw_bytes_per_s, entry.busbw_bytes_per_s,  entry.vs_healthy,
            entry.vs_steady,         entry.overhead_exclusive, entry.overhead_fluid};
        for (std::size_t j = 0; j < values.size(); ++j) {
            EXPECT_EQ(values[j].has_value(), static_cast<bool>(cells[j + 3].attribute("data-key")));
            EXPECT_EQ(cells[j + 3].attribute("data-key").as_double(), values[j].value_or(0.0)) << i << " " << j;
        }
    }
}

TEST(RunHtml, ShowsEveryIterationWithItsExactTime) {
    const record::RunData data = bad_run();
    const std::string page = run_html(data);
    for (const record::IterationRow& row : data.iterations) {
        EXPECT_THAT(page, HasSubstr(html::exact_duration(row.duration_ns)));
    }
    for (const record::VerdictRow& row : data.verdicts) {
        EXPECT_THAT(page, HasSubstr(row.reason.substr(0, 30)));
    }
    EXPECT_THAT(page, HasSubstr("never")) << "a fault that was not observed";
    EXPECT_THAT(page, HasSubstr("<b>2026-01-31 12:34:56 UTC</b>"));
    EXPECT_THAT(run_html(good_run()), HasSubstr("took <b>41.88 s</b>"));
}

// A long run: 1000 iterations, of which one failed.
record::RunData long_run() {
    record::RunData data = record::fixture_run();
    const record::IterationRow model = *record::iterations_of(data, "ring", "steady").front();
    data.rank_iterations.clear();
    data.iterations.clear();
    for (std::int32_t i = 0; i < 1000; ++i) {
        record::IterationRow row = model;
        row.id = i + 1;
        row.iteration = i + 1;
        row.phase = i < 500 ? "steady" : "degraded";
        row.started_at = 5'000'000'000 + i * 2'000'000'000LL;
        row.duration_ns = 1'000'000'000 + i * 7919 % 1000 * 1000;
        row.error = i == 777 ? "rank 3: no progress for 5 s" : "";
        for (std::int32_t rank = 0; rank < 8; ++rank) {
            data.rank_iterations.push_back({row.id, rank, 1, 2, 1000 + rank, 1000, row.expected_digest});
        }
        data.iterations.push_back(row);
    }
    return data;
}

TEST(RunHtml, ThinsOutLongRunsAndSaysSo) {
    const std::string page = run_html(long_run());
    EXPECT_LT(page.size(), 600'000U);
    EXPECT_THAT(page, HasSubstr("of 1\u202F000 iterations are shown"));
    EXPECT_THAT(page, HasSubstr("no progress for 5 s")) << "what went wrong is never left out";
    EXPECT_THAT(page, HasSubstr("class=\"m bad\""));
}

TEST(HtmlView, ThinsToTheExtremesOfEachStretch) {
    const record::RunData data = long_run();
    const html::View view = html::view_of(data);
    const auto& all = view.algorithms.at(0).iterations;
    const auto few = html::thinned(all, 100);
    EXPECT_LE(few.size(), 110U);
    EXPECT_GE(few.size(), 90U);
    const auto slowest = std::max_element(all.begin(), all.end(),
                                          [](const auto* a, const auto* b) { return a->duration_ns < b->duration_ns; });
    EXPECT_NE(std::find(few.begin(), few.end(), *slowest), few.end());
    EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                               [](const auto* a, const auto* b) { return a->started_at < b->started_at; }));
    EXPECT_EQ(html::thinned(all, 1000).size(), 1000U);
}

TEST(HtmlText, ShowsWhatIsInvisibleOrBroken) {
    EXPECT_EQ(html::clean("a\tb\nc"), "a\tb\nc");
    EXPECT_EQ(html::clean(std::string_view("\0\x01\x7f", 3)), "\u2400\u2401\u2421");
    EXPECT_EQ(html::clean("\xC0\xAF"), "\uFFFD\uFFFD") << "an overlong form";
    EXPECT_EQ(html::clean("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD") << "a surrogate";
    EXPECT_EQ(html::clean("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD") << "beyond Unicode";
    EXPECT_EQ(html::clean("\xE2\x82"), "\uFFFD\uFFFD") << "cut off";
    EXPECT_EQ(html::clean("\u202Ex\u2066"), "[U+202E]x[U+2066]");
    EXPECT_EQ(html::clean("\u00E9 \u6F22 \U0001F525"), "\u00E9 \u6F22 \U0001F525");
}

TEST(HtmlElement, EscapesTextAndAttributes) {
    std::string out;
    html::element("p", {{"title", "\"<&>'"}}, "<&>\"", html::Element("br")).write(out);
    EXPECT_EQ(out, "<p title=\"&quot;&lt;&amp;&gt;'\">&lt;&amp;&gt;&quot;<br /></p>\n");
}

TEST(HtmlChart, PutsTicksAtRoundValuesWithinTheRange) {
    EXPECT_THAT(html::ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
    EXPECT_EQ(html::ticks(0.95, 1.04, 4).size(), 5U);
    EXPECT_EQ(html::ticks(-1, 1, 4), (std::vector<double>{-1, -0.5, 0, 0.5, 1}));
}

TEST(HtmlFigures, ReadWell) {
    EXPECT_EQ(html::exact_duration(-1234567), "-1\u202F234\u202F567 ns");
    EXPECT_EQ(html::grouped(999), "999");
    EXPECT_EQ(html::duration(45'000), "45 \u00B5s");
    EXPECT_EQ(html::plain(-0.001), "0");
    EXPECT_EQ(html::plain(12.50), "12.5");
    EXPECT_EQ(html::times(std::nullopt), html::kNone);
    EXPECT_EQ(html::counted(1, "fault"), "1 fault");
    EXPECT_EQ(html::moment(1'769'862'896'123'456'789), "2026-01-31 12:34:56 UTC");
}

} // namespace
} // namespace railbreak::reports
