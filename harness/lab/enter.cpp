// Entering a lab host: for a child process of the launcher, and for `railbreak lab exec`.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "harness/lab/keeper.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/state.hpp"

namespace railbreak::lab {
namespace {

constexpr const char* kCgroups = "/sys/fs/cgroup";

/// Mounts a /sys that shows the present network namespace, with the cgroup tree of the old one. Best effort: without it
/// everything but /sys/class/net works, and some containers forbid it.
void mount_own_sysfs() {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return;
    }
    const UniqueFd cgroups(::open_tree(AT_FDCWD, kCgroups, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
    if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
        return;
    }
    if (cgroups.valid()) {
        static_cast<void>(::move_mount(cgroups.get(), "", AT_FDCWD, kCgroups, MOVE_MOUNT_F_EMPTY_PATH));
    }
}

/// Enters the user and mount namespaces of a keeper when they are not ours (a lab built by a normal user).
Result<void> enter_user_namespace_of(const ProcessId& keeper) {
    const auto path = [&keeper](const char* kind) { return fmt::format("/proc/{}/ns/{}", keeper.pid, kind); };
    const UniqueFd user(::open(path("user").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd mounts(::open(path("mnt").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd own(::open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
    const UniqueFd folder(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!user.valid() || !mounts.valid() || !own.valid()) {
        return fail_errno(ErrorKind::kHarness, "open the lab's user namespace", errno);
    }
    if (!is_alive(keeper)) {
        return fail_errno(ErrorKind::kHarness, "open the lab's user namespace", ESRCH);
    }
    if (inode_of(user.get()) == inode_of(own.get())) {
        return {};
    }
    if (::setns(user.get(), CLONE_NEWUSER) != 0 || ::setns(mounts.get(), CLONE_NEWNS) != 0) {
        return fail_errno(errno == EPERM ? ErrorKind::kRefused : ErrorKind::kHarness, "enter the lab's user namespace",
                          errno);
    }
    if (folder.valid()) {
        static_cast<void>(!::fchdir(folder.get())); // entering a mount namespace moves to its root
    }
    return {};
}

/// Index of the host that "h3" or "3" names; `count` when it names none.
unsigned host_index(std::string_view host, unsigned count) {
    if (!host.empty() && host.front() == 'h') {
        host.remove_prefix(1);
    }
    unsigned index = count;
    const auto* end = host.data() + host.size();
    const auto parsed = std::from_chars(host.data(), end, index);
    return parsed.ec == std::errc() && parsed.ptr == end ? std::min(index, count) : count;
}

/// The running lab of that name.
Result<LabRecord> find_running(std::string_view name) {
    auto folder = StateFolder::open();
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    for (auto& record : find_keepers()) {
        if (record.spec.name == name) {
            return std::move(record);
        }
    }
    return fail(Error(ErrorKind::kInput, fmt::format("there is no lab {} up", name))
                    .with("state_folder", state_folder())
                    .advise("railbreak lab list shows the labs of this user"));
}

} // namespace

Result<void> enter_host(int netns_fd) {
    if (::setns(netns_fd, CLONE_NEWNET) != 0) {
        return fail_errno(errno == EPERM ? ErrorKind::kRefused : ErrorKind::kHarness, "enter the host's namespace",
                          errno);
    }
    mount_own_sysfs();
    return {};
}

Result<void> lab_exec(std::string_view name, std::string_view host, const std::vector<std::string>& command) {
    if (command.empty()) {
        return fail(ErrorKind::kUsage, "no command to run in the lab");
    }
    auto record = find_running(name);
    if (!record) {
        return fail(std::move(record.error()));
    }
    const unsigned index = host_index(host, record->spec.hosts);
    if (index >= record->spec.hosts) {
        return fail(Error(ErrorKind::kInput, fmt::format("the lab {} has no host {}", name, host))
                        .advise(fmt::format("its hosts are h0 to h{}", record->spec.hosts - 1)));
    }
    auto netns = open_keeper_fd(record->keeper, kKeeperFirstHostFd + static_cast<int>(index));
    if (!netns) {
        return fail(std::move(netns.error()));
    }
    if (auto entered = enter_user_namespace_of(record->keeper); !entered) {
        return entered;
    }
    if (auto entered = enter_host(netns->get()); !entered) {
        return entered;
    }
    std::vector<char*> arguments;
    for (const auto& argument : command) {
        arguments.push_back(const_cast<char*>(argument.c_str())); // execvp does not write to them
    }
    arguments.push_back(nullptr);
    ::execvp(arguments.front(), arguments.data());
    return fail_errno(ErrorKind::kInput, fmt::format("run {}", command.front()), errno);
}

} // namespace railbreak::lab
