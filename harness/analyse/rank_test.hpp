// Whether two sets of values differ more than chance lets them, without a word about how values are distributed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace railbreak::analyse {

/// What a rank test found.
struct RankTest {
    double u = 0;       ///< pairs (a, b) with a < b, and half of those with a = b
    double p_value = 1; ///< two-sided
    bool exact = true;  ///< from all ways to split the values, not from the normal approximation
};

/// Sets up to this size together are tested exactly: the number of ways to split them is then still exact in a double.
inline constexpr std::size_t kMostExact = 50;

/// The test of Mann and Whitney (On a test of whether one of two random variables is stochastically larger than the
/// other, Ann. Math. Statist. 18, 1947) in the form of rank sums, two-sided: the share of all ways to deal the values
/// to two sets of these sizes in which the rank sum lies at least as far from its mean. Equal values share their mean
/// rank, and the exact distribution takes them into account. Above kMostExact values: normal approximation with the
/// variance corrected for ties and for continuity. An empty set: p = 1.
[[nodiscard]] RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

/// The smallest p-value that sets of these sizes can come to, without ties: 2 / C(a + b, a).
[[nodiscard]] double smallest_p_value(std::size_t a, std::size_t b);

/// p-values of a family of tests, adjusted so that the chance of even one false finding stays below the level that they
/// are held against (Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6, 1979).
[[nodiscard]] std::vector<double> holm(std::span<const double> p_values);

} // namespace railbreak::analyse
