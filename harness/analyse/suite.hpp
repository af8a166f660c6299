// What a suite came to, from the database alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/verdict.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::analyse {

/// How SuiteItemRow::reason begins when the teardown of the item's run could not be verified.
inline constexpr std::string_view kTeardownOpen = "teardown not verified: ";

/// What became of one item of a suite.
struct ItemOutcome {
    /// Its run's verdict; "refused" of one that was refused before a run began; "unknown" when its run was deleted
    /// since; "waiting", "interrupted" (it will run again) or "skipped" of one without.
    std::string word;
    bool finished = false; ///< it need not run (again) for the suite to be complete
};

/// See the file comment.
struct SuiteOutcome {
    /// The worst of the items' verdicts, at least aborted as long as an item has not run.
    Verdict verdict = Verdict::kPass;
    std::string reason; ///< one line, empty for a pass
    std::vector<ItemOutcome> items;
    std::size_t passed = 0;
    std::size_t skipped = 0;
    std::size_t left = 0;       ///< waiting or interrupted
    bool teardown_open = false; ///< the teardown of an item's run could not be verified
};

/// Judges a suite. An item of which the controller died between the run's verdict and the item's counts as done.
[[nodiscard]] SuiteOutcome judge_suite(const record::SuiteData& data);

/// The exit code of that outcome: 5 when a teardown is open, otherwise by the verdict; an invalid suite counts as
/// inconclusive unless an item failed.
[[nodiscard]] ExitCode exit_code_of(const SuiteOutcome& outcome);

} // namespace railbreak::analyse
