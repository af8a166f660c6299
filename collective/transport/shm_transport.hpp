// Links between ranks of one host through shared memory: the stand-in for what connects the GPUs of a server.
//
// A link is a ring (shm_ring.hpp) and a connected Unix stream socket. The sender of a link makes the ring and hands it
// over as the socket's first message; from then on the socket carries doorbells only, one byte for each time that an
// end has to be woken. The kernel closes the socket with its process, so that a dead peer is noticed like over TCP, and
// one descriptor a link serves for waking, for the news of a death and for breaking off.
//
// All links of a rank share its intra-host port: one pacer a direction, when the port has a rate.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/fd.hpp"
#include "base/units.hpp"
#include "collective/transport/pacer.hpp"
#include "collective/transport/shm_ring.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// A Transport over rings in shared memory.
class ShmTransport final : public Transport {
public:
    /// An empty transport whose port has that rate in each direction (zero: no limit). Error (kHarness).
    [[nodiscard]] static Result<std::unique_ptr<ShmTransport>> make(Rank self, BitRate rate);

    /// Takes over a connected non-blocking Unix stream socket whose peer is that link's other end and adds it in the
    /// same way. Error (kHarness) when the link exists already or the kernel refuses.
    [[nodiscard]] Result<LinkIndex> add_link(const LinkSpec& spec, UniqueFd socket);

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
    [[nodiscard]] std::size_t readable_bytes(LinkIndex index) const override;
    [[nodiscard]] Error closed_error(LinkIndex index) const override;
    void abort() override;

    [[nodiscard]] bool empty() const { return links_.empty(); }
    /// For a wait that spans several transports: announces the sleep of every link that would have blocked and sets the
    /// port's timer, then poll_fd() becomes readable when collect() has news. False: a link is ready already.
    [[nodiscard]] Result<bool> prepare_wait();
    /// Takes the news without waiting.
    [[nodiscard]] Result<void> collect();
    [[nodiscard]] int poll_fd() const { return epoll_.get(); }

private:
    struct LinkState {
        LinkSpec spec;
        UniqueFd socket;
        RingWriter writer;    ///< of an outgoing link
        RingReader reader;    ///< of an incoming link, once the peer has handed the ring over
        bool blocked = false; ///< an operation found the ring full or empty
        bool closed = false;  ///< the other end is gone
    };

    ShmTransport(Rank self, BitRate rate, UniqueFd epoll, UniqueFd timer)
        : self_(self), epoll_(std::move(epoll)), timer_(std::move(timer)), send_pacer_(rate), receive_pacer_(rate) {}
    [[nodiscard]] const LinkState& at(LinkIndex index) const { return links_.at(static_cast<std::size_t>(index)); }
    [[nodiscard]] LinkState& at(LinkIndex index) { return links_.at(static_cast<std::size_t>(index)); }
    [[nodiscard]] Error error_of(const LinkState& link, int errno_value) const;
    [[nodiscard]] Result<WaitResult> take_events(int timeout_ms);
    void take_messages(LinkIndex index);
    [[nodiscard]] Result<bool> set_timer();

    Rank self_;
    UniqueFd epoll_;
    UniqueFd timer_; ///< for the end of a pacer's busy time
    Pacer send_pacer_;
    Pacer receive_pacer_;
    std::vector<LinkState> links_;
    std::map<LinkSpec, LinkIndex> by_spec_;
    std::vector<LinkIndex> closed_;
};

} // namespace railbreak::collective
