#include "reports/markdown.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "harness/analyse/suite.hpp"
#include "harness/record/statistics.hpp"
#include "reports/escape.hpp"
#include "reports/facts.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;

std::string markdown_text(std::string_view text) {
    std::string out;
    const std::string line = one_line(text);
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const bool alone = i + 1 == line.size() || line[i + 1] == ' ';
        switch (c) {
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '&': out += "&amp;"; break;
        case '@': out += "&#64;"; break;               // a mention
        case ':': out += alone ? ":" : "&#58;"; break; // a link without brackets, or the name of an emoji
        case '\\':
        case '`':
        case '*':
        case '_':
        case '[':
        case ']':
        case '|':
        case '~':
        case '#':
        case '$':
            out += '\\';
            out += c;
            break;
        default: out += c; // not an enum
        }
    }
    for (std::size_t at = out.find("www."); at != std::string::npos; at = out.find("www.", at + 1)) {
        out.replace(at + 3, 1, "&#46;"); // the other link without brackets
    }
    return out;
}

namespace {

using Row = std::vector<std::string>;

// `alignment` has a letter for each column: l or r.
std::string table(const Row& titles, std::string_view alignment, const std::vector<Row>& rows) {
    const auto line = [](const Row& cells) {
        std::string text = "|";
        for (const std::string& cell : cells) {
            text += fmt::format(" {} |", cell);
        }
        return text + "\n";
    };
    std::string out = line(titles) + "|";
    for (const char c : alignment) {
        out += c == 'r' ? " ---: |" : " --- |";
    }
    out += "\n";
    for (const Row& row : rows) {
        out += line(row);
    }
    return out;
}

std::string figure(const std::optional<double>& value, double scale) {
    return value ? fmt::format("{:.3f}", *value / scale) : "-";
}

std::string duration(std::int64_t nanoseconds) {
    return to_string(Nanoseconds(nanoseconds));
}

std::string digest_cell(const PhaseStatistics& entry, std::string_view good) {
    std::string cell = entry.wrong > 0 ? fmt::format("**{} wrong**", entry.wrong) : "";
    if (entry.failed > 0) {
        cell += fmt::format("{}**{} failed**", cell.empty() ? "" : ", ", entry.failed);
    }
    return !cell.empty() ? cell : std::string(good);
}

std::string verdict_part(const RunData& data) {
    const VerdictRow* run = find_verdict(data, "run");
    std::string out = fmt::format("## railbreak: {}: {}\n\n", markdown_text(data.run.scenario_name),
                                  run != nullptr ? markdown_text(run->verdict) : "unfinished");
    out += fmt::format("**{}**\n", run == nullptr        ? markdown_text(not_ended(data))
                                   : run->reason.empty() ? "every check passed"
                                                         : markdown_text(run->reason));
    for (const VerdictRow& row : data.verdicts) {
        if (row.scope == "teardown" && row.verdict != "pass") {
            out += fmt::format("\n**Teardown {}:** {}{}\n", markdown_text(row.verdict),
                               row.subject.empty() ? "" : markdown_text(row.subject) + ": ", markdown_text(row.reason));
        }
    }
    return out;
}

std::string run_lines(const RunData& data) {
    const record::RunRow& run = data.run;
    const std::string took = run.finished_realtime_ns > 0
                                 ? "took " + duration(run.finished_realtime_ns - run.started_realtime_ns)
                                 : "not finished";
    return fmt::format("\nRun {}, started {}Z, {}; {} hosts and {} ranks on {}, {} of {} on each rank; seed {}, plan "
                       "{}; railbreak {}\n",
                       markdown_text(run.run_id), to_iso8601(Nanoseconds(run.started_realtime_ns)).substr(0, 19), took,
                       run.hosts, record::rank_count(data), markdown_text(run.backend),
                       to_string(ByteCount::bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(run.bytes, 0)))),
                       markdown_text(run.dtype), run.seed, markdown_text(run.plan_hash), markdown_text(run.version));
}

std::string times_part(const RunData& data) {
    std::vector<Row> rows;
    for (const PhaseStatistics& entry : record::phase_statistics(data)) {
        if (entry.phase != "comparison") {
            rows.push_back({markdown_text(entry.algorithm), markdown_text(entry.phase),
                            std::to_string(entry.iterations), figure(entry.time_median_ns, 1e6),
                            figure(entry.busbw_bytes_per_s, 1e9), figure(entry.vs_healthy, 1),
                            figure(entry.overhead_exclusive, 1), figure(entry.overhead_fluid, 1),
                            digest_cell(entry, word_for_right(data))});
        }
    }
    if (rows.empty()) {
        return "\nNo iteration was recorded.\n";
    }
    return "\n" + table({"algorithm", "phase", "n", "median/ms", "busbw GB/s", "time over healthy",
                         "over exclusive bound", "over fluid bound", "result"},
                        "llrrrrrrl", rows);
}

std::string step(std::int64_t at, std::int64_t from) {
    return at > 0 ? "+" + duration(at - from) : "**never**";
}

