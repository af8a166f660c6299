// nftables over raw nfnetlink: transactions and listings, without the GPL libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors {

/// Sends the messages between NFNL_MSG_BATCH_BEGIN and _END in the namespace of `netns_fd`: all take effect or none.
/// The Error carries the kernel's errno and `what`; EPERM is kRefused.
[[nodiscard]] Result<void> commit_nft(int netns_fd, const std::vector<std::string>& messages, std::string_view what);

/// Sends one get or dump request and gives the raw messages that answer it.
[[nodiscard]] Result<std::vector<std::string>> list_nft(int netns_fd, std::string_view request);

} // namespace railbreak::injectors
