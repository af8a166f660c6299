// Which site policies hold for a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cli/commands.hpp"
#include "scenarios/policy.hpp"

namespace railbreak::cli {

/// The policies of --policy (empty: not given), of $RAILBREAK_POLICY, and /etc/railbreak/policy.yaml where that exists:
/// all of them, for none may loosen another. Tells what is wrong with one, a line each, and gives nothing then.
[[nodiscard]] std::optional<std::vector<scenarios::SitePolicy>> read_policies(const CommonOptions& common,
                                                                              const std::string& given);

} // namespace railbreak::cli
