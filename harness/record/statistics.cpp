#include "harness/record/statistics.hpp"

#include <algorithm>
#include <array>

namespace railbreak::record {

namespace {

std::optional<double> ratio(std::optional<double> value, std::optional<double> base) {
    return value && base && *base > 0 ? std::optional(*value / *base) : std::nullopt;
}

std::optional<double> bound_time(const RunData& data, const PhaseStatistics& at, std::string_view model) {
    const BoundRow* bound = binding_bound(data, at.algorithm, at.phase, model);
    return bound != nullptr ? std::optional(static_cast<double>(bound->time_ns)) : std::nullopt;
}

std::size_t phase_order(std::string_view phase) {
    constexpr std::array<std::string_view, 5> kOrder{"warmup", "steady", "comparison", "degraded", "recovered"};
    return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), phase) - kOrder.begin());
}

// Empty entries in their final order.
std::vector<PhaseStatistics> groups(const RunData& data) {
    std::vector<std::string_view> algorithms;
    std::vector<PhaseStatistics> all;
    for (const IterationRow& row : data.iterations) {
        if (std::find(algorithms.begin(), algorithms.end(), row.algorithm) == algorithms.end()) {
            algorithms.push_back(row.algorithm);
        }
        if (find(all, row.algorithm, row.phase) == nullptr) {
            all.push_back({});
            all.back().algorithm = row.algorithm;
            all.back().phase = row.phase;
        }
    }
    const auto key = [&](const PhaseStatistics& entry) {
        const auto at = std::find(algorithms.begin(), algorithms.end(), entry.algorithm);
        return std::pair(at - algorithms.begin(), phase_order(entry.phase));
    };
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return all;
}

void measure(const RunData& data, PhaseStatistics& entry) {
    std::vector<double> times;
    for (const IterationRow& row : data.iterations) {
        if (row.algorithm != entry.algorithm || row.phase != entry.phase) {
            continue;
        }
        if (!row.error.empty()) {
            ++entry.failed;
            continue;
        }
        ++entry.iterations;
        const bool right = row.correct && wrong_ranks(data, row).empty() && !row.expected_digest.empty();
        entry.wrong += right ? 0 : 1;
        if (row.duration_ns > 0) {
            times.push_back(static_cast<double>(row.duration_ns));
        }
    }
    if (!times.empty()) {
        const auto [low, high] = std::minmax_element(times.begin(), times.end());
        entry.time_min_ns = *low;
        entry.time_max_ns = *high;
    }
    entry.time_median_ns = median(std::move(times));
}

} // namespace

std::vector<PhaseStatistics> phase_statistics(const RunData& data) {
    std::vector<PhaseStatistics> all = groups(data);
    for (PhaseStatistics& entry : all) {
        measure(data, entry);
    }
    const auto median_of = [&](std::string_view algorithm) {
        const PhaseStatistics* entry = find(all, algorithm, "steady");
        return entry != nullptr ? entry->time_median_ns : std::nullopt;
    };
    const std::optional<double> healthy = median_of("ring");
    const double ranks = rank_count(data);
    for (PhaseStatistics& entry : all) {
        if (entry.time_median_ns) {
            entry.algbw_bytes_per_s = static_cast<double>(data.run.bytes) * 1e9 / *entry.time_median_ns;
            if (ranks > 0) {
                entry.busbw_bytes_per_s = *entry.algbw_bytes_per_s * 2.0 * (ranks - 1) / ranks;
            }
        }
        entry.vs_healthy = ratio(entry.time_median_ns, healthy);
        entry.vs_steady = ratio(entry.time_median_ns, median_of(entry.algorithm));
        entry.overhead_exclusive = ratio(entry.time_median_ns, bound_time(data, entry, "exclusive"));
        entry.overhead_fluid = ratio(entry.time_median_ns, bound_time(data, entry, "fluid"));
    }
    return all;
}

const PhaseStatistics* find(const std::vector<PhaseStatistics>& all, std::string_view algorithm,
                            std::string_view phase) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const PhaseStatistics& entry) {
        return entry.algorithm == algorithm && entry.phase == phase;
    });
    return found != all.end() ? &*found : nullptr;
}

const BoundRow* binding_bound(const RunData& data, std::string_view algorithm, std::string_view phase,
                              std::string_view model) {
    const BoundRow* binding = nullptr;
    for (const BoundRow& bound : data.bounds) {
        if (bound.algorithm == algorithm && bound.phase == phase && bound.model == model && bound.time_ns > 0 &&
            (binding == nullptr || bound.time_ns > binding->time_ns)) {
            binding = &bound;
        }
    }
    return binding;
}

std::vector<std::int32_t> wrong_ranks(const RunData& data, const IterationRow& iteration) {
    std::vector<std::int32_t> ranks;
    for (const RankIterationRow& row : data.rank_iterations) {
        if (row.iteration == iteration.id && row.digest != iteration.expected_digest) {
            ranks.push_back(row.rank);
        }
    }
    return ranks;
}

std::int32_t reporting_ranks(const RunData& data, const IterationRow& iteration) {
    return static_cast<std::int32_t>(
        std::count_if(data.rank_iterations.begin(), data.rank_iterations.end(), [&](const RankIterationRow& row) {
            return row.iteration == iteration.id && !row.digest.empty();
        }));
}

std::int32_t rank_count(const RunData& data) {
    return data.ranks.empty() ? data.run.hosts : static_cast<std::int32_t>(data.ranks.size());
}

std::optional<double> median(std::vector<double> values) {
    if (values.empty()) {
        return std::nullopt;
    }
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

} // namespace railbreak::record
