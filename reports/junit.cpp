#include "reports/junit.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "base/clock.hpp"
#include "harness/analyse/suite.hpp"
#include "harness/record/statistics.hpp"
#include "reports/escape.hpp"
#include "reports/facts.hpp"

namespace railbreak::reports {

using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;

namespace {

/// The part of a run that one suite reports.
struct Suite {
    std::string algorithm; // empty: the run itself
    double seconds = 0;
    std::vector<VerdictRow> checks;
};

double in_seconds(std::int64_t nanoseconds) {
    return static_cast<double>(std::max<std::int64_t>(nanoseconds, 0)) / 1e9;
}

std::string time_text(double seconds) {
    return fmt::format("{:.3f}", seconds); // the schema of Jenkins takes no exponent
}

void set(pugi::xml_node node, const char* name, std::string_view value) {
    node.append_attribute(name) = legible(value).c_str();
}

// Subjects are written by the judges: "ring", "ring/degraded overhead_fluid", "half/ring", "half/ring collateral".
std::string algorithm_of(const VerdictRow& row) {
    if (row.scope == "correctness") {
        return row.subject;
    }
    if (row.scope == "expectation" || row.scope == "bound") {
        return row.subject.substr(0, row.subject.find('/'));
    }
    if (const std::size_t slash = row.subject.rfind('/'); row.scope == "fault" && slash != std::string::npos) {
        const std::size_t end = row.subject.find(' ', slash);
        return row.subject.substr(slash + 1, end == std::string::npos ? end : end - slash - 1);
    }
    return {};
}

std::vector<Suite> suites_of(const RunData& data) {
    std::vector<Suite> suites(1);
    suites.front().seconds = in_seconds(
        data.run.finished_realtime_ns > 0 ? data.run.finished_realtime_ns - data.run.started_realtime_ns : 0);
    const auto suite_of = [&](const std::string& algorithm) -> Suite& {
        const auto found = std::find_if(suites.begin(), suites.end(),
                                        [&](const Suite& suite) { return suite.algorithm == algorithm; });
        return found != suites.end() ? *found : suites.emplace_back(Suite{algorithm, 0, {}});
    };
    for (const record::IterationRow& row : data.iterations) {
        suite_of(row.algorithm).seconds += in_seconds(row.duration_ns);
    }
    for (const VerdictRow& row : data.verdicts) {
        suite_of(algorithm_of(row)).checks.push_back(row);
    }
    if (find_verdict(data, "run") == nullptr) {
        suites.front().checks.push_back({data.run.id, "run", "", "unfinished", not_ended(data), {}, {}, {}});
    }
    return suites;
}

std::string name_of(const VerdictRow& row) {
    if (row.scope == "run") {
        return "verdict";
    }
    return row.subject.empty() || row.scope == "correctness" ? row.scope : fmt::format("{} {}", row.scope, row.subject);
}

/// How JUnit counts.
struct Counts {
    int tests = 0;
    int failures = 0;
    int errors = 0;
    int skipped = 0;
};

std::string figures_of(const VerdictRow& row) {
    std::string text = row.reason;
    for (const auto& [name, value] : {std::pair("measured", row.measured), std::pair("limit_min", row.limit_min),
                                      std::pair("limit_max", row.limit_max)}) {
        text += value ? fmt::format("\n{} {:.6g}", name, *value) : "";
    }
    return text;
}

void add_outcome(pugi::xml_node node, const VerdictRow& row, Counts& counts) {
    ++counts.tests;
    if (row.verdict == "pass") {
        return;
    }
    int& count = row.verdict == "fail" ? counts.failures : row.verdict == "refused" ? counts.skipped : counts.errors;
    ++count;
    pugi::xml_node outcome = node.append_child(&count == &counts.failures  ? "failure"
                                               : &count == &counts.skipped ? "skipped"
                                                                           : "error");
    set(outcome, "type", row.verdict);
    set(outcome, "message", one_line(row.reason));
    outcome.append_child(pugi::node_pcdata).set_value(legible(figures_of(row)).c_str());
}

void add_property(pugi::xml_node properties, std::string_view name, std::string_view value) {
    pugi::xml_node property = properties.append_child("property");
    set(property, "name", name);
    set(property, "value", value);
}

void add_run_properties(const RunData& data, pugi::xml_node properties) {
    const record::RunRow& run = data.run;
    add_property(properties, "run_id", run.run_id);
    add_property(properties, "scenario", run.scenario_name);
    add_property(properties, "plan_hash", run.plan_hash);
    add_property(properties, "seed", std::to_string(run.seed));
    add_property(properties, "backend", run.backend);
    add_property(properties, "railbreak_version", run.version);
    add_property(properties, "hosts", std::to_string(run.hosts));
    add_property(properties, "ranks", std::to_string(record::rank_count(data)));
    add_property(properties, "vector_bytes", std::to_string(run.bytes));
    add_property(properties, "dtype", run.dtype);
    const auto environment = nlohmann::ordered_json::parse(run.environment_json, nullptr, false);
    if (!environment.is_object()) {
        return;
    }
    for (const auto& [key, value] : environment.items()) {
        const auto replace = nlohmann::ordered_json::error_handler_t::replace;
        add_property(properties, "environment." + key,
                     value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, replace));
    }
}

void add_algorithm_properties(const std::vector<PhaseStatistics>& statistics, const std::string& algorithm,
                              pugi::xml_node properties) {
    for (const PhaseStatistics& entry : statistics) {
        if (entry.algorithm != algorithm || entry.phase == "comparison") {
            continue; // different forms have no time together
        }
        const auto add = [&](std::string_view name, const std::optional<double>& value, double scale) {
            if (value) {
                add_property(properties, fmt::format("{}.{}", entry.phase, name),
                             fmt::format("{:.6g}", *value / scale));
            }
        };
        add_property(properties, entry.phase + ".iterations", std::to_string(entry.iterations));
        add("time_median_s", entry.time_median_ns, 1e9);
        add("vs_healthy", entry.vs_healthy, 1);
        add("overhead_exclusive", entry.overhead_exclusive, 1);
        add("overhead_fluid", entry.overhead_fluid, 1);
    }
}

std::string problems(const RunData& data) {
    constexpr std::size_t kMost = 200; // lines
    std::string text;
    std::size_t lines = 0;
    for (const record::EventRow& row : data.events) {
        if ((row.level == "warning" || row.level == "error") && ++lines <= kMost) {
            text += fmt::format("{}: {}: {}\n", row.level, row.source, one_line(row.text));
        }
    }
    return lines > kMost ? text + fmt::format("and {} more\n", lines - kMost) : text;
}

void add_cases(const Suite& suite, const std::string& classname, pugi::xml_node node, Counts& counts) {
    std::map<std::string, int> uses; // viewers merge cases of one name
    for (const VerdictRow& row : suite.checks) {
        pugi::xml_node test = node.append_child("testcase");
        const std::string title = name_of(row);
        const int use = ++uses[title];
        set(test, "name", use > 1 ? fmt::format("{} ({})", title, use) : title);
        set(test, "classname", classname);
        const bool whole = row.scope == "run" || row.scope == "correctness";
        set(test, "time", time_text(whole ? suite.seconds : 0));
        add_outcome(test, row, counts);
    }
}

void add_text(pugi::xml_node node, const char* name, const std::string& text) {
    node.append_child(name).append_child(pugi::node_pcdata).set_value(legible(text).c_str());
}

/// What a testsuite says of itself, after its children: their order is that of the schema.
void set_head(pugi::xml_node node, const std::string& name, const std::string& package, std::int64_t started,
              const Counts& counts, double time_s) {
    set(node, "name", name);
    set(node, "package", package);
    set(node, "id", std::to_string(std::distance(node.parent().begin(), node.parent().end()) - 1));
    set(node, "timestamp", to_iso8601(Nanoseconds(started)).substr(0, 19));
    set(node, "hostname", "localhost");
    set(node, "tests", std::to_string(counts.tests));
    set(node, "failures", std::to_string(counts.failures));
    set(node, "errors", std::to_string(counts.errors));
    set(node, "skipped", std::to_string(counts.skipped));
    set(node, "time", time_text(time_s));
}

void add_suite(const RunData& data, const std::vector<PhaseStatistics>& statistics, const Suite& suite,
               const std::string& package, pugi::xml_node parent) {
    pugi::xml_node node = parent.append_child("testsuite");
    const bool whole = suite.algorithm.empty();
    const std::string name = whole ? "run" : suite.algorithm;
    pugi::xml_node properties = node.append_child("properties");
    if (whole) {
        add_run_properties(data, properties);
    } else {
        add_algorithm_properties(statistics, suite.algorithm, properties);
    }
    Counts counts;
    add_cases(suite, fmt::format("{}.{}", package, name), node, counts);
    add_text(node, "system-out", fmt::format("run {}\nreproduce: {}\n", data.run.run_id, data.run.command_line));
    add_text(node, "system-err", whole ? problems(data) : "");
    set_head(node, name, package, data.run.started_realtime_ns, counts, suite.seconds);
}

void add_run(const RunData& data, const std::string& package, pugi::xml_node parent) {
    const std::vector<PhaseStatistics> statistics = record::phase_statistics(data);
    for (const Suite& suite : suites_of(data)) {
        add_suite(data, statistics, suite, package, parent);
    }
}

/// An item whose run was pruned: its verdict is known, its checks are not any more.
void add_item_of_pruned_run(const record::SuiteData& suite, std::size_t item, const std::string& package,
                            pugi::xml_node parent) {
    const record::PrunedOutcome& pruned = suite.items[item].pruned;
    const double took_s =
        in_seconds(pruned.finished_realtime_ns > 0 ? pruned.finished_realtime_ns - pruned.started_realtime_ns : 0);
    pugi::xml_node node = parent.append_child("testsuite");
    add_property(node.append_child("properties"), "pruned_run_id", pruned.run_id);
    Counts counts;
    const VerdictRow verdict{0, "run", "", suite.verdicts[item], suite.reasons[item], {}, {}, {}};
    add_cases({"", took_s, {verdict}}, package + ".run", node, counts);
    add_text(node, "system-out",
             fmt::format("run {} was deleted; its verdict was kept\nsuite {}\n", pruned.run_id, suite.suite.suite_id));
    add_text(node, "system-err", "");
    set_head(node, "run", package, pruned.started_realtime_ns, counts, took_s);
}

/// An item of a suite without a run: it did not run, or was refused before a run began.
void add_item_without_run(const record::SuiteData& suite, std::size_t item, const std::string& word,
                          const std::string& package, pugi::xml_node parent) {
    pugi::xml_node node = parent.append_child("testsuite");
    node.append_child("properties");
    pugi::xml_node test = node.append_child("testcase");
    set(test, "name", "verdict");
    set(test, "classname", package + ".run");
    set(test, "time", time_text(0));
    const bool not_run = word == "waiting" || word == "skipped" || word == "refused";
    Counts counts{.tests = 1, .failures = 0, .errors = not_run ? 0 : 1, .skipped = not_run ? 1 : 0};
    pugi::xml_node outcome = test.append_child(not_run ? "skipped" : "error");
    set(outcome, "type", word);
    set(outcome, "message", one_line(suite.reasons[item].empty() ? word : suite.reasons[item]));
    add_text(node, "system-out", fmt::format("suite {}\n", suite.suite.suite_id));
    add_text(node, "system-err", "");
    set_head(node, "run", package, suite.suite.started_realtime_ns, counts, 0);
}

/// An empty document and its root.
pugi::xml_node begin(pugi::xml_document& document) {
    pugi::xml_node declaration = document.append_child(pugi::node_declaration);
    declaration.append_attribute("version") = "1.0";
    declaration.append_attribute("encoding") = "UTF-8";
    return document.append_child("testsuites");
}

std::string text_of(const pugi::xml_document& document) {
    std::ostringstream out;
    document.save(out, "  ", pugi::format_indent, pugi::encoding_utf8);
    return out.str();
}

} // namespace

std::string run_junit(const RunData& data) {
    pugi::xml_document document;
    add_run(data, "railbreak." + data.run.scenario_name, begin(document));
    return text_of(document);
}

std::string suite_junit(const record::SuiteData& suite, const std::vector<RunData>& runs) {
    const analyse::SuiteOutcome outcome = analyse::judge_suite(suite);
    pugi::xml_document document;
    pugi::xml_node root = begin(document);
    for (std::size_t i = 0; i < suite.items.size(); ++i) {
        const std::string package = fmt::format("railbreak.{}.{}", suite.suite.name, suite.items[i].name);
        const RunData* run = find_run(runs, suite.run_ids[i]);
        if (run != nullptr) {
            add_run(*run, package, root);
        } else if (suite.items[i].run == 0 && !suite.items[i].pruned.verdict.empty()) {
            add_item_of_pruned_run(suite, i, package, root);
        } else {
            add_item_without_run(suite, i, outcome.items[i].word, package, root);
        }
    }
    return text_of(document);
}

} // namespace railbreak::reports
