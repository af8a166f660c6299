// A run as its page looks at it: what the rows say, sorted and named, and the figures from harness/record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::reports::html {

/// One algorithm of the run.
struct AlgorithmView {
    std::string name;
    std::size_t series = 0;                              ///< its colour and shape on the whole page
    std::vector<const record::IterationRow*> iterations; ///< by start
    std::vector<const record::InjectionRow*> injections; ///< applied under it, by order
};

/// See the file comment. May be moved, not copied: the algorithms point into the data.
struct View {
    View() = default;
    View(View&&) = default;
    View& operator=(View&&) = default;
    /// The rows, with times and counters held within what can be reckoned with: a database may say anything.
    record::RunData data;
    std::int64_t origin = 0; ///< what offsets count from
    bool simulated = false;
    std::vector<record::PhaseStatistics> statistics;
    std::vector<AlgorithmView> algorithms; ///< in the order of the run
};
[[nodiscard]] View view_of(record::RunData data);

/// When an algorithm was back to normal after its faults.
struct Recovery {
    std::int64_t reverted_at = 0;                    ///< the end of its last fault
    const record::IterationRow* iteration = nullptr; ///< the first that was right and about as fast as before
    std::int64_t time_ns = 0;                        ///< from the end of the fault to the end of that iteration
};
/// An iteration counts as normal up to this share above the steady median.
inline constexpr double kNormalTime = 1.1;
/// Nothing where no fault ended, nothing ran before it, or no iteration was normal again.
[[nodiscard]] std::optional<Recovery> recovery_of(const View& view, const AlgorithmView& algorithm);

/// Whether an iteration ended without error and with the expected digest.
[[nodiscard]] bool is_right(const record::IterationRow& row);
/// "right", "wrong result", or the error.
[[nodiscard]] std::string outcome_of(const record::IterationRow& row, bool simulated);

/// At most about `most` iterations, in order: of neighbours in a phase the fastest and the slowest, and everything that
/// was not right. All of them where they are few enough.
[[nodiscard]] std::vector<const record::IterationRow*> thinned(const std::vector<const record::IterationRow*>& all,
                                                               std::size_t most);
/// The rule of thinned() for readers; empty where nothing was left out.
[[nodiscard]] std::string thinning_note(std::size_t shown, std::size_t all);

/// Phases whose times are compared: without warm-up and tries.
[[nodiscard]] bool is_measured(std::string_view phase);

/// The name of a host or "host 3"; of a NIC or "NIC 0".
[[nodiscard]] std::string host_name(const record::RunData& data, std::int32_t host);
[[nodiscard]] std::string nic_name(const record::RunData& data, std::int32_t host, std::int32_t nic);

/// "+0.532 s" after the origin, four significant digits; a dash for what did not happen.
[[nodiscard]] std::string offset(const View& view, std::int64_t at);

/// The worst verdict of the rows of a scope, empty where there are none: fail, invalid, refused, aborted, inconclusive,
/// pass.
[[nodiscard]] std::string worst_verdict(const record::RunData& data, std::string_view scope);

} // namespace railbreak::reports::html
