// A run as its page looks at it: what the rows say, sorted and named, and the figures from harness/record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analyse/recovery.hpp"
#include "harness/record/rows.hpp"
#include "harness/record/statistics.hpp"

namespace railbreak::reports::html {

/// One algorithm of the run.
struct AlgorithmView {
    std::string name;
    std::size_t series = 0;                              ///< its colour and shape on the whole page
    std::vector<const record::IterationRow*> iterations; ///< by start
    std::vector<const record::InjectionRow*> injections; ///< applied under it, by order
    std::optional<analyse::Recovery> recovery;           ///< as verdicts see it
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

/// The worst verdict of the rows of a scope, by the order of analyse::Verdict; empty where there are none.
[[nodiscard]] std::string worst_verdict(const record::RunData& data, std::string_view scope);

} // namespace railbreak::reports::html
