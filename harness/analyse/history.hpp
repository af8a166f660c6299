// What earlier runs of the same plan on the same cluster measured: what a limit that stands on a baseline is held
// against. It is stored with the run that used it, so that judging the run again gives the same verdict.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::record {
class RunReader;
}
namespace railbreak::scenarios {
struct Plan;
}

namespace railbreak::analyse {

/// The artefact that holds a run's History as JSON, schema "railbreak-history" version 1.
inline constexpr std::string_view kHistoryArtefact = "history.json";

/// A baseline is of the last runs, at most that many.
inline constexpr std::int32_t kHistoryRuns = 20;

/// The beginning of the reason of an expectation that has too few earlier runs. Such a run is inconclusive, and is one
/// of the earlier runs of those that follow.
inline constexpr std::string_view kGathering = "baseline still being gathered: ";

/// One earlier run: what its expectations measured, by the subject of their verdict.
struct EarlierRun {
    std::string run_id;
    std::vector<std::pair<std::string, double>> measured;
};

/// Earlier runs, oldest first.
struct History {
    std::vector<EarlierRun> runs;

    /// The values of one subject, oldest first.
    [[nodiscard]] std::vector<double> values_of(std::string_view subject) const;
};

/// Whether a run may stand for how it should be: it passed, or nothing is against it but that baselines were still
/// being gathered.
[[nodiscard]] bool is_sound(const record::RunData& run);

/// The history stored with a run; empty when there is none.
[[nodiscard]] History history_of(const record::RunData& run);

/// Whether a limit of the plan stands on a baseline.
[[nodiscard]] bool needs_history(const scenarios::Plan& plan);

/// The last kHistoryRuns sound runs with the plan hash and cluster of `run` that were recorded before it, as the
/// artefact to be stored with it.
[[nodiscard]] Result<record::ArtefactRow> gather_history(const record::RunReader& reader, const record::RunRow& run);

} // namespace railbreak::analyse
