// nftables over raw nfnetlink: transactions and listings, without the GPL libraries. Messages are built in
// nft_messages.hpp and read in nft_records.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors {

/// Sends the messages between NFNL_MSG_BATCH_BEGIN and _END in the namespace of `netns_fd`: all take effect or none. A
/// first message made by nft_begin() takes the place of the plain begin. The Error carries the kernel's errno, its own
/// words if any, `what`, and as the fact "nft" which message failed ("NEWCHAIN"); EPERM is kRefused; errno ERESTART
/// when the tables have changed since the generation that the begin names.
[[nodiscard]] Result<void> commit_nft(int netns_fd, const std::vector<std::string>& messages, std::string_view what);

/// Sends one get or dump request and gives the raw messages that answer it. ENOENT when there is no such object.
[[nodiscard]] Result<std::vector<std::string>> list_nft(int netns_fd, std::string_view request);

} // namespace railbreak::injectors
