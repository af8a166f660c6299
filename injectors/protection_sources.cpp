// Where the reasons for protection come from: sockets, environment, tables of the kernel. Everything here reads texts
// and descriptors; protection.cpp draws the conclusions.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "injectors/protection.hpp"

namespace railbreak::injectors {

namespace {

constexpr const char* kControl = "the control connection";

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(separators), text.size());
        if (end > 0) {
            words.push_back(text.substr(0, end));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

/// The usual text of an address, an IPv4 one inside of IPv6 as the former; empty for what is none or never leaves the
/// host.
std::string tidy_address(std::string_view text) {
    const std::string word(text.substr(0, text.find('%')));
    in6_addr six{};
    in_addr four{};
    if (inet_pton(AF_INET, word.c_str(), &four) != 1) {
        if (inet_pton(AF_INET6, word.c_str(), &six) != 1 || IN6_IS_ADDR_LOOPBACK(&six) ||
            IN6_IS_ADDR_UNSPECIFIED(&six)) {
            return {};
        }
        if (!IN6_IS_ADDR_V4MAPPED(&six)) {
            std::array<char, INET6_ADDRSTRLEN> plain{};
            return inet_ntop(AF_INET6, &six, plain.data(), plain.size());
        }
        std::memcpy(&four, six.s6_addr + 12, sizeof four);
    }
    const std::uint32_t value = ntohl(four.s_addr);
    if (value == 0 || value >> 24 == IN_LOOPBACKNET) {
        return {};
    }
    std::array<char, INET_ADDRSTRLEN> plain{};
    return inet_ntop(AF_INET, &four, plain.data(), plain.size());
}

std::string address_of(const sockaddr_storage& end) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (end.ss_family == AF_INET) {
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(end).sin_addr, text.data(), text.size());
    } else if (end.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(end).sin6_addr, text.data(), text.size());
    }
    return tidy_address(text.data());
}

std::optional<Connection> socket_connection(int fd) {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    socklen_t local_size = sizeof local;
    socklen_t peer_size = sizeof peer;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) {
        return std::nullopt;
    }
    (void)getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size); // one that is not connected has no peer
    Connection found{address_of(local), address_of(peer), kControl};
    return found.local.empty() ? std::nullopt : std::optional(std::move(found));
}

/// A service by its well-known port; `local`: on this side of the connection.
struct Service {
    std::uint16_t port;
    bool local;
    const char* carries;
};
constexpr std::array<Service, 9> kServices{{{22, true, "a connection of sshd"},
                                            {6818, true, "a connection of slurmd"},
                                            {10250, true, "a connection of the kubelet"},
                                            {988, false, "a connection to Lustre"},
                                            {2049, false, "a connection to an NFS server"},
                                            {3260, false, "a connection to an iSCSI target"},
                                            {4420, false, "a connection to an NVMe target"},
                                            {6443, false, "a connection to the Kubernetes API"},
                                            {6817, false, "a connection to slurmctld"}}};

/// One end in /proc/net/tcp: "0100007F:0016", the words of the address in the host's byte order.
struct End {
    std::string address;
    unsigned port = 0;
};
End parse_end(std::string_view text) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view hex = text.substr(0, colon);
    std::array<std::uint32_t, 4> words{};
    if (hex.size() != 8 && hex.size() != 32) {
        return {};
    }
    for (std::size_t i = 0; i < hex.size() / 8; ++i) {
        std::from_chars(hex.data() + 8 * i, hex.data() + 8 * (i + 1), words.at(i), 16);
    }
    std::array<char, INET6_ADDRSTRLEN> plain{};
    inet_ntop(hex.size() == 8 ? AF_INET : AF_INET6, words.data(), plain.data(), plain.size());
    End end{tidy_address(plain.data())};
    const std::string_view port = text.substr(std::min(colon + 1, text.size()));
    std::from_chars(port.data(), port.data() + port.size(), end.port, 16);
    return end;
}

