// Whether runs are slower than a baseline by more than is tolerated: for nightly jobs and CI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/comparison.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// What a gate says, from best to worst. A gate says the worst of its findings.
enum class GateVerdict : std::uint8_t { kNoRegression, kCannotTell, kRegression };
/// "no_regression", "cannot_tell", "regression".
[[nodiscard]] std::string_view to_string(GateVerdict verdict);

/// One phase of one plan, or one run that is bad by itself.
struct GateFinding {
    GateVerdict verdict = GateVerdict::kCannotTell;
    std::string subject; ///< "half-rate-nic: ring degraded", or a run's id
    std::string reason;  ///< one line
};

/// What a gate came to.
struct Gate {
    GateVerdict verdict = GateVerdict::kCannotTell;
    std::string sentence;              ///< the verdict in one line
    std::vector<GateFinding> findings; ///< regressions first, then what cannot be told, then the rest
    CompareOptions options;
};

/// Holds runs against the runs of a baseline, plan by plan and cluster by cluster: only like is compared with like.
///  - A run that failed is a regression. One that is not sound otherwise (inconclusive, aborted, invalid) proves
///    nothing: cannot tell.
///  - A phase is a regression when the comparison says slower, and by more than CompareOptions::tolerance; none when
///    the whole confidence interval is below that; otherwise nothing can be told.
///  - Without sound runs of the same plan and cluster in the baseline nothing can be told.
/// Unsound runs of the baseline are left out. A run that is in both is left out of the baseline. `more` are findings
/// that others made, such as items of a suite that have no run.
[[nodiscard]] Gate gate(std::span<const record::RunData> baseline, std::span<const record::RunData> runs,
                        const CompareOptions& options = {}, std::vector<GateFinding> more = {});

} // namespace railbreak::analyse
