// On its own because the kernel's tcp.h, which alone has this field, cannot be included beside the C library's.
#include "tests/bench/received_bytes.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace railbreak::bench {

std::optional<std::uint64_t> received_bytes(int socket) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        return std::nullopt;
    }
    return info.tcpi_bytes_received;
}

} // namespace railbreak::bench
