// Deletes old runs by rules, and never what is still of use: runs of a baseline, runs that are being recorded, and the
// latest pass of each scenario.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace railbreak::record {

/// Which runs may go. A run goes only when each rule that is set lets it go; without a rule nothing does.
struct Retention {
    std::optional<std::int32_t> keep;      ///< not among the last so many of its scenario
    std::optional<Nanoseconds> older_than; ///< started longer ago than this
    bool unfinished = false;               ///< never ended, and its controller is gone
    bool keep_failed = false;              ///< runs with another verdict than pass stay
    Nanoseconds now{0};                    ///< wall clock
};

/// A run that goes.
struct PrunedRun {
    std::int64_t id = 0;
    std::string run_id;
    std::string verdict; ///< empty: unfinished
};

/// What a Retention means for a database.
struct PrunePlan {
    std::vector<PrunedRun> runs;  ///< that go, oldest first
    std::int64_t all = 0;         ///< runs that there are
    std::int64_t baseline = 0;    ///< that the rules would let go, kept as part of a baseline
    std::int64_t recording = 0;   ///< ... kept because they may still be being recorded
    std::int64_t latest_pass = 0; ///< ... kept as the latest pass of their scenario
    std::int64_t failed = 0;      ///< ... kept for Retention::keep_failed
};

/// Finds what would go; changes nothing. kUsage without a rule.
[[nodiscard]] Result<PrunePlan> plan_prune(const std::filesystem::path& path, const Retention& retention);

/// Deletes the runs of a plan with everything of theirs, each in a transaction of its own: a process that is killed
/// meanwhile leaves whole runs. What the reports of a suite need of an item's run stays with the item
/// (SuiteItemRow::pruned). `deleted` is called after each one is gone. A run that has become part of a baseline
/// since stays. With `vacuum` the file is packed at the end, which needs as much free space as it has.
[[nodiscard]] Result<void> prune(const std::filesystem::path& path, const PrunePlan& plan, bool vacuum,
                                 const std::function<void(const PrunedRun&)>& deleted);

} // namespace railbreak::record
