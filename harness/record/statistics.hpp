// Figures per algorithm and phase, computed from a run's rows. The verdicts and all reports take them from here, so
// that no two of them can differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::record {

/// Times and derived figures of one algorithm in one phase. Times are over the iterations without error; a figure that
/// lacks its data is empty, never 0.
struct PhaseStatistics {
    std::string algorithm;
    std::string phase;
    std::int32_t iterations = 0; ///< without error
    std::int32_t failed = 0;     ///< with error
    std::int32_t wrong = 0;      ///< without error, but with a wrong or missing digest
    std::optional<double> time_min_ns;
    std::optional<double> time_median_ns; ///< of an even number: mean of the middle two
    std::optional<double> time_max_ns;
    std::optional<double> algbw_bytes_per_s;  ///< bytes / median time
    std::optional<double> busbw_bytes_per_s;  ///< algbw * 2(p-1)/p, p = number of ranks
    std::optional<double> vs_healthy;         ///< median time / median time of the ring in its steady phase
    std::optional<double> vs_steady;          ///< median time / median time of the same algorithm in its steady phase
    std::optional<double> overhead_exclusive; ///< median time / binding bound of the exclusive port model
    std::optional<double> overhead_fluid;     ///< median time / binding bound of the fluid port model
};

/// One entry for each algorithm and phase with iterations: algorithms in the order of their first iteration, phases in
/// the order warmup, steady, degraded, recovered, others.
[[nodiscard]] std::vector<PhaseStatistics> phase_statistics(const RunData& data);

/// The entry of an algorithm and phase, or nullptr.
[[nodiscard]] const PhaseStatistics* find(const std::vector<PhaseStatistics>& all, std::string_view algorithm,
                                          std::string_view phase);

/// The binding (largest) lower bound of an algorithm and phase in a port model ("exclusive", "fluid"), or nullptr.
/// Bounds without a time do not count.
[[nodiscard]] const BoundRow* binding_bound(const RunData& data, std::string_view algorithm, std::string_view phase,
                                            std::string_view model);

/// The ranks of an iteration whose digest is not the expected one. Empty when all are right.
[[nodiscard]] std::vector<std::int32_t> wrong_ranks(const RunData& data, const IterationRow& iteration);

/// Number of ranks with a digest for an iteration.
[[nodiscard]] std::int32_t reporting_ranks(const RunData& data, const IterationRow& iteration);

/// Number of ranks of the run: as recorded, or one for each host where none is recorded.
[[nodiscard]] std::int32_t rank_count(const RunData& data);

/// Median; empty for no values.
[[nodiscard]] std::optional<double> median(std::vector<double> values);

} // namespace railbreak::record
