#include "harness/analyse/change_point.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "scenarios/random.hpp"

namespace railbreak::analyse {

namespace {

constexpr std::size_t kFewest = 4;

/// signs[i][j] of the values i and j: the test needs nothing else of them.
using Signs = std::vector<std::vector<int>>;

Signs signs_of(std::span<const double> values) {
    Signs signs(values.size(), std::vector<int>(values.size(), 0));
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t j = 0; j < values.size(); ++j) {
            signs[i][j] = values[i] < values[j] ? 1 : values[i] > values[j] ? -1 : 0;
        }
    }
    return signs;
}

/// For each value the sum of its signs against all others. U of a split is the sum over the values before it, because
/// pairs on one side cancel each other.
std::vector<std::int64_t> scores_of(const Signs& signs) {
    std::vector<std::int64_t> scores;
    for (const std::vector<int>& row : signs) {
        std::int64_t sum = 0;
        for (const int sign : row) {
            sum += sign;
        }
        scores.push_back(sum);
    }
    return scores;
}

/// The split with the largest |U|, the first of equals.
Split largest(const std::vector<std::int64_t>& scores) {
    Split best;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i + 1 < scores.size(); ++i) {
        sum += scores[i];
        if (std::abs(sum) > best.statistic) {
            best.statistic = std::abs(sum);
            best.first = i + 1;
        }
    }
    return best;
}

void split_further(std::span<const double> values, std::size_t offset, double level, std::int32_t shuffles,
                   std::uint64_t seed, std::vector<Split>& found) {
    std::optional<Split> split = find_split(values, shuffles, seed);
    if (!split || split->p_value > level) {
        return;
    }
    const std::size_t at = split->first;
    split_further(values.first(at), offset, level, shuffles, seed, found);
    split->first += offset;
    found.push_back(*split);
    split_further(values.subspan(at), offset + at, level, shuffles, seed, found);
}

} // namespace

std::optional<Split> find_split(std::span<const double> values, std::int32_t shuffles, std::uint64_t seed) {
    if (values.size() < kFewest) {
        return std::nullopt;
    }
    std::vector<std::int64_t> scores = scores_of(signs_of(values));
    Split split = largest(scores);
    scenarios::SplitMix64 random(seed);
    std::int32_t as_much = 1; // the order that there is, is one of them
    for (std::int32_t i = 0; i < shuffles; ++i) {
        for (std::size_t j = scores.size() - 1; j > 0; --j) {
            std::swap(scores[j], scores[random.below(j + 1)]);
        }
        as_much += largest(scores).statistic >= split.statistic ? 1 : 0;
    }
    split.p_value = static_cast<double>(as_much) / (shuffles + 1);
    return split;
}

std::vector<Split> find_splits(std::span<const double> values, double level, std::int32_t shuffles,
                               std::uint64_t seed) {
    std::vector<Split> found;
    split_further(values, 0, level, shuffles, seed, found);
    return found;
}

} // namespace railbreak::analyse
