// The Error of a broken link, with the facts that every transport gives.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// "rank 0 cannot send to rank 1 on lane 0 (ADDRESS): <errno in words>", kOutcome, with the facts rank, peer, lane,
/// address, errno. `what` is "send to" or "receive from"; errno_value 0 stands for the end of the stream.
[[nodiscard]] Error link_error(Rank self, const LinkSpec& link, std::string_view address, std::string_view what,
                               int errno_value);

/// "send to" or "receive from".
[[nodiscard]] std::string_view verb_of(Direction direction);

} // namespace railbreak::collective
