#include "reports/facts.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "harness/record/figures_json.hpp"
#include "reports/import_nccl.hpp"

namespace railbreak::reports {

using record::RunData;

namespace {

constexpr std::string_view kComparison = "comparison"; // the phase in which forms of an algorithm are tried

} // namespace

std::int64_t origin_ns(const RunData& data) {
    std::int64_t origin = std::numeric_limits<std::int64_t>::max();
    const auto take = [&](std::int64_t at) { origin = at > 0 ? std::min(origin, at) : origin; };
    for (const auto& row : data.events) {
        take(row.at);
    }
    for (const auto& row : data.iterations) {
        take(row.started_at);
    }
    for (const auto& row : data.injections) {
        take(row.ordered_at);
    }
    return origin != std::numeric_limits<std::int64_t>::max() ? origin : 0;
}

const record::VerdictRow* find_verdict(const RunData& data, std::string_view scope, std::string_view subject) {
    const auto found = std::find_if(data.verdicts.begin(), data.verdicts.end(), [&](const record::VerdictRow& row) {
        return row.scope == scope && (subject.empty() || row.subject == subject);
    });
    return found != data.verdicts.end() ? &*found : nullptr;
}

std::string not_ended(const RunData& data) {
    std::int64_t at = 0;
    std::string what;
    for (const record::EventRow& row : data.events) {
        if (row.at > 0 && row.at >= at) {
            at = row.at;
            what = row.text;
        }
    }
    for (const record::IterationRow& row : data.iterations) {
        if (row.started_at > 0 && row.started_at >= at) {
            at = row.started_at;
            what = fmt::format("iteration {} of {} {}", row.iteration, row.algorithm, row.phase);
        }
    }
    return at > 0 ? fmt::format("the run has not ended; what it recorded last, {:.3f} s after its beginning: {}",
                                static_cast<double>(at - origin_ns(data)) / 1e9, what)
                  : "the run has not ended; nothing is recorded of it";
}

std::string subject_of(const record::InjectionRow& injection) {
    return injection.algorithm.empty() ? injection.name : fmt::format("{}/{}", injection.name, injection.algorithm);
}

std::string place_of(const RunData& data, const record::InjectionRow& row) {
    const auto host = std::find_if(data.hosts.begin(), data.hosts.end(),
                                   [&](const record::HostRow& h) { return h.host == row.host; });
    const auto nic = std::find_if(data.nics.begin(), data.nics.end(),
                                  [&](const record::NicRow& n) { return n.host == row.host && n.nic == row.nic; });
    const std::string host_name = host != data.hosts.end() ? host->name : fmt::format("host {}", row.host);
    if (row.rank >= 0) {
        return fmt::format("rank {} of {}", row.rank, host_name);
    }
    if (row.nic < 0) {
        return fmt::format("the run's database, from {}", host_name);
    }
    return fmt::format("{} {}", host_name, nic != data.nics.end() ? nic->name : fmt::format("NIC {}", row.nic));
}

std::string_view word_for_right(const RunData& data) {
    return data.run.backend == record::kSimulatedBackend ? "proven"
           : data.run.backend == kImportedBackend        ? "as told"
                                                         : "ok";
}

std::string utc(std::int64_t realtime_ns) {
    constexpr std::size_t kSeconds = 19; // without its fraction
    return to_iso8601(Nanoseconds(realtime_ns)).substr(0, kSeconds) + "Z";
}

std::optional<Spread> spread_of(const std::vector<std::int64_t>& values) {
    std::vector<double> positive;
    for (const std::int64_t value : values) {
        if (value > 0) {
            positive.push_back(static_cast<double>(value));
        }
    }
    if (positive.empty()) {
        return std::nullopt;
    }
    const auto [low, high] = std::minmax_element(positive.begin(), positive.end());
    const double middle = record::median(positive).value_or(0);
    return Spread{static_cast<std::int64_t>(*low), static_cast<std::int64_t>(middle), static_cast<std::int64_t>(*high)};
}

std::optional<Spread> send_goodput(const RunData& data) {
    std::vector<std::int64_t> values;
    for (const record::NicRow& nic : data.nics) {
        values.push_back(nic.send_goodput_bits_per_s);
    }
    return spread_of(values);
}

std::optional<Spread> receive_goodput(const RunData& data) {
    std::vector<std::int64_t> values;
    for (const record::NicRow& nic : data.nics) {
        values.push_back(nic.receive_goodput_bits_per_s);
    }
    return spread_of(values);
}

std::vector<std::string> schedules_of(const RunData& data, std::string_view algorithm, std::string_view phase) {
    std::vector<std::string> names;
    for (const record::IterationRow& row : data.iterations) {
        if (row.algorithm == algorithm && row.phase == phase && !row.schedule.empty() &&
            std::find(names.begin(), names.end(), row.schedule) == names.end()) {
            names.push_back(row.schedule);
        }
    }
    return names;
}

namespace {

// The tried forms of one algorithm, the fastest first.
std::vector<Form> forms_of(const RunData& data, std::string_view algorithm) {
    std::map<std::string, std::vector<double>> times; // by schedule
    for (const record::IterationRow& row : data.iterations) {
        if (row.algorithm == algorithm && row.phase == kComparison && row.error.empty() && row.duration_ns > 0) {
            times[row.schedule].push_back(static_cast<double>(row.duration_ns));
        }
    }
    std::vector<Form> forms;
    for (const auto& [schedule, values] : times) {
        forms.push_back({schedule, record::median(values).value_or(0), 1});
    }
    std::stable_sort(forms.begin(), forms.end(),
                     [](const Form& a, const Form& b) { return a.time_median_ns < b.time_median_ns; });
    for (Form& form : forms) {
        form.over_fastest = form.time_median_ns / forms.front().time_median_ns;
    }
    return forms;
}

} // namespace

std::vector<Comparison> compare_forms(const RunData& data) {
    std::vector<std::string> algorithms;
    for (const record::IterationRow& row : data.iterations) {
        if (row.phase == kComparison &&
            std::find(algorithms.begin(), algorithms.end(), row.algorithm) == algorithms.end()) {
            algorithms.push_back(row.algorithm);
        }
    }
    std::vector<Comparison> comparisons;
    for (const std::string& algorithm : algorithms) {
        std::vector<Form> forms = forms_of(data, algorithm);
        if (forms.size() >= 2) {
            // What was kept is read from what ran, so that a report cannot claim a choice that was not made.
            const std::vector<std::string> ran = schedules_of(data, algorithm, "degraded");
            comparisons.push_back({algorithm, std::move(forms), ran.empty() ? "" : ran.front()});
        }
    }
    return comparisons;
}

std::vector<record::PhaseStatistics> statistics_of(const record::SuiteItemRow& item, const RunData* run) {
    return run != nullptr ? record::phase_statistics(*run) : record::parse_figures(item.pruned.figures_json);
}

std::string run_cell(const record::SuiteData& suite, std::size_t item) {
    const bool pruned = suite.items[item].run == 0 && !suite.items[item].pruned.run_id.empty();
    return pruned ? "deleted" : item < suite.run_ids.size() ? suite.run_ids[item] : "";
}

const record::RunData* find_run(const std::vector<record::RunData>& runs, std::string_view run_id) {
    const auto found =
        std::find_if(runs.begin(), runs.end(), [&](const record::RunData& data) { return data.run.run_id == run_id; });
    return found != runs.end() && !run_id.empty() ? &*found : nullptr;
}

} // namespace railbreak::reports
