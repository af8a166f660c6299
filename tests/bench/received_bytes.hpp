// What a TCP socket has taken in, whether or not its process has read it yet.
#pragma once

#include <cstdint>
#include <optional>

namespace railbreak::bench {

/// Payload bytes that the kernel has received on a connected TCP socket (TCP_INFO, tcpi_bytes_received); nullopt when
/// it does not say.
[[nodiscard]] std::optional<std::uint64_t> received_bytes(int socket);

} // namespace railbreak::bench
