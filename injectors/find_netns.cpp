// Finding a network namespace again by its inode. Its number is all that a journal can keep; what keeps it alive may
// be a process, a mount (ip netns) or a descriptor that some process holds.
#include <cctype>
#include <charconv>
#include <fstream>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "injectors/real_host_ops.hpp"

namespace railbreak::injectors {

namespace {

/// Opens `path` when it is the namespace with this inode.
UniqueFd open_if(const std::string& path, std::uint64_t inode) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || status.st_ino != inode) {
        return {};
    }
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid() && (fstat(fd.get(), &status) != 0 || status.st_ino != inode)) {
        fd.reset();
    }
    return fd;
}

/// Names of a folder's entries that are numbers (processes, descriptors); empty when it cannot be read.
std::vector<std::string> numbered(const std::string& folder) {
    std::vector<std::string> names;
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) {
        return names;
    }
    while (const dirent* entry = readdir(directory)) { // NOLINT(concurrency-mt-unsafe): our own stream
        if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
            names.emplace_back(entry->d_name);
        }
    }
    closedir(directory);
    return names;
}

UniqueFd find_mounted(std::uint64_t inode) {
    // mountinfo's fourth and fifth fields: "net:[4026532123]" and the mount point.
    const std::string wanted = "net:[" + std::to_string(inode) + "]";
    std::ifstream mounts("/proc/self/mountinfo");
    std::string skip;
    std::string root;
    std::string point;
    while (mounts >> skip >> skip >> skip >> root >> point) {
        std::getline(mounts, skip);
        if (root == wanted) {
            if (UniqueFd fd = open_if(point, inode); fd.valid()) {
                return fd;
            }
        }
    }
    return {};
}

UniqueFd find_by_descriptor(const std::string& process, const std::string& wanted) {
    for (const std::string& number : numbered(process + "/fd")) {
        const std::string path = process + "/fd/" + number;
        char target[64];
        const ssize_t size = readlink(path.c_str(), target, sizeof target);
        if (size > 0 && std::string_view(target, static_cast<std::size_t>(size)) == wanted) {
            UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
            if (fd.valid()) {
                return fd;
            }
        }
    }
    return {};
}

bool has_cookie(int netns_fd, std::uint64_t cookie) {
    if (cookie == 0) {
        return true;
    }
    auto ops = open_host_ops_in(netns_fd);
    if (!ops) {
        return false;
    }
    auto identity = (*ops)->netns();
    return identity && identity->cookie == cookie;
}

} // namespace

UniqueFd find_netns(const NetnsIdentity& identity) {
    const auto checked = [&](UniqueFd fd) {
        return fd.valid() && has_cookie(fd.get(), identity.cookie) ? std::move(fd) : UniqueFd();
    };
    if (UniqueFd fd = checked(open_if("/proc/thread-self/ns/net", identity.inode)); fd.valid()) {
        return fd;
    }
    if (UniqueFd fd = checked(find_mounted(identity.inode)); fd.valid()) {
        return fd;
    }
    const std::vector<std::string> processes = numbered("/proc");
    for (const std::string& pid : processes) {
        if (UniqueFd fd = checked(open_if("/proc/" + pid + "/ns/net", identity.inode)); fd.valid()) {
            return fd;
        }
    }
    const std::string wanted = "net:[" + std::to_string(identity.inode) + "]";
    for (const std::string& pid : processes) {
        if (UniqueFd fd = checked(find_by_descriptor("/proc/" + pid, wanted)); fd.valid()) {
            return fd;
        }
    }
    return {};
}

} // namespace railbreak::injectors
