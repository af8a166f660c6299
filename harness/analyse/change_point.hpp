// Since when a series of values has another level.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace railbreak::analyse {

/// The most likely place of a change in a series.
struct Split {
    std::size_t first = 0; ///< index of the first value after the change
    std::int64_t statistic =
        0;              ///< Pettitt's K: the largest |U|, U = sum of the signs of x[j] - x[i] over i < first <= j
    double p_value = 1; ///< how often the same values in random order come to as much
};

/// Pettitt's test for one change of level. Its p-value is not taken from his approximation, which is too careful for
/// short series, but counted over `shuffles` random orders. Nothing for fewer than 4 values.
[[nodiscard]] std::optional<Split> find_split(std::span<const double> values, std::int32_t shuffles,
                                              std::uint64_t seed);

/// Every split with a p-value of at most `level`: the series is split at the first that is found, then both parts in
/// the same way. Ascending.
[[nodiscard]] std::vector<Split> find_splits(std::span<const double> values, double level, std::int32_t shuffles,
                                             std::uint64_t seed);

} // namespace railbreak::analyse
