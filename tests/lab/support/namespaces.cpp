#include "tests/lab/support/namespaces.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "harness/lab/processes.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {

namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string link_of(const std::filesystem::path& process) {
    std::error_code ignored;
    return std::filesystem::read_symlink(process / "ns/net", ignored).string();
}

/// Cookie of the namespace that a process is in; 0 when the process has ended or may not be followed. A child of ours
/// goes there: into the user namespace first, which is another one where a normal user has built the lab.
std::uint64_t cookie_of(const std::filesystem::path& process) {
    const UniqueFd netns(::open((process / "ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd users(::open((process / "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<int, 2> ends{};
    if (!netns.valid() || !users.valid() || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return 0;
    }
    const UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        (void)::setns(users.get(), CLONE_NEWUSER); // not possible, and not needed, where it is our own
        if (::setns(netns.get(), CLONE_NEWNET) == 0) {
            const std::uint64_t cookie = lab::current_netns_cookie();
            (void)!::write(write_end.get(), &cookie, sizeof cookie);
        }
        ::_exit(0);
    }
    write_end.reset();
    std::uint64_t cookie = 0;
    if (child > 0) {
        if (::read(read_end.get(), &cookie, sizeof cookie) != static_cast<ssize_t>(sizeof cookie)) {
            cookie = 0;
        }
        while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return cookie;
}

bool is_inside(const std::filesystem::path& process, const std::set<NetworkNamespace>& namespaces) {
    const std::string link = link_of(process);
    const auto known = std::find_if(namespaces.begin(), namespaces.end(),
                                    [&](const NetworkNamespace& candidate) { return candidate.link == link; });
    if (link.empty() || known == namespaces.end()) {
        return false;
    }
    const std::uint64_t cookie = cookie_of(process);
    return cookie == 0 || known->cookie == 0 || cookie == known->cookie;
}

std::string describe(const std::filesystem::path& process) {
    std::string command = read_file(process / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    return "in " + link_of(process) + ": " + read_file(process / "stat") +
           (command.empty() ? "no command line: the process is ending" : "command line: " + command);
}

std::vector<std::string> inhabitants(const std::set<NetworkNamespace>& namespaces) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") == std::string::npos && is_inside(entry.path(), namespaces)) {
            found.push_back(describe(entry.path()));
        }
    }
    return found;
}

} // namespace

std::set<NetworkNamespace> namespaces_of(const std::filesystem::path& home) {
    const std::string own = link_of("/proc/self");
    std::set<NetworkNamespace> namespaces;
    for (const RunProcess& process : processes_of(home)) {
        const std::filesystem::path folder = "/proc/" + std::to_string(process.pid);
        const std::string link = link_of(folder);
        if (!link.empty() && link != own) {
            namespaces.insert({link, cookie_of(folder)});
        }
    }
    return namespaces;
}

std::vector<std::string> wait_until_uninhabited(const std::set<NetworkNamespace>& namespaces, Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    std::vector<std::string> left = inhabitants(namespaces);
    while (!left.empty() && !deadline.passed()) {
        (void)::poll(nullptr, 0, 20); // processes that are not ours have nothing to wait on
        left = inhabitants(namespaces);
    }
    return left;
}

} // namespace railbreak::tests
