#include "collective/transport/epoll.hpp"

#include <cerrno>

namespace railbreak::collective {

Result<UniqueFd> make_epoll() {
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.valid()) {
        return fail_errno(ErrorKind::kHarness, "create an epoll instance", errno);
    }
    return epoll;
}

Result<void> watch(int epoll, int fd, std::uint32_t events, epoll_data_t data) {
    epoll_event event{};
    event.events = events;
    event.data = data;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return fail_errno(ErrorKind::kHarness, "watch a connection", errno);
    }
    return {};
}

} // namespace railbreak::collective
