#include "harness/lab/privilege.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace railbreak::lab {
namespace {

/// Writes one line to a file under /proc; gives errno, or 0.
int write_line(const char* path, const std::string& line) {
    const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) {
        return errno;
    }
    return ::write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : errno;
}

/// Value of a numeric sysctl, or -1 when this kernel does not have it.
long read_sysctl(const char* path) {
    std::ifstream file(path);
    long value = -1;
    return file >> value ? value : -1;
}

/// Which setting forbids user namespaces here, and how to change it.
std::string how_to_allow() {
    if (read_sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
        return "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1) or run as root";
    }
    if (read_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1) {
        return "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile "
               "for railbreak with the rule \"userns,\") or run as root";
    }
    if (read_sysctl("/proc/sys/user/max_user_namespaces") == 0) {
        return "allow user namespaces (sysctl user.max_user_namespaces=1000) or run as root";
    }
    return "run as root; a container needs CAP_NET_ADMIN and CAP_SYS_ADMIN, or a seccomp profile that permits unshare";
}

tl::unexpected<Error> refused(std::string_view step, int errno_value) {
    return fail(Error(ErrorKind::kRefused, fmt::format("a lab needs root or user namespaces, and this user may not "
                                                       "use those: {}: {}",
                                                       step, ::strerrordesc_np(errno_value)))
                    .with("errno", ::strerrorname_np(errno_value))
                    .advise(how_to_allow()));
}

} // namespace

bool has_lab_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
    if (::syscall(SYS_capget, &header, data) != 0) {
        return false;
    }
    constexpr std::uint32_t kNeeded = (1U << CAP_NET_ADMIN) | (1U << CAP_SYS_ADMIN);
    return (data[0].effective & kNeeded) == kNeeded;
}

Result<void> become_namespace_root() {
    if (has_lab_capabilities()) {
        return {};
    }
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        if (errno == EINVAL) {
            return fail(ErrorKind::kInternal, "a user namespace can only be entered while the process has one thread");
        }
        return refused("unshare", errno);
    }
    if (const int error = write_line("/proc/self/setgroups", "deny"); error != 0 && error != ENOENT) {
        return refused("write setgroups", error);
    }
    if (const int error = write_line("/proc/self/uid_map", fmt::format("0 {} 1\n", uid)); error != 0) {
        return refused("write uid_map", error);
    }
    if (const int error = write_line("/proc/self/gid_map", fmt::format("0 {} 1\n", gid)); error != 0) {
        return refused("write gid_map", error);
    }
    if (!has_lab_capabilities()) {
        return refused("the namespace has no capabilities", EPERM); // what AppArmor's restriction looks like
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return refused("make mounts private", errno);
    }
    return {};
}

} // namespace railbreak::lab
