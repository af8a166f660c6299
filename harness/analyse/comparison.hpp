// Whether one set of runs is slower than another, and by how much: a pure function of the runs and a seed.
//
// The iterations of one run are not independent of each other: whatever the machine did that day is in all of them. So
// the runs are the independent observations, each by the median of its iterations, which a few outliers do not move.
// Two things must agree before a difference is told: a test of the runs' medians, and a confidence interval for the
// ratio that leaves out 1. With enough runs the test is that of Mann and Whitney, which assumes nothing about how
// medians scatter, and the interval comes from a bootstrap over the runs. Where there are too few runs for ranks to
// tell anything, the spread of the runs decides, as if medians scattered normally. docs/compare.md tells how often all
// that is right.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/measure.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// What a comparison came to.
enum class Difference : std::uint8_t {
    kSlower,     ///< the second set has the larger values
    kFaster,     ///< it has the smaller ones
    kNone,       ///< whatever difference there is, it is smaller than what counts
    kCannotTell, ///< neither is shown
};
/// "slower", "faster", "no_difference", "cannot_tell".
[[nodiscard]] std::string_view to_string(Difference difference);

/// How a comparison was decided.
enum class Method : std::uint8_t {
    kNothing, ///< not at all: one run on each side, or none on one
    kSpread,  ///< too few runs for ranks: t-test of the logarithms of the runs' medians, equal variances
    kRanks,   ///< Mann-Whitney test of the runs' medians, bootstrap for the interval
    kExact,   ///< simulated on both sides: there is no chance in it
};
/// "none", "spread", "ranks", "exact".
[[nodiscard]] std::string_view to_string(Method method);

/// How sets are compared.
struct CompareOptions {
    Measure measure = Measure::kTime;
    double confidence = 0.95; ///< in (0.5, 1): of intervals; tests are held against 1 - confidence
    double tolerance = 0.03;  ///< relative difference from which on one counts
    std::int32_t resamples = 2000;
    std::uint64_t seed = 1; ///< of the bootstrap
    bool simulated = false; ///< both sets are simulated: what is not the same differs
};

/// The values of one set: for each run those of its iterations. Runs without values do not count.
using Samples = std::vector<std::vector<double>>;

/// From a smaller to a larger number.
struct Interval {
    double low = 0;
    double high = 0;
};

/// Two sets of one measure, the second (B) against the first (A).
struct Comparison {
    Difference difference = Difference::kCannotTell;
    Method method = Method::kNothing;
    std::size_t runs_a = 0;
    std::size_t runs_b = 0;
    /// Typical value of a set: the median of its runs' medians; with Method::kSpread their geometric mean.
    std::optional<double> typical_a;
    std::optional<double> typical_b;
    std::optional<double> ratio;      ///< typical_b / typical_a
    std::optional<Interval> interval; ///< for the ratio, at CompareOptions::confidence
    double p_value = 1;               ///< two-sided
    double adjusted_p_value = 1;      ///< after Holm's correction for all comparisons of the family
    std::size_t family = 1;           ///< how many comparisons were made at once
    /// The smallest relative difference that data like this shows in 8 of 10 cases: 0.02 is 2 %. Empty: there is none.
    std::optional<double> visible;
    double confidence = 0.95; ///< as asked
    double tolerance = 0.03;  ///< as asked
};

/// The values that two sets of runs have of an algorithm's phase.
struct PhaseSamples {
    std::string algorithm;
    std::string phase;
    Samples a;
    Samples b;
};

/// One entry for each algorithm and phase, in the order of the first set, then what only the second has.
[[nodiscard]] std::vector<PhaseSamples> pair_up(std::span<const record::RunData> a, std::span<const record::RunData> b,
                                                Measure measure);

/// Compares two sets. All values must be above 0.
[[nodiscard]] Comparison compare(const Samples& a, const Samples& b, const CompareOptions& options);

/// Compares several pairs of sets at once, so that the chance of even one false finding stays below 1 - confidence.
[[nodiscard]] std::vector<Comparison> compare_family(std::span<const PhaseSamples> pairs,
                                                     const CompareOptions& options);

/// The comparison in one plain sentence, without a full stop: "B is slower than A by 3.1 % (95 % confidence: 2.2 % to
/// 4.0 %)".
[[nodiscard]] std::string in_words(const Comparison& comparison, std::string_view a = "A", std::string_view b = "B");

/// An algorithm's phase in both sets.
struct PhaseComparison {
    std::string algorithm;
    std::string phase;
    Comparison comparison;
};

/// Two sets of runs.
struct SetComparison {
    CompareOptions options;
    std::vector<PhaseComparison> phases; ///< in the order of the first set, then what only the second has
    /// Why this is not like with like, one sentence each: other plan, other cluster, simulated against measured.
    std::vector<std::string> unlike;
    std::vector<std::string> shared; ///< ids of runs that are in both sets: these make them look more alike
    std::string sentence;            ///< what it comes to, over all phases
};

/// Compares two sets of runs, each algorithm and phase by itself.
[[nodiscard]] SetComparison compare_sets(std::span<const record::RunData> a, std::span<const record::RunData> b,
                                         const CompareOptions& options = {});

/// Two sets to compare.
struct RunSets {
    std::span<const record::RunData> a;
    std::span<const record::RunData> b;
};

/// compare_sets() of several pairs of sets, as one family: over all of them the chance of even one false finding stays
/// below 1 - confidence.
[[nodiscard]] std::vector<SetComparison> compare_all(std::span<const RunSets> pairs, const CompareOptions& options);

/// Why the runs do not belong into one set: another plan or cluster than the first one's. Empty when they do.
[[nodiscard]] std::string why_mixed(std::span<const record::RunData> runs);

/// Where a run ran, for comparing like with like: RunRow::cluster, or the backend where that is not recorded.
[[nodiscard]] std::string place_of(const record::RunRow& run);

} // namespace railbreak::analyse
