// Running a suite: its items one after the other, each an ordinary run, with what became of each in the database before
// the next begins. A suite that was interrupted, by a signal or by the death of this process, goes on where it stood.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "harness/controller/progress.hpp"
#include "harness/controller/run.hpp"
#include "scenarios/suite.hpp"

namespace railbreak::controller {

/// Runs one item. The default is run_scenario().
using RunItem = std::function<Result<RunResult>(const scenarios::Scenario&, const RunOptions&, Progress&)>;

/// What the command line says about a suite.
struct SuiteOptions {
    RunOptions run; ///< of every item; its seed is the item's own
    /// Go on with this suite: an id, the beginning of one, or empty for the last one of that name.
    std::optional<std::string> resume{};
    bool retry_failed = false; ///< when going on: run items again that did not pass
    RunItem run_item = run_scenario;
    /// The command line that runs one item by itself, for the record of its run. Empty: RunOptions::command_line, which
    /// is that of the whole suite.
    std::function<std::string(const scenarios::SuiteItem&)> item_command{};
};

/// A suite that ended, complete or not.
struct SuiteResult {
    std::string suite_id;
    int exit_code = 0;
    std::string reason;      ///< one line, empty for a pass
    std::size_t left = 0;    ///< items that have not run to their end
    bool broken_off = false; ///< interrupted, or something could not be torn down: nothing further may run
};

/// Runs a suite, or the rest of one.
///
/// An item that does not pass is met by its on_failure. Whatever that says, the suite ends at once when it is
/// interrupted or when a teardown could not be verified; the items that are left stay as they are and run when it is
/// resumed. Resuming, items that ended are not repeated (those that did not pass only with retry_failed), the one that
/// was interrupted runs again. kInput when the suite to resume is not there, or its plan or cluster is another one now;
/// kUsage for a suite that wants more than may be (see check_parallel()).
[[nodiscard]] Result<SuiteResult> run_suite(const scenarios::SuitePlan& plan, const SuiteOptions& options,
                                            Progress& progress);

/// Whether the items may run as many at a time as the suite wants. In a lab all hosts are this machine: items would
/// slow each other down, and their times would prove nothing. kUsage, with what to write.
[[nodiscard]] Result<void> check_parallel(const scenarios::SuitePlan& plan, std::string_view backend);

} // namespace railbreak::controller
