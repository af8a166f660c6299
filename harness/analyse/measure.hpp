// What is compared between runs: one value for each iteration, of one measure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// A quantity that every iteration has. For all of them more is worse.
enum class Measure : std::uint8_t {
    kTime,              ///< duration in nanoseconds
    kOverheadExclusive, ///< duration / binding bound of the exclusive port model
    kOverheadFluid,     ///< duration / binding bound of the fluid port model
    kVsHealthy,         ///< duration / median of the ring in its steady phase in the same run
    kVsSteady,          ///< duration / median of the same algorithm in its steady phase in the same run
};
/// Every Measure.
inline constexpr std::array kMeasures{Measure::kTime, Measure::kOverheadExclusive, Measure::kOverheadFluid,
                                      Measure::kVsHealthy, Measure::kVsSteady};
/// "time", "overhead_exclusive", "overhead_fluid", "vs_healthy", "vs_steady".
[[nodiscard]] std::string_view to_string(Measure measure);
/// The inverse; nothing for an unknown word.
[[nodiscard]] std::optional<Measure> parse_measure(std::string_view word);

/// The values of one algorithm's phase in one run, in the order of the iterations.
struct PhaseValues {
    std::string algorithm;
    std::string phase;
    std::vector<double> values;
};

/// One entry for each algorithm and phase of the run in which the measure has values, in the order of
/// record::phase_statistics(). Warm-up and the tries that choose between forms are left out, and so are iterations with
/// an error. A phase that is compared with itself (vs_steady of the steady phase) has no values.
[[nodiscard]] std::vector<PhaseValues> values_of(const record::RunData& data, Measure measure);

/// The values of an algorithm and phase; empty when there are none.
[[nodiscard]] std::vector<double> find_values(const std::vector<PhaseValues>& all, std::string_view algorithm,
                                              std::string_view phase);

} // namespace railbreak::analyse
