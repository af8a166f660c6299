// Lines of text over a pair of descriptors: the carrier of every control conversation (controller and agent over
// whatever started the agent, agent and rank over pipes). Non-blocking on both sides, because a pipe of an
// unprivileged process may hold as little as one page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::launch {

/// A bidirectional stream of lines. Not thread-safe. Owns both descriptors and makes them non-blocking.
class LineChannel {
public:
    /// A line longer than this is a protocol error and ends the channel.
    static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

    LineChannel(UniqueFd read_fd, UniqueFd write_fd);

    /// Queues one line (without its newline) and writes as much as the peer takes now. Error (kHarness) when the peer
    /// has closed its end.
    [[nodiscard]] Result<void> send(std::string_view line);
    /// Writes what is still queued; call it when write_fd() is writable and wants_write() holds.
    [[nodiscard]] Result<void> flush();
    /// Reads what is there, up to 1 MiB, and returns the complete lines; sets at_end() at end of file. Never waits.
    /// What it left is readable still.
    [[nodiscard]] Result<std::vector<std::string>> receive();

    [[nodiscard]] bool wants_write() const { return !unsent_.empty(); }
    [[nodiscard]] bool at_end() const { return at_end_; }
    [[nodiscard]] int read_fd() const { return read_fd_.get(); }
    [[nodiscard]] int write_fd() const { return write_fd_.get(); }
    /// Closes the sending side: the peer reads end of file.
    void close_write() { write_fd_.reset(); }

private:
    UniqueFd read_fd_;
    UniqueFd write_fd_;
    std::string unsent_;
    std::string partial_;
    bool at_end_ = false;
};

} // namespace railbreak::launch
