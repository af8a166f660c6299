// Two sets of runs of several scenarios, taken apart into sets that can be compared.
#pragma once

#include <string>
#include <vector>

#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// The runs that two sets have of one plan on one cluster; never empty on either side.
struct MatchedRuns {
    std::vector<record::RunData> a;
    std::vector<record::RunData> b;
};

/// What two sets have in common, and what only one of them has.
struct Matching {
    std::vector<MatchedRuns> scenarios; ///< in the order of the first set
    std::vector<std::string> only_a;    ///< "half-rate 3f9c0a1b2c3d on lab on node7 (2 runs)", in order
    std::vector<std::string> only_b;
};

/// Puts runs of the same plan on the same cluster together. What is left over is matched by the scenario's name where
/// that leaves no choice: a scenario that was changed since, or ran elsewhere. The sets that come out of it are then
/// not like with like, which compare_sets() names.
[[nodiscard]] Matching match(std::vector<record::RunData> a, std::vector<record::RunData> b);

} // namespace railbreak::analyse
