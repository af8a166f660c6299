// Two sets of runs side by side: another machine, another day, another build, or the same scenario simulated and in the
// lab.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "harness/analyse/comparison.hpp"
#include "harness/analyse/matching.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// What the sets are called where they are compared; empty: nothing is said of it.
struct SetNames {
    std::string a; ///< "the baseline golden"
    std::string b; ///< "latest"
};

/// Both sets, whether they are like with like, and what the comparison comes to. Then for each algorithm and phase that
/// both have (warm-up and tries left out): the typical values and B over A, with its confidence interval and p-value
/// where a set has several runs; the overheads over the fluid bound and B over A of them. Each run's bound is for its
/// own measured bandwidths, so that ratio compares clusters of different speed. Then each phase in a plain sentence,
/// what only one set has, and what their schedules differ in. `sets` is compare_sets() of the same runs; neither set
/// may be empty.
[[nodiscard]] std::string compare_table(std::span<const record::RunData> a, std::span<const record::RunData> b,
                                        const analyse::SetComparison& sets, const SetNames& names = {});

/// The same as JSON, schema "railbreak-compare-report" version 1 (docs/report-schema.md). A figure that a set lacks is
/// null; a ratio is null when either is.
[[nodiscard]] std::string compare_json(std::span<const record::RunData> a, std::span<const record::RunData> b,
                                       const analyse::SetComparison& sets);

/// Several scenarios one after the other, a block for each, then what only one of the sets has. `compared` has an entry
/// for each of Matching::scenarios.
[[nodiscard]] std::string compare_scenarios_table(const analyse::Matching& matching,
                                                  std::span<const analyse::SetComparison> compared,
                                                  const SetNames& names);

/// The same as JSON, schema "railbreak-compare-scenarios" version 1; `baseline` is its tag.
[[nodiscard]] std::string compare_scenarios_json(const analyse::Matching& matching,
                                                 std::span<const analyse::SetComparison> compared,
                                                 std::string_view baseline);

} // namespace railbreak::reports
