// Which recorded runs a command is about: single ones, lists, ranges, baselines.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/reader.hpp"

namespace railbreak::cli {

/// The most runs that one set may have; each is held in memory whole.
inline constexpr std::int32_t kMostRuns = 1000;

/// What RUN means in the help of commands that take sets.
inline constexpr std::string_view kSetHelp =
    "Runs, separated by commas: a run id, the beginning of one, latest, or FROM..TO: all runs of that scenario between";

/// The runs of a set, each once, in the order given: "RUN", "RUN,RUN,...", "FROM..TO" (all finished runs of the
/// scenario of both, from the one to the other, both included).
[[nodiscard]] Result<std::vector<record::RunData>> load_set(const record::RunReader& reader, std::string_view text);

/// The runs of a baseline, oldest first.
[[nodiscard]] Result<std::vector<record::RunData>> load_baseline(const record::RunReader& reader, std::string_view tag);

} // namespace railbreak::cli