std::string faults_part(const RunData& data) {
    std::vector<Row> rows;
    const std::int64_t origin = origin_ns(data);
    for (const record::InjectionRow& row : data.injections) {
        std::string what = markdown_text(row.kind);
        if (row.wanted_rate_bits_per_s > 0) {
            what += " to " + to_string(BitRate::bits_per_s(static_cast<std::uint64_t>(row.wanted_rate_bits_per_s)));
        }
        rows.push_back({markdown_text(row.name), what, markdown_text(place_of(data, row)), markdown_text(row.algorithm),
                        row.ordered_at > 0 ? duration(row.ordered_at - origin) : "never",
                        step(row.applied_at, row.ordered_at), step(row.observed_at, row.ordered_at),
                        step(row.reverted_at, row.ordered_at), step(row.restored_at, row.ordered_at),
                        markdown_text(row.error)});
    }
    return rows.empty() ? "\nNo faults.\n"
                        : "\n### Faults\n\n" + table({"fault", "kind", "where", "under", "ordered at", "applied",
                                                      "observed", "reverted", "restored", "error"},
                                                     "llllrrrrrl", rows);
}

std::string checks_part(const RunData& data) {
    std::vector<Row> bad;
    std::vector<Row> all;
    for (const VerdictRow& row : data.verdicts) {
        if (row.scope == "run") {
            continue;
        }
        Row cells{markdown_text(row.verdict), row.scope, markdown_text(row.subject), markdown_text(row.reason)};
        if (row.verdict != "pass") {
            cells.front() = "**" + cells.front() + "**";
            bad.push_back(cells);
        }
        all.push_back(std::move(cells));
    }
    const Row titles{"verdict", "check", "of", "reason"};
    std::string out;
    if (!bad.empty()) {
        out += "\n### What did not pass\n\n" + table(titles, "llll", bad);
    }
    if (!all.empty()) {
        out += fmt::format("\n<details>\n<summary>All checks ({})</summary>\n\n", all.size()) +
               table(titles, "llll", all) + "\n</details>\n";
    }
    return out;
}

// A fence is longer than any row of backticks in what it holds.
std::string reproduce_part(std::string_view command_line) {
    const std::string command = one_line(command_line);
    std::size_t longest = 2;
    std::size_t here = 0;
    for (const char c : command) {
        here = c == '`' ? here + 1 : 0;
        longest = std::max(longest, here);
    }
    const std::string fence(longest + 1, '`');
    return fmt::format("\n### Reproduce\n\n{}sh\n{}\n{}\n", fence, command, fence);
}

/// The time over the exclusive bound of each algorithm's degraded phase: "ring 1.751, optcc 1.015".
std::string overheads(const std::vector<PhaseStatistics>& figures) {
    std::string text;
    for (const PhaseStatistics& entry : figures) {
        if (entry.phase == "degraded" && entry.overhead_exclusive) {
            text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", markdown_text(entry.algorithm),
                                *entry.overhead_exclusive);
        }
    }
    return text.empty() ? "-" : text;
}

std::string items_part(const record::SuiteData& suite, const std::vector<RunData>& runs,
                       const analyse::SuiteOutcome& outcome) {
    std::vector<Row> bad;
    std::vector<Row> all;
    for (std::size_t i = 0; i < suite.items.size(); ++i) {
        const std::string& word = outcome.items[i].word;
        const std::string run = markdown_text(run_cell(suite, i));
        const std::string name = markdown_text(suite.items[i].name);
        if (word != "pass") {
            bad.push_back({"**" + markdown_text(word) + "**", name, markdown_text(suite.reasons[i]), run});
        }
        all.push_back({markdown_text(word), name,
                       overheads(statistics_of(suite.items[i], find_run(runs, suite.run_ids[i]))), run});
    }
    std::string out;
    if (!bad.empty()) {
        out += "\n### What did not pass\n\n" + table({"verdict", "item", "reason", "run"}, "llll", bad);
    }
    return out + fmt::format("\n<details>\n<summary>All items ({})</summary>\n\n", all.size()) +
           table({"verdict", "item", "degraded time over the exclusive bound", "run"}, "llll", all) + "\n</details>\n";
}

} // namespace

std::string suite_markdown(const record::SuiteData& suite, const std::vector<RunData>& runs) {
    const analyse::SuiteOutcome outcome = analyse::judge_suite(suite);
    const record::SuiteRow& row = suite.suite;
    std::string out =
        fmt::format("## railbreak: suite {}: {}\n\n", markdown_text(row.name), to_string(outcome.verdict));
    out += fmt::format("**{}**\n", outcome.reason.empty() ? "every item passed" : markdown_text(outcome.reason));
    out += fmt::format("\nSuite {}, started {}Z; {} items: {} passed, {} skipped, {} left; seed {}, plan {}; railbreak "
                       "{}\n",
                       markdown_text(row.suite_id), to_iso8601(Nanoseconds(row.started_realtime_ns)).substr(0, 19),
                       suite.items.size(), outcome.passed, outcome.skipped, outcome.left, row.seed,
                       markdown_text(row.plan_hash), markdown_text(row.version));
    return out + items_part(suite, runs, outcome) + reproduce_part(row.command_line);
}

std::string run_markdown(const RunData& data) {
    return verdict_part(data) + run_lines(data) + times_part(data) + faults_part(data) + checks_part(data) +
           reproduce_part(data.run.command_line);
}

} // namespace railbreak::reports
