// Back to normal: the one rule for when a fault is over. Verdicts on recovery_time follow it, and so does the page of a
// run, so that they cannot contradict each other. docs/scenario-format.md has it in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/rows.hpp"
#include "harness/record/statistics.hpp"
#include "scenarios/model.hpp"

namespace railbreak::analyse {

/// Why what is compared with steady iterations has no data.
inline constexpr const char* kNoSteadyPhase = "there is no steady phase of the algorithm to compare with";

/// What became of an algorithm after a fault.
struct Recovery {
    std::int64_t undone_at = 0; ///< InjectionRow::reverted_at; 0: never
    scenarios::Millionths band = scenarios::kDefaultBand;
    /// The first normal iteration; null where there is none. Points into the rows.
    const record::IterationRow* iteration = nullptr;
    std::int64_t time_ns = 0;   ///< from undone_at to the end of that iteration, or of the last one
    std::int32_t looked_at = 0; ///< iterations that ended after undone_at, up to the normal one
    std::string no_data;        ///< why nothing can be said

    /// Iterations ended after the fault, and none of them was normal.
    [[nodiscard]] bool is_missing() const { return iteration == nullptr && no_data.empty(); }
};

/// The longest that an iteration of the algorithm may take to count as no slower than the steady ones: their median
/// plus `band` of it, in nanoseconds; nothing without a steady phase.
[[nodiscard]] std::optional<double> slowest_normal_ns(const std::vector<record::PhaseStatistics>& statistics,
                                                      std::string_view algorithm, scenarios::Millionths band);

/// The iterations of the algorithm that may tell something about a fault, degraded and recovered ones, in order of
/// time.
[[nodiscard]] std::vector<const record::IterationRow*> judged_iterations(const record::RunData& data,
                                                                         std::string_view algorithm);

/// The first iteration, degraded or recovered, that ends after the fault was undone, without error and with the right
/// result, and that took at most slowest_normal_ns(). No data: the fault was never undone, there is no steady phase, or
/// no iteration ended after it; an error with which the run was broken off says nothing of the algorithm.
[[nodiscard]] Recovery recovery_after(const record::RunData& data,
                                      const std::vector<record::PhaseStatistics>& statistics,
                                      const record::InjectionRow& injection, scenarios::Millionths band);

/// recovery_after() the last of the algorithm's faults to be undone, with the narrowest band that an expectation about
/// that fault's recovery_time has, the default without one. No data where one of its faults was never undone; nothing
/// where none was applied.
[[nodiscard]] std::optional<Recovery> recovery_of(const record::RunData& data,
                                                  const std::vector<record::PhaseStatistics>& statistics,
                                                  const std::vector<scenarios::Expectation>& expectations,
                                                  std::string_view algorithm);

} // namespace railbreak::analyse
