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

/// The subject of an injection in the verdicts: "half/ring".
[[nodiscard]] std::string subject_of(const record::InjectionRow& injection);

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

/// Two ways of one algorithm, by their median times in one phase: healthy ports that finish the straggler's part before
/// the ring's ("optcc"), or serve both at once ("optcc-shared").
struct Comparison {
    std::string phase;
    std::string faster;
    std::string slower;
    double faster_median_ns = 0;
    double slower_median_ns = 0;
    double slower_over_faster = 1;
};
/// The comparison in the degraded phase, or in the steady one where no degraded was measured; nothing unless both ran.
[[nodiscard]] std::optional<Comparison> compare_optcc(const std::vector<record::PhaseStatistics>& statistics);

} // namespace railbreak::reports