/// The address that a mount's source begins with: "10.0.0.1:/home", "[fd00::1]:/home", "//10.0.0.1/share",
/// "10.0.0.1@tcp:/scratch".
std::string source_address(std::string_view source) {
    while (source.starts_with('/')) {
        source.remove_prefix(1);
    }
    if (source.starts_with('[')) {
        return tidy_address(source.substr(1, source.find(']') - 1));
    }
    return tidy_address(source.substr(0, source.find_first_of(":@/,")));
}

constexpr std::array<std::string_view, 12> kNetworkFileSystems{
    "nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "glusterfs", "fuse.glusterfs", "beegfs", "afs", "gpfs", "pvfs2"};

} // namespace

std::optional<Connection> parse_ssh_connection(std::string_view text) {
    const auto words = split(text, " ");
    if (words.size() != 4) {
        return std::nullopt;
    }
    Connection found{tidy_address(words[2]), tidy_address(words[0]), kControl};
    return found.local.empty() ? std::nullopt : std::optional(std::move(found));
}

std::vector<Connection> control_connections() {
    std::vector<Connection> found;
    const auto add = [&](std::optional<Connection> connection) {
        if (connection && std::find(found.begin(), found.end(), *connection) == found.end()) {
            found.push_back(std::move(*connection));
        }
    };
    add(socket_connection(STDIN_FILENO));
    add(socket_connection(STDOUT_FILENO));
    const char* ssh = std::getenv("SSH_CONNECTION"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    add(ssh != nullptr ? parse_ssh_connection(ssh) : std::nullopt);
    return found;
}

std::vector<Connection> service_connections(std::string_view proc_net_tcp) {
    constexpr std::string_view kEstablished = "01";
    std::vector<Connection> found;
    for (const std::string_view line : split(proc_net_tcp, "\n")) {
        const auto words = split(line, " ");
        if (words.size() < 4 || words[3] != kEstablished) {
            continue;
        }
        const End local = parse_end(words[1]);
        const End peer = parse_end(words[2]);
        const auto service = std::find_if(kServices.begin(), kServices.end(), [&](const Service& each) {
            return each.port == (each.local ? local.port : peer.port);
        });
        if (service == kServices.end() || local.address.empty()) {
            continue;
        }
        Connection connection{local.address, peer.address, service->carries};
        if (std::find(found.begin(), found.end(), connection) == found.end()) {
            found.push_back(std::move(connection));
        }
    }
    return found;
}

std::vector<Connection> file_servers(std::string_view mountinfo) {
    std::vector<Connection> found;
    for (const std::string_view line : split(mountinfo, "\n")) {
        const std::size_t dash = line.find(" - ");
        const auto words = split(line.substr(std::min(dash, line.size())), " ");
        if (words.size() < 3 ||
            std::find(kNetworkFileSystems.begin(), kNetworkFileSystems.end(), words[1]) == kNetworkFileSystems.end()) {
            continue;
        }
        std::string server;
        for (const std::string_view option : split(words.size() > 3 ? words[3] : "", ",")) {
            if (option.starts_with("addr=")) {
                server = tidy_address(option.substr(5));
            }
        }
        server = server.empty() ? source_address(words[2]) : server;
        const Connection connection{{}, server, fmt::format("the way to a mounted file system ({})", words[1])};
        if (!server.empty() && std::find(found.begin(), found.end(), connection) == found.end()) {
            found.push_back(connection);
        }
    }
    return found;
}

bool sounds_like_management(std::string_view text) {
    static constexpr std::array<std::string_view, 8> kWords{"mgmt", "mgt",   "management", "bmc",
                                                            "ipmi", "idrac", "ilo",        "oob"};
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    for (std::string_view word : split(lower, " -_.:/@()")) {
        word = word.substr(0, word.find_last_not_of("0123456789") + 1);
        if (std::find(kWords.begin(), kWords.end(), word) != kWords.end()) {
            return true;
        }
    }
    return false;
}

} // namespace railbreak::injectors
