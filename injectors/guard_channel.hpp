// What agent and guard say to each other: frames over a stream socket.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::injectors {

/// First byte of a message. Agent to guard: lease, entrust, release, disarm. Guard to agent: armed, ack, expired.
enum class GuardWord : std::uint8_t {
    kLease = 1, ///< i64: lease end, CLOCK_BOOTTIME nanoseconds
    kEntrust,   ///< u32 sequence, string: a journal entry
    kRelease,   ///< u32 sequence, i32: id of an entry that was verified as restored
    kDisarm,    ///< u32 sequence: end without undoing
    kArmed,     ///< i32: the guard's pid; it is ready
    kAck,       ///< u32 sequence
    kExpired,   ///< the lease ran out; everything was undone
};

/// One end of the socket.
class GuardChannel {
public:
    explicit GuardChannel(UniqueFd fd) : fd_(std::move(fd)) {}
    /// Sends one frame. kHarness when the other end is gone or the deadline passes.
    [[nodiscard]] Result<void> send(std::string_view payload, Deadline deadline);
    /// The next frame's payload; empty optional at end of file. kHarness when the deadline passes or the bytes are no
    /// frame.
    [[nodiscard]] Result<std::optional<std::string>> receive(Deadline deadline);
    /// Reads what has come without waiting. False at end of file.
    [[nodiscard]] Result<bool> fill();
    /// Takes the next whole frame out of what was read; empty when there is none.
    [[nodiscard]] Result<std::optional<std::string>> take();
    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    UniqueFd fd_;
    std::string buffer_;
};

} // namespace railbreak::injectors
