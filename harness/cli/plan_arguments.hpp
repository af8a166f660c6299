// What `railbreak plan` was asked, from words to quantities.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/rational.hpp"
#include "collective/planner.hpp"

namespace railbreak::cli {

/// The options as typed; empty: not given.
struct PlanArguments {
    std::int64_t servers = 0; ///< 0: not given
    std::int64_t ranks_per_server = 1;
    std::optional<std::int64_t> nics; ///< empty: as many as ranks
    std::string nvlink;
    std::string bytes;
    std::string rate;
    std::vector<std::string> slow; ///< HOST:FRACTION, already split at commas
    std::vector<std::string> dead; ///< HOST:NIC, already split at commas
    std::string latency = "0ns";
    std::string overhead = "0ns";
    std::string model = "exclusive";
    std::vector<std::string> algorithms; ///< empty: all
    std::vector<std::string> options;    ///< NAME=VALUE, for the only algorithm
    std::string sweep;
    bool simulate = false;
    bool tune = false; ///< implies simulate
    bool csv = false;
    std::string gantt;         ///< file for the picture of the plan
    std::string export_format; ///< of the plan: json, msccl-xml, chrome-trace
    std::string output;        ///< file for the exported plan; empty: standard output, in place of the answer
};

/// Limits of what can be asked.
inline constexpr std::int64_t kMostServers = 65536;
inline constexpr std::int64_t kMostRanksPerServer = 64;
inline constexpr std::int64_t kMostNics = 64;
inline constexpr std::int64_t kMostRanks = 65536;
/// A port below a hundredth of its bandwidth is no port to plan with.
inline constexpr std::int64_t kMostSlowdown = 100;

/// A message of whole elements. Error (kUsage) outside 4 B .. 1 TiB or between elements.
[[nodiscard]] Result<std::int64_t> read_elements(std::string_view bytes);
/// The planner's input for these arguments, without the sweep. Errors (kUsage): whatever is wrong with the arguments,
/// with what is allowed.
[[nodiscard]] Result<collective::PlannerInput> read_plan_arguments(const PlanArguments& arguments);

} // namespace railbreak::cli
