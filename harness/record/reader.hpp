// Reads runs back from the database, never writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::record {

/// The fact of an Error that a name is the beginning of several; its value says how many.
inline constexpr std::string_view kAmbiguous = "matches";

/// One line of the list of runs.
struct RunSummary {
    std::string run_id;
    std::string scenario_name;
    std::string backend;
    std::string plan_hash;
    std::uint64_t seed = 0;
    std::int32_t hosts = 0;
    std::int64_t started_realtime_ns = 0;
    std::int64_t finished_realtime_ns = 0; ///< 0: still running, or the controller died
    std::string verdict;                   ///< of scope "run"; empty when there is none yet
    std::string reason;
    std::string teardown_problem; ///< reason of a teardown verdict that is not pass, else empty
};

/// An event with its number in the database. Numbers rise in the order of recording.
struct StoredEvent {
    std::int64_t id = 0;
    EventRow event;
};

/// How far a run is, for one who watches it.
struct RunState {
    std::string run_id;
    bool finished = false;
    bool controller_gone = false;     ///< not finished, and nobody will: the process that recorded it is certainly gone
    std::int64_t origin = 0;          ///< its first event, order or iteration, which offsets count from; 0: none yet
    std::vector<VerdictRow> verdicts; ///< none before it has finished
};

/// An open database, for one thread. Movable, not copyable. A run that is being recorded meanwhile can be read.
class RunReader {
public:
    /// Opens an existing file. kInput when it is missing, no database, not ours or written by a newer railbreak.
    [[nodiscard]] static Result<RunReader> open_readonly(const std::filesystem::path& path);

    RunReader(RunReader&&) noexcept;
    RunReader& operator=(RunReader&&) noexcept;
    ~RunReader();

    /// Everything of one run, as of one moment. `which` is "latest" (recorded last, whatever the clock said), a run id,
    /// or the beginning of exactly one run id. kInput for an unknown or ambiguous name, with the runs that there are.
    [[nodiscard]] Result<RunData> load_run(std::string_view which) const;

    /// The id (RunRow::id) of the run that load_run() would load.
    [[nodiscard]] Result<std::int64_t> find_run(std::string_view which) const;

    /// The events of a run (RunRow::id) with numbers above `after`, at most `limit`, in the order of recording.
    [[nodiscard]] Result<std::vector<StoredEvent>> events_since(std::int64_t run, std::int64_t after,
                                                                std::int32_t limit) const;

    /// What events_since() reads after this has found the run finished is all there will be.
    [[nodiscard]] Result<RunState> run_state(std::int64_t run) const;

    /// The last `limit` runs, latest first. The order of all lists is that of recording: a clock that was set back does
    /// not turn it round.
    [[nodiscard]] Result<std::vector<RunSummary>> list_runs(std::int32_t limit) const;

    /// The runs of a scenario (and, unless empty, of one plan hash and one cluster), oldest first, at most the last
    /// `limit` of them. Only finished ones.
    [[nodiscard]] Result<std::vector<RunSummary>> find_runs(std::string_view scenario_name, std::string_view plan_hash,
                                                            std::string_view cluster, std::int32_t limit) const;

    /// The names of the artefacts of the last `limit` runs, each once, sorted.
    [[nodiscard]] Result<std::vector<std::string>> artefact_names(std::int32_t limit) const;

    /// A suite with its items: "latest", a suite id or the beginning of exactly one. kInput as load_run().
    [[nodiscard]] Result<SuiteData> load_suite(std::string_view which) const;

    /// The last `limit` suites, latest first.
    [[nodiscard]] Result<std::vector<SuiteRow>> list_suites(std::int32_t limit) const;

    /// The runs of a baseline, oldest first; kInput for an unknown tag, with the tags that there are.
    [[nodiscard]] Result<std::vector<BaselineRow>> baseline(std::string_view tag) const;

    /// All baselines by tag, then by age of their runs.
    [[nodiscard]] Result<std::vector<BaselineRow>> list_baselines() const;

private:
    struct Impl;
    explicit RunReader(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace railbreak::record
