#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.hpp"
#include "harness/analyse/band.hpp"
#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::PhaseStatistics;
using record::RunData;
using record::VerdictRow;
using scenarios::Expectation;
using scenarios::Metric;

namespace {

std::optional<double> value_of(const PhaseStatistics& entry, Metric metric) {
    switch (metric) {
    case Metric::kOverheadExclusive: return entry.overhead_exclusive;
    case Metric::kOverheadFluid: return entry.overhead_fluid;
    case Metric::kVsHealthy: return entry.vs_healthy;
    case Metric::kVsSteady: return entry.vs_steady;
    case Metric::kTime: return *entry.time_median_ns / 1e9;
    case Metric::kCorrectness:
    case Metric::kRecoveryTime:
    case Metric::kDetectionTime:
    case Metric::kCollateral: break; // no median over a phase
    }
    return std::nullopt;
}

std::string_view base_of(Metric metric) {
    switch (metric) {
    case Metric::kOverheadExclusive: return "no bound of the exclusive port model was recorded";
    case Metric::kOverheadFluid: return "no bound of the fluid port model was recorded";
    case Metric::kVsHealthy: return "there is no steady phase of the ring to compare with";
    case Metric::kVsSteady: return "there is no steady phase of the algorithm to compare with";
    case Metric::kTime:
    case Metric::kCorrectness:
    case Metric::kRecoveryTime:
    case Metric::kDetectionTime:
    case Metric::kCollateral: break; // compared with nothing
    }
    return "";
}

/// A value or limit of the metric in words: durations are held in seconds.
std::string in_words(Metric metric, double value) {
    return is_duration(metric) ? railbreak::to_string(Nanoseconds(std::llround(value * 1e9)))
                               : fmt::format("{:g}", value);
}

/// What an expectation's own limits and its baseline come to.
struct Held {
    bool missed = false;
    bool gathering = false;
    std::vector<std::string> texts;
};

void hold_against_numbers(const Expectation& expectation, VerdictRow& row, Held& held) {
    const auto seconds = [](const std::optional<Nanoseconds>& time) -> std::optional<double> {
        return time ? std::optional(std::chrono::duration<double>(*time).count()) : std::nullopt;
    };
    const bool duration = is_duration(expectation.metric);
    row.limit_min = duration ? seconds(expectation.min_time) : expectation.min;
    row.limit_max = duration ? seconds(expectation.max_time) : expectation.max;
    if (!row.measured) {
        return;
    }
    if (row.limit_min) {
        const bool low = *row.measured < *row.limit_min;
        held.missed = held.missed || low;
        held.texts.push_back(fmt::format("{} the minimum of {}", low ? "below" : "not below",
                                         in_words(expectation.metric, *row.limit_min)));
    }
    if (row.limit_max) {
        const bool high = *row.measured > *row.limit_max;
        held.missed = held.missed || high;
        held.texts.push_back(fmt::format("{} the maximum of {}", high ? "above" : "not above",
                                         in_words(expectation.metric, *row.limit_max)));
    }
}

std::string too_few(std::size_t there, const scenarios::BaselineLimit& limit) {
    const auto wanted = static_cast<std::size_t>(limit.min_runs);
    return fmt::format("{}{} of {} earlier runs of this plan on this cluster are there, {} more to come", kGathering,
                       there, wanted, wanted - there);
}

void hold_against_baseline(const Expectation& expectation, const History& history, VerdictRow& row, Held& held) {
    const scenarios::BaselineLimit& limit = *expectation.baseline;
    const std::vector<double> earlier = history.values_of(row.subject);
    if (earlier.size() < static_cast<std::size_t>(limit.min_runs)) {
        held.gathering = true;
        held.texts.push_back(too_few(earlier.size(), limit));
        return;
    }
    constexpr double kRounding = 1e-9; // where all runs are the same, as in a simulation
    const double typical = *record::median(earlier);
    const double band = static_cast<double>(limit.band) / scenarios::kMillion;
    const double margin = limit.in_sigmas ? band * standard_deviation(earlier) : band * typical;
    const bool low = limit.side != scenarios::Side::kAbove && *row.measured < (typical - margin) * (1 - kRounding);
    const bool high = limit.side != scenarios::Side::kBelow && *row.measured > (typical + margin) * (1 + kRounding);
    held.missed = held.missed || low || high;
    if (limit.side != scenarios::Side::kAbove) {
        row.limit_min = std::max(row.limit_min.value_or(typical - margin), typical - margin);
    }
    if (limit.side != scenarios::Side::kBelow) {
        row.limit_max = std::min(row.limit_max.value_or(typical + margin), typical + margin);
    }
    held.texts.push_back(fmt::format(
        "{} the band of {} around {}, the median of {} earlier runs",
        low    ? "below"
        : high ? "above"
               : "within",
        limit.in_sigmas ? fmt::format("{:g} standard deviations ({})", band, in_words(expectation.metric, margin))
                        : fmt::format("{:g} %", band * 100),
        in_words(expectation.metric, typical), earlier.size()));
}

VerdictRow judge_median(const Expectation& expectation, const std::string& algorithm, const History& history,
                        const std::vector<PhaseStatistics>& statistics) {
    const std::string_view phase = to_string(expectation.phase);
    const std::string_view metric = to_string(expectation.metric);
    VerdictRow row = make_row("expectation", fmt::format("{}/{} {}", algorithm, phase, metric), Verdict::kInconclusive,
                              "no data: no iteration was completed");
    const PhaseStatistics* entry = record::find(statistics, algorithm, phase);
    if (entry != nullptr && entry->time_median_ns) {
        row.measured = value_of(*entry, expectation.metric);
        row.reason = fmt::format("no data: {}", base_of(expectation.metric));
    }
    const std::string value = !row.measured                     ? ""
                              : is_duration(expectation.metric) ? in_words(expectation.metric, *row.measured)
                                                                : fmt::format("{:.4f}", *row.measured);
    hold_against_limits(
        expectation, history,
        fmt::format("median {} of {} iterations is {}", metric, entry != nullptr ? entry->iterations : 0, value), row);
    return row;
}

std::int32_t planned_iterations(const scenarios::Plan& plan, scenarios::Phase phase) {
    const scenarios::IterationCounts& counts = plan.workload.iterations;
    switch (phase) {
    case scenarios::Phase::kWarmup: return counts.warmup;
    case scenarios::Phase::kSteady: return counts.steady;
    case scenarios::Phase::kDegraded: return counts.degraded;
    case scenarios::Phase::kRecovered: return counts.recovered;
    }
    return 0;
}

/// The share of right iterations. One that ended with the expected error, or was broken off by something else than the
/// system under test, does not count.
VerdictRow judge_share_of_right(const RunData& data, const scenarios::Plan& plan, const Expectation& expectation,
                                const std::string& algorithm, const History& history,
                                const std::vector<PhaseStatistics>& statistics) {
    const std::string_view phase = to_string(expectation.phase);
    VerdictRow row = make_row("expectation", fmt::format("{}/{} {}", algorithm, phase, to_string(expectation.metric)),
                              Verdict::kInconclusive, "no data: no iteration was completed");
    const PhaseStatistics* entry = record::find(statistics, algorithm, phase);
    const bool ended_early =
        expectation.phase == scenarios::Phase::kDegraded && expected_error(data, plan, algorithm) != nullptr;
    const std::int32_t forgiven = ended_early ? 1 : broken_off(data) && entry != nullptr ? entry->failed : 0;
    const std::int32_t all = entry != nullptr ? entry->iterations + entry->failed - forgiven : 0;
    if (all <= 0) {
        hold_against_limits(expectation, history, "", row);
        return row;
    }
    const std::int32_t right = entry->iterations - entry->wrong;
    row.measured = static_cast<double>(right) / all;
    hold_against_limits(expectation, history,
                        fmt::format("{} of {} iterations gave the right result on every rank", right, all), row);
    const std::int32_t planned = planned_iterations(plan, expectation.phase);
    if (row.verdict == to_string(Verdict::kPass) && all < planned && !ended_early) {
        row.verdict = to_string(Verdict::kInconclusive);
        row.reason += fmt::format("; {} were planned", planned);
    }
    return row;
}

} // namespace

