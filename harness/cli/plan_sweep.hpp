// `railbreak plan --sweep`: the same question for many clusters and messages, as a table to draw figures from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/rational.hpp"
#include "collective/planner.hpp"

namespace railbreak::cli {

/// The values of each dimension; one element where the sweep does not name it.
struct SweepSpec {
    std::vector<Rational> servers;   ///< p
    std::vector<Rational> slow;      ///< m: how many servers are slow
    std::vector<Rational> slowdowns; ///< ell of each slow server
    std::vector<Rational> bytes;
};

/// Most rows of clusters and messages that a sweep may have.
inline constexpr std::size_t kMostPoints = 1000;

/// Reads "p=16..256,ell=1..4": dimensions p, m, ell, bytes, separated by commas; each is a value, a range LOW..HIGH
/// that doubles, a range LOW..HIGH:STEP that adds, or several of these joined by "+". `input` gives the rest. Errors
/// (kUsage).
[[nodiscard]] Result<SweepSpec> parse_sweep(std::string_view text, const collective::PlannerInput& input);

/// One algorithm on one cluster with one message.
struct SweepRow {
    collective::Rank servers = 0;
    collective::Rank slow = 0;
    Rational slowdown{1};
    std::uint64_t bytes = 0;
    std::string algorithm;
    std::string why_not;   ///< empty: the plan applies, and the rest says what it takes
    std::string schedule;  ///< name
    Nanoseconds time{0};   ///< simulated when asked for, else predicted
    double vs_healthy = 0; ///< over the fault-free ring
    double vs_bound = 0;
};

/// Evaluates every point. Errors: those of evaluate().
[[nodiscard]] Result<std::vector<SweepRow>> sweep(const SweepSpec& spec, const collective::PlannerInput& input);

[[nodiscard]] std::string sweep_table(const std::vector<SweepRow>& rows, const collective::PlannerInput& input);
[[nodiscard]] std::string sweep_csv(const std::vector<SweepRow>& rows);
[[nodiscard]] std::string sweep_json(const std::vector<SweepRow>& rows, const collective::PlannerInput& input);

} // namespace railbreak::cli
