#include "collective/transport/port_transport.hpp"

#include <array>
#include <cerrno>

#include <sys/epoll.h>

#include "collective/transport/epoll.hpp"

namespace railbreak::collective {

Result<PortTransport::Parts> PortTransport::make_parts(Rank self, BitRate local_rate) {
    Result<std::unique_ptr<StreamTransport>> nics = StreamTransport::make(self);
    Result<std::unique_ptr<ShmTransport>> local = ShmTransport::make(self, local_rate);
    Result<UniqueFd> epoll = make_epoll();
    if (!nics || !local || !epoll) {
        return tl::unexpected<Error>(!nics ? nics.error() : !local ? local.error() : epoll.error());
    }
    Result<void> watched = watch(epoll->get(), (*nics)->poll_fd(), EPOLLIN, {.u32 = 0}).and_then([&] {
        return watch(epoll->get(), (*local)->poll_fd(), EPOLLIN, {.u32 = 1});
    });
    if (!watched) {
        return tl::unexpected<Error>(std::move(watched.error()));
    }
    return Parts{std::move(*nics), std::move(*local), std::move(*epoll)};
}

Result<std::unique_ptr<PortTransport>> PortTransport::make(Rank self, BitRate local_rate) {
    Result<Parts> parts = make_parts(self, local_rate);
    if (!parts) {
        return tl::unexpected<Error>(std::move(parts.error()));
    }
    return std::unique_ptr<PortTransport>(new PortTransport(std::move(*parts)));
}

Result<LinkIndex> PortTransport::add_link(const LinkSpec& spec, UniqueFd socket, std::string address) {
    const bool local = spec.own_port.kind == PortKind::kLocal;
    return (local ? local_->add_link(spec, std::move(socket))
                  : nics_->add_link(spec, std::move(socket), std::move(address)))
        .map([&](LinkIndex index) { return outer(index, local); });
}

std::optional<LinkIndex> PortTransport::find_link(const LinkSpec& link) const {
    const bool local = link.own_port.kind == PortKind::kLocal;
    const std::optional<LinkIndex> found = local ? local_->find_link(link) : nics_->find_link(link);
    return found ? std::optional(outer(*found, local)) : std::nullopt;
}

Result<WaitResult> PortTransport::wait(Deadline deadline) {
    if (local_->empty()) {
        return nics_->wait(deadline);
    }
    const Result<bool> sleeps = local_->prepare_wait();
    if (!sleeps) {
        return tl::unexpected<Error>(sleeps.error());
    }
    std::array<epoll_event, 2> events{};
    int count = 0;
    do {
        count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                             *sleeps ? deadline.poll_timeout_ms() : 0);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return fail_errno(ErrorKind::kHarness, "wait for the links of all ports", errno);
    }
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        Result<void> taken = event.data.u32 == 1 ? local_->collect()
                                                 : nics_->wait(Deadline::after(Nanoseconds(0))).map([](WaitResult) {});
        if (!taken) {
            return tl::unexpected<Error>(std::move(taken.error()));
        }
    }
    return count == 0 && *sleeps ? WaitResult::kTimedOut : WaitResult::kReady;
}

std::vector<LinkIndex> PortTransport::take_closed() {
    std::vector<LinkIndex> closed;
    for (const LinkIndex index : nics_->take_closed()) {
        closed.push_back(outer(index, false));
    }
    for (const LinkIndex index : local_->take_closed()) {
        closed.push_back(outer(index, true));
    }
    return closed;
}

std::vector<StalledPath> PortTransport::take_stalled() {
    std::vector<StalledPath> stalled = nics_->take_stalled();
    for (StalledPath& path : stalled) {
        path.link = outer(path.link, false);
    }
    return stalled;
}

void PortTransport::abort() {
    nics_->abort();
    local_->abort();
}

} // namespace railbreak::collective