void hold_against_limits(const Expectation& expectation, const History& history, std::string_view what,
                         VerdictRow& row) {
    Held held;
    hold_against_numbers(expectation, row, held);
    if (!row.measured) {
        return; // the reason says why
    }
    if (expectation.baseline) {
        hold_against_baseline(expectation, history, row, held);
    }
    if (held.gathering && !held.missed) { // its text stands first: is_sound() looks for it there
        row.verdict = to_string(Verdict::kInconclusive);
        row.reason = fmt::format("{}; {}", held.texts.back(), what);
        return;
    }
    row.verdict = to_string(held.missed ? Verdict::kFail : Verdict::kPass);
    row.reason = fmt::format("{}, {}", what, fmt::join(held.texts, ", "));
}

void judge_expectations(const RunData& data, const scenarios::Plan& plan,
                        const std::vector<PhaseStatistics>& statistics, std::vector<VerdictRow>& rows) {
    const History history = history_of(data);
    for (const Expectation& expectation : plan.expectations) {
        const std::vector<std::string> algorithms =
            expectation.algorithm ? std::vector{*expectation.algorithm} : plan.workload.labels();
        for (const std::string& algorithm : algorithms) {
            if (expectation.outcome) {
                rows.push_back(judge_outcome(data, plan, expectation, algorithm));
            } else if (is_of_a_fault(expectation.metric)) {
                judge_fault_metric(data, plan, statistics, expectation, algorithm, history, rows);
            } else if (expectation.metric == Metric::kCorrectness) {
                rows.push_back(judge_share_of_right(data, plan, expectation, algorithm, history, statistics));
            } else {
                rows.push_back(judge_median(expectation, algorithm, history, statistics));
            }
        }
    }
}

} // namespace railbreak::analyse
