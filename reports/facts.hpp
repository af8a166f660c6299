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

/// Forms of one algorithm that were tried before its degraded phase, by the median time of their schedules: OptCC with
/// ports that carry one flow at a time, and with ports that ring and straggler share. The faster one was kept.
struct Comparison {
    std::string algorithm;
    std::string faster; ///< name of the schedule
    std::string slower;
    double faster_median_ns = 0;
    double slower_median_ns = 0;
    double slower_over_faster = 1;
};
/// From the iterations of phase "comparison"; nothing unless at least two schedules ran there.
[[nodiscard]] std::optional<Comparison> compare_forms(const record::RunData& data);

} // namespace railbreak::reports
