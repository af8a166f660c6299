// Hosts as the command line names them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/controller/survey_hosts.hpp"

namespace railbreak::cli {

/// "LAB" (all its hosts), "LAB:h0,h3", or "all" (every host of every lab of this user that is up), each with the
/// command that starts an agent of `executable` there. Hosts are called "LAB:h0". kInput names the labs and hosts that
/// there are.
[[nodiscard]] Result<std::vector<controller::HostChannel>> choose_hosts(std::string_view words,
                                                                        const std::string& executable);

} // namespace railbreak::cli
