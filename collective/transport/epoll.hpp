// The two epoll calls that every transport makes.
#pragma once

#include <cstdint>

#include <sys/epoll.h>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::collective {

/// A new epoll instance, or an Error (kHarness).
[[nodiscard]] Result<UniqueFd> make_epoll();
/// Watches `fd` for `events`; its events carry `data`. Error (kHarness).
[[nodiscard]] Result<void> watch(int epoll, int fd, std::uint32_t events, epoll_data_t data);

} // namespace railbreak::collective
