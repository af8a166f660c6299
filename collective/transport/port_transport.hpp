// One transport for all ports of a rank: links of NICs are stream sockets, links inside the host are shared memory.
#pragma once

#include <memory>

#include "collective/transport/shm_transport.hpp"
#include "collective/transport/stream_transport.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// Routes every link to the transport of its port's kind. Someone else connects the sockets.
class PortTransport : public Transport {
public:
    /// An empty transport; `local_rate` limits each direction of the intra-host port (zero: no limit).
    /// Error (kHarness).
    [[nodiscard]] static Result<std::unique_ptr<PortTransport>> make(Rank self, BitRate local_rate);

    /// Takes over a connected non-blocking socket as that link: of any stream kind for NICs, a Unix socket inside the
    /// host. `address` describes the peer in messages. Error (kHarness).
    [[nodiscard]] Result<LinkIndex> add_link(const LinkSpec& spec, UniqueFd socket, std::string address);

    [[nodiscard]] Rank self() const override { return nics_->self(); }
    [[nodiscard]] std::optional<LinkIndex> find_link(const LinkSpec& link) const override;
    [[nodiscard]] LinkSpec link(LinkIndex index) const override { return owner(index).link(inner(index)); }
    [[nodiscard]] std::string describe(LinkIndex index) const override { return owner(index).describe(inner(index)); }
    [[nodiscard]] Result<std::size_t> send_some(LinkIndex index, std::span<const std::byte> head,
                                                std::span<const std::byte> body) override {
        return owner(index).send_some(inner(index), head, body);
    }
    [[nodiscard]] Result<std::size_t> receive_some(LinkIndex index, std::span<std::byte> head,
                                                   std::span<std::byte> body) override {
        return owner(index).receive_some(inner(index), head, body);
    }
    [[nodiscard]] Result<WaitResult> wait(Deadline deadline) override;
    [[nodiscard]] std::vector<LinkIndex> take_closed() override;
    [[nodiscard]] std::vector<StalledPath> take_stalled() override;
    [[nodiscard]] std::size_t readable_bytes(LinkIndex index) const override {
        return owner(index).readable_bytes(inner(index));
    }
    [[nodiscard]] Error closed_error(LinkIndex index) const override { return owner(index).closed_error(inner(index)); }
    void abort() override;

protected:
    /// The parts of a transport, so that a derived class can be made from them.
    struct Parts {
        std::unique_ptr<StreamTransport> nics;
        std::unique_ptr<ShmTransport> local;
        UniqueFd epoll; ///< watches the epoll instances of both
    };
    [[nodiscard]] static Result<Parts> make_parts(Rank self, BitRate local_rate);
    explicit PortTransport(Parts parts)
        : nics_(std::move(parts.nics)), local_(std::move(parts.local)), epoll_(std::move(parts.epoll)) {}

private:
    // Even indices are links of NICs, odd ones are inside the host.
    [[nodiscard]] static bool is_local(LinkIndex index) { return index % 2 != 0; }
    [[nodiscard]] static LinkIndex inner(LinkIndex index) { return index / 2; }
    [[nodiscard]] static LinkIndex outer(LinkIndex index, bool local) { return index * 2 + (local ? 1 : 0); }
    [[nodiscard]] Transport& owner(LinkIndex index) const {
        return is_local(index) ? static_cast<Transport&>(*local_) : static_cast<Transport&>(*nics_);
    }

    std::unique_ptr<StreamTransport> nics_;
    std::unique_ptr<ShmTransport> local_;
    UniqueFd epoll_;
};

} // namespace railbreak::collective
