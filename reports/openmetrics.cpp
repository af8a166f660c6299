#include "reports/openmetrics.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/analyse/suite.hpp"
#include "harness/record/statistics.hpp"
#include "reports/escape.hpp"
#include "reports/facts.hpp"

namespace railbreak::reports {

using record::InjectionRow;
using record::PhaseStatistics;
using record::RunData;

namespace {

constexpr std::array<std::string_view, 7> kVerdicts{"pass",    "fail",    "inconclusive", "invalid",
                                                    "refused", "aborted", "unfinished"};

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : legible(text)) {
        out += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : c == '\n' ? "\\n" : std::string(1, c);
    }
    return out;
}

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

/// A run, and as what item of a suite it ran; empty outside of suites.
struct Source {
    const RunData* data;
    std::string_view item;
    /// The run was pruned: its data has its names, times and verdict alone, and its figures are kept with the item.
    const record::SuiteItemRow* pruned = nullptr;
};
using Sources = std::vector<Source>;

/// Writes families one after the other, each with its samples together, as both formats demand.
class Writer {
public:
    /// The run that the next samples are of. The item of a suite is a label, because repeats share all other names.
    void of(const Source& source) {
        run_ = fmt::format("scenario=\"{}\"", escaped(source.data->run.scenario_name));
        run_ += source.item.empty() ? "" : fmt::format(",item=\"{}\"", escaped(source.item));
    }

    void of_suite(std::string_view name) { run_ = fmt::format("suite=\"{}\"", escaped(name)); }

    /// Begins a family. `unit` is the end of its name, or empty.
    void family(std::string_view name, std::string_view unit, std::string_view help) {
        name_ = name;
        seen_.clear();
        out_ += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
        out_ += unit.empty() ? "" : fmt::format("# UNIT {} {}\n", name, unit);
    }

    /// Adds a sample to the family. A second one with the same labels is left out: names that differ in bytes that no
    /// text may hold look alike, and one such pair would make the whole file unreadable.
    void sample(const Labels& labels, const std::string& value) {
        std::string text = run_;
        for (const auto& [key, content] : labels) {
            text += fmt::format(",{}=\"{}\"", key, escaped(content));
        }
        if (seen_.insert(text).second) {
            out_ += fmt::format("{}{{{}}} {}\n", name_, text, value);
        }
    }
    void sample(const Labels& labels, const std::optional<double>& value, double scale = 1) {
        if (value) {
            sample(labels, fmt::format("{}", *value / scale));
        }
    }
    void sample(const Labels& labels, std::int64_t value) { sample(labels, std::to_string(value)); }

    [[nodiscard]] std::string finish() && { return std::move(out_) + "# EOF\n"; }

private:
    std::string run_;
    std::string name_;
    std::set<std::string> seen_;
    std::string out_;
};

// Seconds since 1970 with all nine decimals: a double would round them.
std::string seconds(std::int64_t realtime_ns) {
    return fmt::format("{}.{:09}", realtime_ns / 1'000'000'000, realtime_ns % 1'000'000'000);
}

void add_run(const Sources& sources, Writer& out) {
    out.family("railbreak_run_info", "", "The run that this file reports, always 1.");
    for (const Source& source : sources) {
        if (source.pruned != nullptr) {
            continue;
        }
        const record::RunRow& run = source.data->run;
        const std::string seed = std::to_string(run.seed);
        out.of(source);
        out.sample({{"run_id", run.run_id},
                    {"backend", run.backend},
                    {"plan_hash", run.plan_hash},
                    {"seed", seed},
                    {"version", run.version}},
                   std::int64_t{1});
    }
    out.family("railbreak_run_start_timestamp_seconds", "seconds", "When the run began, seconds since 1970 in UTC.");
    for (const Source& source : sources) {
        out.of(source);
        out.sample({}, seconds(std::max<std::int64_t>(source.data->run.started_realtime_ns, 0)));
    }
    out.family("railbreak_run_end_timestamp_seconds", "seconds",
               "When the run ended, seconds since 1970 in UTC. Missing while it runs or when its controller died.");
    for (const Source& source : sources) {
        if (source.data->run.finished_realtime_ns > 0) {
            out.of(source);
            out.sample({}, seconds(source.data->run.finished_realtime_ns));
        }
    }
}

