// Runs of nccl-tests' all_reduce_perf as runs of ours, to compare with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::reports {

/// RunRow::backend of an imported run.
inline constexpr std::string_view kImportedBackend = "import";

/// A file to import.
struct NcclImport {
    std::string_view text;        ///< its content: what all_reduce_perf printed, or its JSON (-J)
    std::string_view file;        ///< its name, for messages
    std::string name;             ///< of the runs: RunRow::scenario_name
    std::string version;          ///< of railbreak, for the record
    std::string command_line;     ///< for the record
    std::int64_t realtime_ns = 0; ///< now; when the run began, where the file does not say
};

/// Largest file that is read.
inline constexpr std::size_t kMostImportBytes = std::size_t{64} << 20;

/// A run for each size, type and operation of the file, in its order; with several of them their names end in what
/// tells them apart ("NAME-33554432"). Algorithm "nccl" has what ran in place, "nccl-out-of-place" the rest, all in
/// phase "steady": each iteration where the file has its time, else one with the mean. Iterations that the file itself
/// leaves out of its figures are warm-up. Ids are 0, the rows carry no run, and moments are made up: iterations follow
/// each other. Nothing of it was seen by railbreak, so the run's verdict is inconclusive, or fail when nccl-tests
/// counted wrong elements.
/// Errors (kInput) name the file, the place in it, the value and what is allowed: another collective than AllReduce, a
/// report of railbreak itself, a header, type or version that is not known, numbers that do not fit each other, no
/// ranks, no results.
[[nodiscard]] Result<std::vector<record::RunData>> import_nccl(const NcclImport& import);

} // namespace railbreak::reports
