// Writes runs into the database. Every function that returned success has its rows on the disk (write-ahead log,
// synchronous=FULL): neither kill -9 nor a power loss takes back what was reported.
//
// One Recorder belongs to one thread. Several processes may record into one file: each call is one short transaction,
// and one that meets another's lock waits up to the time given at open().
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "harness/record/rows.hpp"

namespace railbreak::record {

/// The one writer of a run. Movable, not copyable. Errors of all functions name the file, what was being done and
/// SQLite's message; kInput when the file cannot serve, kHarness when a lock or the disk is in the way.
class Recorder {
public:
    /// Opens or creates the database with its folders and lifts an older schema to this build's. Refuses (kInput) what
    /// is not a database, another program's database and one written by a newer railbreak.
    [[nodiscard]] static Result<Recorder> open(const std::filesystem::path& path,
                                               std::chrono::milliseconds lock_wait = std::chrono::seconds(5));

    Recorder(Recorder&&) noexcept;
    Recorder& operator=(Recorder&&) noexcept;
    ~Recorder();

    /// The file.
    [[nodiscard]] const std::filesystem::path& path() const;

    /// Stores a run (RunRow::id is ignored) and gives the id that all other rows carry as `run`.
    [[nodiscard]] Result<std::int64_t> begin_run(const RunRow& run);

    /// The same for a run that has no name yet: makes RunRow::run_id of its start and its scenario by make_run_id(),
    /// with another salt where that name is taken. Two controllers that begin at once get two names.
    [[nodiscard]] Result<std::int64_t> begin_new_run(RunRow& run, std::uint64_t salt);

    /// Stores a host, NIC, rank or bound; a second one with the same key replaces the first, so that a value that is
    /// measured later (goodput, clock offset, pid) can be filled in. Hosts come before their NICs and ranks.
    [[nodiscard]] Result<void> add_host(const HostRow& host);
    [[nodiscard]] Result<void> add_nic(const NicRow& nic);
    [[nodiscard]] Result<void> add_rank(const RankRow& rank);
    [[nodiscard]] Result<void> add_bound(const BoundRow& bound);

    [[nodiscard]] Result<void> add_event(const EventRow& event);
    /// Stores all readings in one transaction.
    [[nodiscard]] Result<void> add_counters(const std::vector<CounterRow>& counters);

    /// Stores an iteration with its ranks in one transaction and gives its id. IterationRow::id and
    /// RankIterationRow::iteration are ignored: they are assigned here.
    [[nodiscard]] Result<std::int64_t> add_iteration(const IterationRow& iteration,
                                                     const std::vector<RankIterationRow>& ranks);

    /// Stores an injection (InjectionRow::id is ignored) and gives its id. Call it when the fault is ordered, before it
    /// can act.
    [[nodiscard]] Result<std::int64_t> add_injection(const InjectionRow& injection);
    /// Stores what has become known of the injection InjectionRow::id since. kInternal when there is no such row.
    [[nodiscard]] Result<void> update_injection(const InjectionRow& injection);

    /// Stores a named piece of text; the same name again replaces it.
    [[nodiscard]] Result<void> add_artefact(const ArtefactRow& artefact);

    /// Ends a run: stores its end and its verdicts (replacing earlier ones) in one transaction. VerdictRow::run is
    /// ignored.
    [[nodiscard]] Result<void> finish_run(std::int64_t run, std::int64_t finished_realtime_ns,
                                          const std::vector<VerdictRow>& verdicts);

    /// Stores a suite with all its items in one transaction and gives its id (SuiteRow::id and SuiteItemRow::suite are
    /// ignored).
    [[nodiscard]] Result<std::int64_t> begin_suite(const SuiteRow& suite, const std::vector<SuiteItemRow>& items);
    /// Makes this process the one that goes on with a suite, which is then unfinished again. Of several that ask, one
    /// gets it. kRefused while the process that runs it may be alive, with its pid; kInput when there is no such suite.
    [[nodiscard]] Result<void> take_suite(std::int64_t suite);
    /// Stores what has become of an item (by suite and item). kInternal when there is no such item.
    [[nodiscard]] Result<void> update_suite_item(const SuiteItemRow& item);
    [[nodiscard]] Result<void> finish_suite(std::int64_t suite, std::int64_t finished_realtime_ns);

    /// Makes the runs (RunRow::id) the baseline `tag`, in the place of what it was. kInput without runs.
    [[nodiscard]] Result<void> set_baseline(std::string_view tag, const std::vector<std::int64_t>& runs,
                                            std::int64_t set_realtime_ns, std::string_view note);
    /// Forgets a tag (its runs stay). kInput for an unknown one.
    [[nodiscard]] Result<void> drop_baseline(std::string_view tag);

private:
    struct Impl;
    explicit Recorder(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace railbreak::record
