// Links over connected stream sockets, one socket a link, with one epoll instance for all.
//
// Why epoll, and neither io_uring nor threads: a rank has few links active at a time and moves tens of kilobytes per
// call, so the cost of a system call is small beside the copy; epoll exists on every kernel and in every container,
// while io_uring is switched off in many; and a thread per link would make the order of work on a port, which the
// schedule fixes, a matter of the kernel's scheduler.
//
// Edge-triggered: a link is registered once and never again. Whether a link may be ready is remembered here, so that
// asking a link that would block costs no system call.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/fd.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// A Transport over stream sockets that someone else connects.
class StreamTransport final : public Transport {
public:
    /// An empty transport, or an Error (kHarness) when the kernel gives no epoll instance.
    [[nodiscard]] static Result<std::unique_ptr<StreamTransport>> make(Rank self);

    /// Takes over a connected non-blocking stream socket as that link. `address` describes the peer in messages.
    /// Error (kHarness) when the link exists already or cannot be watched.
    [[nodiscard]] Result<LinkIndex> add_link(const LinkSpec& spec, UniqueFd socket, std::string address);

    [[nodiscard]] Rank self() const override { return self_; }
    [[nodiscard]] std::optional<LinkIndex> find_link(const LinkSpec& link) const override;
    [[nodiscard]] LinkSpec link(LinkIndex index) const override { return at(index).spec; }
    [[nodiscard]] std::string describe(LinkIndex index) const override;
    [[nodiscard]] Result<std::size_t> send_some(LinkIndex index, std::span<const std::byte> head,
                                                std::span<const std::byte> body) override;
    [[nodiscard]] Result<std::size_t> receive_some(LinkIndex index, std::span<std::byte> head,
                                                   std::span<std::byte> body) override;
    [[nodiscard]] Result<WaitResult> wait(Deadline deadline) override;
    [[nodiscard]] std::vector<LinkIndex> take_closed() override { return std::exchange(closed_, {}); }
    /// What TCP_INFO says. TCP resends at the earliest 200 ms after the last acknowledgement, so a path that is back
    /// sooner never stalls, and neither does one whose packets go another way.
    [[nodiscard]] std::vector<StalledPath> take_stalled() override;
    [[nodiscard]] std::size_t readable_bytes(LinkIndex index) const override;
    [[nodiscard]] Error closed_error(LinkIndex index) const override;
    void abort() override;

    /// Readable while wait() would not block; for a wait that spans several transports.
    [[nodiscard]] int poll_fd() const { return epoll_.get(); }

private:
    StreamTransport(Rank self, UniqueFd epoll) : self_(self), epoll_(std::move(epoll)) {}
    struct LinkState {
        LinkSpec spec;
        UniqueFd socket;
        std::string address;
        bool ready = true;    ///< may be ready: no operation has blocked since the last event
        bool closed = false;  ///< the other end closed or broke
        bool stalled = false; ///< and told
    };

    [[nodiscard]] const LinkState& at(LinkIndex index) const { return links_.at(static_cast<std::size_t>(index)); }
    [[nodiscard]] LinkState& at(LinkIndex index) { return links_.at(static_cast<std::size_t>(index)); }
    /// Sends or receives by `call` on the link's socket; the common part of both directions.
    template <class Call>
    [[nodiscard]] Result<std::size_t> transfer(LinkState& link, std::size_t wanted, std::string_view what, Call call);

    Rank self_;
    UniqueFd epoll_;
    std::vector<LinkState> links_;
    std::map<LinkSpec, LinkIndex> by_spec_;
    std::vector<LinkIndex> closed_;
};

} // namespace railbreak::collective
