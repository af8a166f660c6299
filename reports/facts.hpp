// What several formats say about a run besides its rows and statistics. Internal to reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::reports {

/// The moment that offsets in reports count from: the first event, order or iteration; monotonic nanoseconds.
[[nodiscard]] std::int64_t origin_ns(const record::RunData& data);

/// The first verdict row of a scope (and subject, when given), or nullptr.
[[nodiscard]] const record::VerdictRow* find_verdict(const record::RunData& data, std::string_view scope,
                                                     std::string_view subject = {});

/// What stands in the place of the verdict of a run without one: that it has not ended, and what it recorded last.
/// Whether it goes on or its controller died is nothing that its rows tell.
[[nodiscard]] std::string not_ended(const record::RunData& data);

/// The subject of an injection in the verdicts: "half/ring".
[[nodiscard]] std::string subject_of(const record::InjectionRow& injection);

/// Where an injection acts: "h3 rail0", "rank 5 of h2", "the run's database, from h0".
[[nodiscard]] std::string place_of(const record::RunData& data, const record::InjectionRow& injection);

/// What the reports call the results of a phase in which none was wrong: "ok", "proven" of a simulation, where no data
/// moves, "as told" of an imported run, which others checked or nobody.
[[nodiscard]] std::string_view word_for_right(const record::RunData& data);

/// A moment to the second, as "2026-01-31T12:34:56Z".
[[nodiscard]] std::string utc(std::int64_t realtime_ns);

/// Smallest, middle and largest of measured values.
struct Spread {
    std::int64_t min = 0;
    std::int64_t median = 0;
    std::int64_t max = 0;
};
/// Spread of the values above 0; nothing when there is none.
[[nodiscard]] std::optional<Spread> spread_of(const std::vector<std::int64_t>& values);
/// Healthy goodput of all measured ports.
[[nodiscard]] std::optional<Spread> send_goodput(const record::RunData& data);
[[nodiscard]] std::optional<Spread> receive_goodput(const record::RunData& data);

/// The names of the schedules that ran in an algorithm's phase, in the order of their first iteration.
[[nodiscard]] std::vector<std::string> schedules_of(const record::RunData& data, std::string_view algorithm,
                                                    std::string_view phase);

/// One form of an algorithm, known by the name of its schedule.
struct Form {
    std::string schedule;
    double time_median_ns = 0;
    double over_fastest = 1; ///< its time over that of the fastest form
};
/// The forms of one algorithm that were tried on the damage before its degraded phase.
struct Comparison {
    std::string algorithm;
    std::vector<Form> forms; ///< the fastest first; at least two
    std::string kept;        ///< schedule of the degraded phase; empty when that phase did not begin
};
/// From the iterations of phase "comparison" without error, in the order of the run. An algorithm of which fewer than
/// two forms ran there has no entry.
[[nodiscard]] std::vector<Comparison> compare_forms(const record::RunData& data);

/// The figures of an item of a suite: of its run (may be nullptr), or what was kept of one that was pruned.
[[nodiscard]] std::vector<record::PhaseStatistics> statistics_of(const record::SuiteItemRow& item,
                                                                 const record::RunData* run);

/// What stands in the place of an item's run: its id, "deleted" of one that was pruned, or nothing.
[[nodiscard]] std::string run_cell(const record::SuiteData& suite, std::size_t item);

/// The run of that id among those of a suite, or nullptr.
[[nodiscard]] const record::RunData* find_run(const std::vector<record::RunData>& runs, std::string_view run_id);

} // namespace railbreak::reports
