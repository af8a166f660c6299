#include "harness/analyse/measure.hpp"

#include <algorithm>

#include "harness/record/statistics.hpp"

namespace railbreak::analyse {

using record::PhaseStatistics;
using record::RunData;

namespace {

/// What a duration in nanoseconds is divided by; nothing where the run lacks it, or where the phase is what the measure
/// compares with.
std::optional<double> unit_of(const RunData& data, const std::vector<PhaseStatistics>& all,
                              const PhaseStatistics& entry, Measure measure) {
    const auto bound = [&](std::string_view model) -> std::optional<double> {
        const record::BoundRow* row = record::binding_bound(data, entry.algorithm, entry.phase, model);
        return row != nullptr ? std::optional(static_cast<double>(row->time_ns)) : std::nullopt;
    };
    const auto steady = [&](std::string_view algorithm) -> std::optional<double> {
        const PhaseStatistics* base = record::find(all, algorithm, "steady");
        return base != nullptr && base != &entry ? base->time_median_ns : std::nullopt;
    };
    switch (measure) {
    case Measure::kTime: return 1.0;
    case Measure::kOverheadExclusive: return bound("exclusive");
    case Measure::kOverheadFluid: return bound("fluid");
    case Measure::kVsHealthy: return steady("ring");
    case Measure::kVsSteady: return steady(entry.algorithm);
    }
    return std::nullopt;
}

} // namespace

std::string_view to_string(Measure measure) {
    switch (measure) {
    case Measure::kTime: return "time";
    case Measure::kOverheadExclusive: return "overhead_exclusive";
    case Measure::kOverheadFluid: return "overhead_fluid";
    case Measure::kVsHealthy: return "vs_healthy";
    case Measure::kVsSteady: return "vs_steady";
    }
    return "time";
}

std::optional<Measure> parse_measure(std::string_view word) {
    const auto* const found = std::ranges::find_if(kMeasures, [&](Measure m) { return to_string(m) == word; });
    return found != kMeasures.end() ? std::optional(*found) : std::nullopt;
}

std::vector<PhaseValues> values_of(const RunData& data, Measure measure) {
    const std::vector<PhaseStatistics> all = record::phase_statistics(data);
    std::vector<PhaseValues> result;
    for (const PhaseStatistics& entry : all) {
        if (entry.phase == "warmup" || entry.phase == "comparison") {
            continue;
        }
        const std::optional<double> unit = unit_of(data, all, entry, measure);
        PhaseValues found{entry.algorithm, entry.phase, {}};
        for (const record::IterationRow& row : data.iterations) {
            if (unit && *unit > 0 && row.algorithm == entry.algorithm && row.phase == entry.phase &&
                row.error.empty() && row.duration_ns > 0) {
                found.values.push_back(static_cast<double>(row.duration_ns) / *unit);
            }
        }
        if (!found.values.empty()) {
            result.push_back(std::move(found));
        }
    }
    return result;
}

std::vector<double> find_values(const std::vector<PhaseValues>& all, std::string_view algorithm,
                                std::string_view phase) {
    const auto found = std::ranges::find_if(
        all, [&](const PhaseValues& entry) { return entry.algorithm == algorithm && entry.phase == phase; });
    return found != all.end() ? found->values : std::vector<double>{};
}

} // namespace railbreak::analyse
