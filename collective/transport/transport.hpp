// The seam between the executor and whatever carries its bytes.
//
// A transport offers unidirectional byte streams, called links, to one rank. A link is named by its two ends (rank and
// port) and a lane. Everything is non-blocking and belongs to one thread: the owner tries to send or to receive, and
// when nothing moves it waits for any link to become ready. That shape fits epoll over sockets as well as completion
// queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "collective/schedule.hpp"

namespace railbreak::collective {

/// Direction of a link as the transport's own rank sees it.
enum class Direction : std::uint8_t { kOutgoing, kIncoming };

/// "to", "from".
[[nodiscard]] std::string_view to_string(Direction direction);

/// The name of a link among those of one rank. The ports belong to it: the next schedule may use the same lane between
/// the same ranks over another NIC, and that is another link.
struct LinkSpec {
    Direction direction = Direction::kOutgoing;
    Rank peer = 0;
    Lane lane = 0;
    Port own_port;  ///< of the transport's own rank
    Port peer_port; ///< of the other end; of the same kind
    auto operator<=>(const LinkSpec&) const = default;
};

/// "to rank 4 on lane 0"; with the ports unless both are NIC 0: "from rank 4 on lane 1 (own NIC 1, the peer's NIC 0)".
[[nodiscard]] std::string to_string(const LinkSpec& link);

/// What stands in place of an address for links inside a host.
inline constexpr std::string_view kSharedMemoryAddress = "shared memory";

/// Index of a link in its transport; stays valid for the transport's life.
using LinkIndex = std::int32_t;

/// Why wait() returned.
enum class WaitResult : std::uint8_t { kReady, kTimedOut };

/// An outgoing link on which nothing is acknowledged any more, although the transport has sent its data again.
struct StalledPath {
    LinkIndex link = 0;
    std::int32_t resends = 0;        ///< since the last acknowledgement
    std::int64_t unacknowledged = 0; ///< segments
};

/// The links of one rank. Not thread-safe: one owner at a time.
///
/// Errors of links are ErrorKind::kOutcome and carry the facts rank, peer, lane, address, errno.
class Transport {
public:
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;
    virtual ~Transport() = default;

    [[nodiscard]] virtual Rank self() const = 0;
    /// The link of that name, or nothing when it was never connected.
    [[nodiscard]] virtual std::optional<LinkIndex> find_link(const LinkSpec& link) const = 0;
    /// The reverse.
    [[nodiscard]] virtual LinkSpec link(LinkIndex index) const = 0;
    /// "rank 3 to rank 4, lane 0 (10.1.0.5:40123)".
    [[nodiscard]] virtual std::string describe(LinkIndex index) const = 0;

    /// Sends what the link takes now of `head` followed by `body`; returns the bytes taken, 0 when it would block.
    [[nodiscard]] virtual Result<std::size_t> send_some(LinkIndex index, std::span<const std::byte> head,
                                                        std::span<const std::byte> body) = 0;
    /// Receives what is there now into `head`, then `body`; returns the bytes received, 0 when it would block. The end
    /// of the stream is an Error: a peer never closes while something is owed.
    [[nodiscard]] virtual Result<std::size_t> receive_some(LinkIndex index, std::span<std::byte> head,
                                                           std::span<std::byte> body) = 0;
    /// Blocks until a link that would have blocked may be ready, a peer closed a link, or the deadline passes.
    [[nodiscard]] virtual Result<WaitResult> wait(Deadline deadline) = 0;
    /// Links whose other end closed or broke since the last call. Data that arrived before can still be received.
    [[nodiscard]] virtual std::vector<LinkIndex> take_closed() = 0;
    /// Links that stalled since the last call; one that goes on and stalls again is named again. Asks the kernel about
    /// every link: for some times a second. A transport that does not resend itself has none.
    [[nodiscard]] virtual std::vector<StalledPath> take_stalled() { return {}; }
    /// Bytes that receive_some() would return at once.
    [[nodiscard]] virtual std::size_t readable_bytes(LinkIndex index) const = 0;
    /// The Error for a link that take_closed() named.
    [[nodiscard]] virtual Error closed_error(LinkIndex index) const = 0;

    /// Breaks all links at once, so that every peer notices. For use after a failure, when streams are out of step;
    /// every later operation on a link fails.
    virtual void abort() = 0;
};

} // namespace railbreak::collective