void add_checks(const Sources& sources, Writer& out) {
    out.family("railbreak_checks", "", "Checks of the run (correctness, faults, expectations, bounds) by verdict.");
    for (const Source& source : sources) {
        if (source.pruned != nullptr) {
            continue;
        }
        out.of(source);
        for (const std::string_view each : kVerdicts) {
            const std::vector<record::VerdictRow>& checks = source.data->verdicts;
            const auto count = std::count_if(checks.begin(), checks.end(), [&](const auto& check) {
                return check.verdict == each && check.scope != "run" && check.scope != "teardown";
            });
            if (each != "unfinished") {
                out.sample({{"verdict", each}}, std::int64_t{count});
            }
        }
    }
}

void add_verdicts(const Sources& sources, Writer& out) {
    out.family("railbreak_run_verdict", "", "Verdict of the run: 1 for the one that holds, 0 for the others.");
    for (const Source& source : sources) {
        const record::VerdictRow* row = find_verdict(*source.data, "run");
        const std::string_view verdict = row != nullptr ? std::string_view(row->verdict) : "unfinished";
        out.of(source);
        for (const std::string_view each : kVerdicts) {
            out.sample({{"verdict", each}}, std::int64_t{each == verdict ? 1 : 0});
        }
    }
    add_checks(sources, out);
    out.family("railbreak_teardown_verified", "",
               "1 when every injection is verified as restored, 0 when one is not. Missing before that is known.");
    for (const Source& source : sources) {
        if (find_verdict(*source.data, "teardown") == nullptr) {
            continue;
        }
        const std::vector<record::VerdictRow>& checks = source.data->verdicts;
        const bool clean = std::none_of(checks.begin(), checks.end(), [](const auto& check) {
            return check.scope == "teardown" && check.verdict != "pass";
        });
        out.of(source);
        out.sample({}, std::int64_t{clean ? 1 : 0});
    }
}

