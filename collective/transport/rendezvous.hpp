// Where links come into being: listening sockets, connections on their way, and the handshakes on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "collective/transport/handshake.hpp"
#include "collective/transport/transport.hpp"

namespace railbreak::collective {

/// Runs the handshake on every connection of a rank, over TCP and inside the host alike, and hands over those that have
/// proven the run's token. A stranger that connects costs a descriptor until its handshake fails or its time is up, and
/// holds up nobody; strangers are only looked at while await() runs. Not thread-safe.
class Rendezvous {
public:
    struct Options {
        Rank self = 0;
        std::string token;                                      ///< the run's secret; at least 16 bytes
        Nanoseconds handshake_budget = std::chrono::seconds(2); ///< time an accepted connection has to prove itself
        std::size_t max_unproven = 256; ///< accepted connections not yet proven; above, the oldest is dropped
    };
    /// Takes over a connected non-blocking socket that is this link; `address` describes the peer. An Error ends
    /// await() when the connection was an outgoing one; a peer that brings a link twice is dropped.
    using Deliver = std::function<Result<void>(const LinkSpec& link, UniqueFd socket, std::string address)>;

    /// Error: kInput (token), kHarness (epoll).
    [[nodiscard]] static Result<Rendezvous> make(Options options);

    /// Accepts on a listening non-blocking socket; peers reach `port` there. Error (kHarness).
    [[nodiscard]] Result<void> add_listener(UniqueFd listener, Port port);
    /// Runs the handshake for an outgoing link on a non-blocking socket whose connect() has been called.
    [[nodiscard]] Result<void> add_outgoing(const LinkSpec& link, UniqueFd socket, std::string address,
                                            Deadline deadline);
    /// Serves all connections until `complete` holds; proven ones go to `deliver` at once. Connections that peers began
    /// early stay for the next call; their time starts anew here. Errors: kOutcome, rank, peer, lane and address named,
    /// when a peer refuses; `overdue` makes the Error for the deadline.
    [[nodiscard]] Result<void> await(const std::function<bool()>& complete, const Deliver& deliver, Deadline deadline,
                                     const std::function<Error()>& overdue);
    /// Drops the outgoing connections that are not proven.
    void abandon_outgoing();
    /// The Error of an outgoing link that could not be made, with rank, peer, lane and address.
    [[nodiscard]] Error connect_error(const LinkClaim& claim, std::string_view address, Error&& cause) const;

    /// Connections dropped because they did not prove the token in time.
    [[nodiscard]] std::int64_t strangers_dropped() const { return strangers_dropped_; }

private:
    struct Listener {
        UniqueFd socket;
        Port port;
    };
    /// A connection on which the handshake runs.
    struct Unproven {
        UniqueFd socket;
        Handshake handshake;
        std::string address;
        Direction direction;
        Port port; ///< of this rank
        Deadline deadline;
    };
    using UnprovenList = std::list<Unproven>;
    enum class Step : std::uint8_t { kWaiting, kProven };

    Rendezvous(Options options, UniqueFd epoll) : options_(std::move(options)), epoll_(std::move(epoll)) {}
    [[nodiscard]] Result<void> watch_added(Unproven& added);
    [[nodiscard]] Result<void> accept_all();
    [[nodiscard]] Result<void> accept_from(const Listener& listener);
    [[nodiscard]] Result<void> advance(UnprovenList::iterator connection, const Deliver& deliver);
    [[nodiscard]] static Result<Step> exchange(Unproven& connection);
    void drop_expired();

    Options options_;
    UniqueFd epoll_; ///< of the listeners and of all unproven connections
    std::vector<Listener> listeners_;
    UnprovenList unproven_;
    std::int64_t strangers_dropped_ = 0;
};

} // namespace railbreak::collective
