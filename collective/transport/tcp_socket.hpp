// TCP sockets as the data plane wants them: every tunable in one place.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <netinet/in.h>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::collective {

/// Tunables of a data-plane connection. Zero leaves the kernel's own choice.
struct TcpTuning {
    /// TCP_NOTSENT_LOWAT: unsent bytes that a sender may queue in the kernel. More only adds delay in front of the
    /// next step; less costs wake-ups.
    std::uint32_t notsent_lowat_bytes = 128 * 1024;
    /// SO_SNDBUF. Bounds what is in flight, and with it the queue in front of a capped port.
    std::uint32_t send_buffer_bytes = 0;
    /// SO_RCVBUF. Bounds what a peer can send ahead of the step that this rank works on.
    std::uint32_t receive_buffer_bytes = 0;
    /// TCP_USER_TIMEOUT: how long sent data may stay unacknowledged before the connection counts as broken.
    std::chrono::milliseconds user_timeout{0};
    /// TCP_KEEPIDLE and TCP_KEEPINTVL (whole seconds), with two probes: how long a silent peer goes unnoticed.
    std::chrono::seconds keepalive{0};
    /// TCP_CONGESTION. Where the process may not choose it, the kernel's default stays: it changes figures, not
    /// results. Empty: do not try.
    std::string congestion = "cubic";
};

/// An IPv4 address and port; `address` must be dotted decimal. Error (kInput) otherwise.
[[nodiscard]] Result<sockaddr_in> to_sockaddr(const std::string& address, std::uint16_t port);
/// "10.0.0.1:4242".
[[nodiscard]] std::string to_string(const sockaddr_in& address);

/// A non-blocking TCP socket, tuned and bound to the local address (port 0: any). The buffers are set before the
/// connection exists, because the window scale is agreed upon when it is made. Error (kHarness).
[[nodiscard]] Result<UniqueFd> make_tcp_socket(const TcpTuning& tuning, const sockaddr_in& local);
/// Applies everything but the buffer sizes, for a socket from accept().
[[nodiscard]] Result<void> tune_tcp_socket(int socket, const TcpTuning& tuning);

} // namespace railbreak::collective
