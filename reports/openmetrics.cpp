#include "reports/openmetrics.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

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

/// Writes families one after the other, each with its samples together, as both formats demand.
class Writer {
public:
    explicit Writer(const RunData& data) : scenario_(escaped(data.run.scenario_name)) {}

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
        std::string text = fmt::format("scenario=\"{}\"", scenario_);
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
    std::string scenario_;
    std::string name_;
    std::set<std::string> seen_;
    std::string out_;
};

// Seconds since 1970 with all nine decimals: a double would round them.
std::string seconds(std::int64_t realtime_ns) {
    return fmt::format("{}.{:09}", realtime_ns / 1'000'000'000, realtime_ns % 1'000'000'000);
}

void add_run(const RunData& data, Writer& out) {
    const record::RunRow& run = data.run;
    const std::string seed = std::to_string(run.seed);
    out.family("railbreak_run_info", "", "The run that this file reports, always 1.");
    out.sample({{"run_id", run.run_id},
                {"backend", run.backend},
                {"plan_hash", run.plan_hash},
                {"seed", seed},
                {"version", run.version}},
               std::int64_t{1});
    out.family("railbreak_run_start_timestamp_seconds", "seconds", "When the run began, seconds since 1970 in UTC.");
    out.sample({}, seconds(std::max<std::int64_t>(run.started_realtime_ns, 0)));
    out.family("railbreak_run_end_timestamp_seconds", "seconds",
               "When the run ended, seconds since 1970 in UTC. Missing while it runs or when its controller died.");
    if (run.finished_realtime_ns > 0) {
        out.sample({}, seconds(run.finished_realtime_ns));
    }
}

void add_verdicts(const RunData& data, Writer& out) {
    const record::VerdictRow* row = find_verdict(data, "run");
    const std::string_view verdict = row != nullptr ? std::string_view(row->verdict) : "unfinished";
    out.family("railbreak_run_verdict", "", "Verdict of the run: 1 for the one that holds, 0 for the others.");
    for (const std::string_view each : kVerdicts) {
        out.sample({{"verdict", each}}, std::int64_t{each == verdict ? 1 : 0});
    }
    out.family("railbreak_checks", "", "Checks of the run (correctness, faults, expectations, bounds) by verdict.");
    for (const std::string_view each : kVerdicts) {
        const auto count = std::count_if(data.verdicts.begin(), data.verdicts.end(), [&](const auto& check) {
            return check.verdict == each && check.scope != "run" && check.scope != "teardown";
        });
        if (each != "unfinished") {
            out.sample({{"verdict", each}}, std::int64_t{count});
        }
    }
    out.family("railbreak_teardown_verified", "",
               "1 when every injection is verified as restored, 0 when one is not. Missing before that is known.");
    if (find_verdict(data, "teardown") != nullptr) {
        const bool clean = std::none_of(data.verdicts.begin(), data.verdicts.end(), [](const auto& check) {
            return check.scope == "teardown" && check.verdict != "pass";
        });
        out.sample({}, std::int64_t{clean ? 1 : 0});
    }
}

void add_phases(const RunData& data, Writer& out) {
    std::vector<PhaseStatistics> all = record::phase_statistics(data);
    std::erase_if(all, [](const PhaseStatistics& entry) { return entry.phase == "comparison"; }); // different forms
    const auto family = [&](std::string_view name, std::string_view unit, std::string_view help,
                            const std::function<void(const Labels&, const PhaseStatistics&)>& add) {
        out.family(name, unit, help);
        for (const PhaseStatistics& entry : all) {
            add({{"algorithm", entry.algorithm}, {"phase", entry.phase}}, entry);
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

void add_injections(const RunData& data, Writer& out) {
    std::vector<std::pair<std::string_view, std::string_view>> groups; // algorithm and kind, as they come
    for (const InjectionRow& row : data.injections) {
        const std::pair<std::string_view, std::string_view> group(row.algorithm, row.kind);
        if (std::find(groups.begin(), groups.end(), group) == groups.end()) {
            groups.push_back(group);
        }
    }
    const auto family = [&](std::string_view name, std::string_view help, std::int64_t InjectionRow::*at) {
        out.family(name, "", help);
        for (const auto& [algorithm, kind] : groups) {
            const std::string_view a = algorithm;
            const std::string_view k = kind;
            const auto count =
                std::count_if(data.injections.begin(), data.injections.end(), [&](const InjectionRow& row) {
                    return row.algorithm == a && row.kind == k && row.*at > 0;
                });
            out.sample({{"algorithm", algorithm}, {"kind", kind}}, std::int64_t{count});
        }
    };
    family("railbreak_injections_ordered", "Faults that were ordered.", &InjectionRow::ordered_at);
    family("railbreak_injections_applied", "Faults that were applied.", &InjectionRow::applied_at);
    family("railbreak_injections_observed", "Faults that were seen to act.", &InjectionRow::observed_at);
    family("railbreak_injections_restored", "Faults after which the former state was verified.",
           &InjectionRow::restored_at);
}

} // namespace

std::string run_openmetrics(const RunData& data) {
    Writer out(data);
    add_run(data, out);
    add_verdicts(data, out);
    add_phases(data, out);
    add_injections(data, out);
    return std::move(out).finish();
}

} // namespace railbreak::reports
