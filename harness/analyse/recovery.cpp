#include "harness/analyse/recovery.hpp"

#include <algorithm>

#include "harness/analyse/judge.hpp"

namespace railbreak::analyse {

using record::InjectionRow;
using record::IterationRow;
using record::PhaseStatistics;
using record::RunData;
using scenarios::Expectation;
using scenarios::Millionths;
using scenarios::Phase;

namespace {

Millionths band_of(const std::vector<Expectation>& expectations, const InjectionRow& injection) {
    std::optional<Millionths> narrowest;
    for (const Expectation& expectation : expectations) {
        if (!expectation.outcome && expectation.metric == scenarios::Metric::kRecoveryTime &&
            expectation.algorithm.value_or(injection.algorithm) == injection.algorithm &&
            is_named(injection.name, expectation.fault.value_or(injection.name))) {
            narrowest = std::min(narrowest.value_or(expectation.band), expectation.band);
        }
    }
    return narrowest.value_or(scenarios::kDefaultBand);
}

} // namespace

std::optional<double> slowest_normal_ns(const std::vector<PhaseStatistics>& statistics, std::string_view algorithm,
                                        Millionths band) {
    const PhaseStatistics* steady = record::find(statistics, algorithm, to_string(Phase::kSteady));
    if (steady == nullptr || !steady->time_median_ns || *steady->time_median_ns <= 0) {
        return std::nullopt;
    }
    return *steady->time_median_ns * (1 + static_cast<double>(band) / scenarios::kMillion);
}

std::vector<const IterationRow*> judged_iterations(const RunData& data, std::string_view algorithm) {
    std::vector<const IterationRow*> rows;
    for (const IterationRow& row : data.iterations) {
        if (row.algorithm == algorithm &&
            (row.phase == to_string(Phase::kDegraded) || row.phase == to_string(Phase::kRecovered))) {
            rows.push_back(&row);
        }
    }
    std::ranges::stable_sort(rows, {}, &IterationRow::started_at);
    return rows;
}

Recovery recovery_after(const RunData& data, const std::vector<PhaseStatistics>& statistics,
                        const InjectionRow& injection, Millionths band) {
    Recovery recovery{.undone_at = injection.reverted_at, .band = band};
    const std::optional<double> slowest = slowest_normal_ns(statistics, injection.algorithm, band);
    if (!slowest || recovery.undone_at == 0) {
        recovery.no_data = !slowest ? kNoSteadyPhase : "the fault was never undone";
        return recovery;
    }
    const bool broken = broken_off(data);
    for (const IterationRow* row : judged_iterations(data, injection.algorithm)) {
        const std::int64_t end = row->started_at + row->duration_ns;
        if (end <= recovery.undone_at || (!row->error.empty() && broken)) {
            continue;
        }
        ++recovery.looked_at;
        recovery.time_ns = std::max(recovery.time_ns, end - recovery.undone_at);
        if (row->error.empty() && row->correct && static_cast<double>(row->duration_ns) <= *slowest) {
            recovery.iteration = row;
            recovery.time_ns = end - recovery.undone_at;
            return recovery;
        }
    }
    if (recovery.looked_at == 0) {
        recovery.no_data = "no iteration ended after the fault was undone";
    }
    return recovery;
}

std::optional<Recovery> recovery_of(const RunData& data, const std::vector<PhaseStatistics>& statistics,
                                    const std::vector<Expectation>& expectations, std::string_view algorithm) {
    const InjectionRow* last = nullptr;
    for (const InjectionRow& row : data.injections) {
        if (row.algorithm != algorithm || row.applied_at == 0) {
            continue;
        }
        const bool endless = row.reverted_at == 0;
        if (last == nullptr || (last->reverted_at != 0 && (endless || row.reverted_at > last->reverted_at))) {
            last = &row;
        }
    }
    if (last == nullptr) {
        return std::nullopt;
    }
    return recovery_after(data, statistics, *last, band_of(expectations, *last));
}

} // namespace railbreak::analyse
