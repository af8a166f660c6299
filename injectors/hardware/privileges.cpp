#include "injectors/hardware/privileges.hpp"

#include <cstdint>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

namespace railbreak::injectors::hardware {
namespace {

constexpr int kHexadecimal = 16;
constexpr std::uint64_t kAllUsers = 4294967295; // the size of the only map that the initial namespace has

std::uint64_t effective_capabilities() {
    std::ifstream status("/proc/thread-self/status");
    std::string word;
    while (status >> word) {
        if (word == "CapEff:" && status >> word) {
            return std::stoull(word, nullptr, kHexadecimal);
        }
    }
    return 0;
}

bool maps_every_user() {
    std::ifstream map("/proc/thread-self/uid_map");
    std::uint64_t inside = 0;
    std::uint64_t outside = 0;
    std::uint64_t size = 0;
    return map >> inside >> outside >> size && inside == 0 && outside == 0 && size == kAllUsers;
}

} // namespace

Privileges read_privileges() {
    Privileges privileges;
    privileges.net_admin = (effective_capabilities() >> CAP_NET_ADMIN & 1U) != 0;
    privileges.initial_user_namespace = maps_every_user();
    struct stat first {};
    privileges.first_netns_inode = ::stat("/proc/1/ns/net", &first) == 0 ? first.st_ino : 0;
    privileges.root_files = privileges.initial_user_namespace && ::geteuid() == 0;
    return privileges;
}

Result<void> check_net_admin(const Privileges& privileges, std::string_view what) {
    if (privileges.net_admin && privileges.initial_user_namespace) {
        return {};
    }
    return fail(Error(ErrorKind::kRefused, fmt::format("{} asks for CAP_NET_ADMIN in the first user namespace", what))
                    .advise("Run as root outside of user namespaces (no rootless container)."));
}

} // namespace railbreak::injectors::hardware