void add_phases(const Sources& sources, Writer& out) {
    std::vector<std::vector<PhaseStatistics>> statistics; // of each source
    for (const Source& source : sources) {
        statistics.push_back(source.pruned != nullptr ? statistics_of(*source.pruned, nullptr)
                                                      : record::phase_statistics(*source.data));
        std::erase_if(statistics.back(), [](const auto& entry) { return entry.phase == "comparison"; }); // other forms
    }
    const auto family = [&](std::string_view name, std::string_view unit, std::string_view help,
                            const std::function<void(const Labels&, const PhaseStatistics&)>& add) {
        out.family(name, unit, help);
        for (std::size_t i = 0; i < sources.size(); ++i) {
            out.of(sources[i]);
            for (const PhaseStatistics& entry : statistics[i]) {
                add({{"algorithm", entry.algorithm}, {"phase", entry.phase}}, entry);
            }
        }
    };
    family("railbreak_iterations", "", "Iterations without error.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, std::int64_t{entry.iterations}); });
    family("railbreak_failed_iterations", "", "Iterations that ended with an error.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, std::int64_t{entry.failed}); });
    family("railbreak_wrong_iterations", "", "Iterations with a wrong or missing result on some rank.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, std::int64_t{entry.wrong}); });
    family("railbreak_iteration_min_seconds", "seconds", "Time of the fastest iteration.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, entry.time_min_ns, 1e9); });
    family("railbreak_iteration_median_seconds", "seconds", "Median time of the iterations.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, entry.time_median_ns, 1e9); });
    family("railbreak_iteration_max_seconds", "seconds", "Time of the slowest iteration.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, entry.time_max_ns, 1e9); });
    family("railbreak_bus_bandwidth_bytes_per_second", "bytes_per_second", "Bus bandwidth at the median time.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, entry.busbw_bytes_per_s); });
    family("railbreak_time_vs_healthy_ratio", "ratio", "Median time over that of the ring in its steady phase.",
           [&](const auto& labels, const auto& entry) { out.sample(labels, entry.vs_healthy); });
    family("railbreak_overhead_ratio", "ratio", "Median time over the lower bound that binds in a port model.",
           [&](const auto& labels, const auto& entry) {
               for (const auto& [model, value] :
                    {std::pair("exclusive", entry.overhead_exclusive), std::pair("fluid", entry.overhead_fluid)}) {
                   Labels with_model = labels;
                   with_model.emplace_back("model", model);
                   out.sample(with_model, value);
               }
           });
}

/// Algorithm and kind of the injections of a run, as they come.
std::vector<std::pair<std::string_view, std::string_view>> groups_of(const RunData& data) {
    std::vector<std::pair<std::string_view, std::string_view>> groups;
    for (const InjectionRow& row : data.injections) {
        const std::pair<std::string_view, std::string_view> group(row.algorithm, row.kind);
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
            groups.push_back(group);
        }
    }
    return groups;
}

void add_injections(const Sources& sources, Writer& out) {
    const auto family = [&](std::string_view name, std::string_view help, std::int64_t InjectionRow::*at) {
        out.family(name, "", help);
        for (const Source& source : sources) {
            out.of(source);
            for (const auto& group : groups_of(*source.data)) {
                const std::vector<InjectionRow>& rows = source.data->injections;
                const auto count = std::count_if(rows.begin(), rows.end(), [&](const InjectionRow& row) {
                    return row.algorithm == group.first && row.kind == group.second && row.*at > 0;
                });
                out.sample({{"algorithm", group.first}, {"kind", group.second}}, std::int64_t{count});
            }
        }
    };
    family("railbreak_injections_ordered", "Faults that were ordered.", &InjectionRow::ordered_at);
    family("railbreak_injections_applied", "Faults that were applied.", &InjectionRow::applied_at);
    family("railbreak_injections_observed", "Faults that were seen to act.", &InjectionRow::observed_at);
    family("railbreak_injections_restored", "Faults after which the former state was verified.",
           &InjectionRow::restored_at);
}

void add_runs(const Sources& sources, Writer& out) {
    add_run(sources, out);
    add_verdicts(sources, out);
    add_phases(sources, out);
    add_injections(sources, out);
}

/// The suite itself: what it came to, and how many of its items came to what.
void add_suite(const record::SuiteData& data, Writer& out) {
    const analyse::SuiteOutcome outcome = analyse::judge_suite(data);
    const std::string suite = data.suite.name;
    const std::string seed = std::to_string(data.suite.seed);
    out.family("railbreak_suite_info", "", "The suite that this file reports, always 1.");
    out.of_suite(suite);
    out.sample({{"suite_id", data.suite.suite_id},
                {"backend", data.suite.backend},
                {"plan_hash", data.suite.plan_hash},
                {"seed", seed},
                {"version", data.suite.version}},
               std::int64_t{1});
    out.family("railbreak_suite_start_timestamp_seconds", "seconds",
               "When the suite began, seconds since 1970 in UTC.");
    out.sample({}, seconds(std::max<std::int64_t>(data.suite.started_realtime_ns, 0)));
    out.family("railbreak_suite_verdict", "", "Verdict of the suite: 1 for the one that holds, 0 for the others.");
    for (const std::string_view each : kVerdicts) {
        const bool holds = each == to_string(outcome.verdict);
        out.sample({{"verdict", each}}, std::int64_t{holds ? 1 : 0});
    }
    out.family("railbreak_suite_items", "", "Items of the suite by what they came to.");
    std::map<std::string_view, std::int64_t> counts;
    for (const analyse::ItemOutcome& item : outcome.items) {
        ++counts[item.word];
    }
    for (const auto& [word, count] : counts) {
        out.sample({{"outcome", word}}, count);
    }
}

/// What is left of a run that was pruned, as a run.
RunData remains_of(const record::SuiteItemRow& item) {
    RunData data;
    data.run.run_id = item.pruned.run_id;
    data.run.scenario_name = item.scenario_name;
    data.run.started_realtime_ns = item.pruned.started_realtime_ns;
    data.run.finished_realtime_ns = item.pruned.finished_realtime_ns;
    if (!item.pruned.verdict.empty()) {
        data.verdicts.push_back({0, "run", "", item.pruned.verdict, item.pruned.reason, {}, {}, {}});
    }
    return data;
}

} // namespace

std::string run_openmetrics(const RunData& data) {
    Writer out;
    add_runs({{&data, {}}}, out);
    return std::move(out).finish();
}

std::string suite_openmetrics(const record::SuiteData& suite, const std::vector<RunData>& runs) {
    Sources sources;
    std::deque<RunData> remains; // its elements stay where they are
    for (std::size_t i = 0; i < suite.items.size(); ++i) {
        const record::SuiteItemRow& item = suite.items[i];
        if (const RunData* run = find_run(runs, suite.run_ids[i])) {
            sources.push_back({run, item.name});
        } else if (item.run == 0 && !item.pruned.run_id.empty()) {
            sources.push_back({&remains.emplace_back(remains_of(item)), item.name, &item});
        }
    }
    Writer out;
    add_suite(suite, out);
    add_runs(sources, out);
    return std::move(out).finish();
}

} // namespace railbreak::reports
