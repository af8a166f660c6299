// Reading the options of a plan request, and what several algorithms ask of a request.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "collective/algorithm.hpp"

namespace railbreak::collective {

/// Error (kInput) for the first option that the algorithm does not take; the advice lists those that it takes.
[[nodiscard]] Result<void> check_option_names(const PlanRequest& request, const Algorithm& algorithm);
/// The whole number that the option `name` gives, or nothing when the option is absent. Error (kInput) when it is not a
/// number from `least` to `most`.
[[nodiscard]] Result<std::optional<std::int64_t>> whole_option(const PlanRequest& request, std::string_view name,
                                                               std::int64_t least, std::int64_t most);
/// The position in `words` of the word that the option `name` gives, or nothing when the option is absent. Error
/// (kInput) when it is not one of them.
[[nodiscard]] Result<std::optional<std::size_t>> word_option(const PlanRequest& request, std::string_view name,
                                                             const std::vector<std::string_view>& words);

/// Error (kInput) unless every server has one rank, with the advice to use `instead`.
[[nodiscard]] Result<void> check_one_rank_servers(const PlanRequest& request, std::string_view algorithm,
                                                  std::string_view instead);
/// Is that NIC of that server alive?
[[nodiscard]] bool nic_alive(const Topology& topology, Rank server, std::int32_t nic);
/// NICs of a server that its ranks use by default: 0 .. this number - 1.
[[nodiscard]] std::int32_t nics_in_use(const Topology& topology);
/// Error (kInput) when one of the NICs 0..used-1 of any server is dead.
[[nodiscard]] Result<void> check_nics_alive(const PlanRequest& request, std::string_view algorithm, std::int32_t used);

/// The slowest rank, if its slowdown is noticeable; of equally slow ones the first. For servers of one rank.
[[nodiscard]] std::optional<Rank> slowest_rank(const Topology& topology);

} // namespace railbreak::collective
