#include "injectors/find_netns.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/user.hpp"

namespace railbreak::injectors {

namespace {

// The namespaces that the machine began with have fixed numbers (linux/nsfs.h of Linux 6.18, the same ever since 3.8).
constexpr std::uint64_t kFirstUserNamespace = 0xEFFFFFFD;
constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;

std::uint64_t number_of(const char* path) {
    struct stat status {};
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/// Whether this process may do everything in every user namespace.
bool is_admin_everywhere() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    return number_of("/proc/thread-self/ns/user") == kFirstUserNamespace &&
           syscall(SYS_capget, &header, sets.data()) == 0 && (sets[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

/// A file handle of a namespace: struct nsfs_file_handle of linux/nsfs.h, Linux 6.18. Its id is the cookie.
struct NamespaceHandle {
    std::uint64_t id = 0;
    std::uint32_t type = CLONE_NEWNET;
    std::uint32_t inode = 0;
};

UniqueFd open_handle(int nsfs_fd, const NetnsIdentity& identity) {
    constexpr int kNamespaceHandle = 0xf1; // FILEID_NSFS
    const NamespaceHandle wanted{identity.cookie, CLONE_NEWNET, static_cast<std::uint32_t>(identity.inode)};
    alignas(file_handle) std::array<char, sizeof(file_handle) + sizeof wanted> room{};
    auto* handle = reinterpret_cast<file_handle*>(room.data());
    handle->handle_bytes = sizeof wanted;
    handle->handle_type = kNamespaceHandle;
    std::memcpy(room.data() + sizeof(file_handle), &wanted, sizeof wanted);
    return UniqueFd(open_by_handle_at(nsfs_fd, handle, O_RDONLY | O_CLOEXEC));
}

/// Asks the kernel itself. Nothing when it does not answer, and when it says no to somebody from whom it would hide a
/// namespace: it says the same of one that is gone and of one in which the asker may not do everything.
std::optional<UniqueFd> ask_kernel(const NetnsIdentity& identity) {
    const UniqueFd own(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    const UniqueFd socket_here(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    NetnsIdentity here{number_of("/proc/thread-self/ns/net"), 0, {}};
    socklen_t size = sizeof here.cookie;
    // A kernel that knows no such handles gives the answer of one that looks in vain: so first for what is there.
    if (identity.cookie == 0 || getsockopt(socket_here.get(), SOL_SOCKET, SO_NETNS_COOKIE, &here.cookie, &size) != 0 ||
        !open_handle(own.get(), here).valid()) {
        return std::nullopt;
    }
    UniqueFd found = open_handle(own.get(), identity);
    const bool owner =
        identity.user && *identity.user == geteuid() && number_of("/proc/thread-self/ns/user") == kFirstUserNamespace;
    if (found.valid() || (errno == ESTALE && (owner || is_admin_everywhere()))) {
        return found;
    }
    return std::nullopt;
}

/// Names of a folder's entries that are numbers (processes, threads, descriptors); errno when it cannot be read.
int list_numbers(const std::string& folder, std::vector<std::string>& names) {
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) {
        return errno;
    }
    while (const dirent* entry = readdir(directory)) { // NOLINT(concurrency-mt-unsafe): our own stream
        if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
            names.emplace_back(entry->d_name);
        }
    }
    closedir(directory);
    return 0;
}

/// A path of mountinfo, where blanks and the like are written as three octal digits (proc(5)).
std::string plain_path(const std::string& written) {
    std::string path;
    for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i] == '\\' && i + 3 < written.size()) {
            path.push_back(static_cast<char>(std::stoi(written.substr(i + 1, 3), nullptr, 8)));
            i += 3;
        } else {
            path.push_back(written[i]);
        }
    }
    return path;
}

/// Looks at every thread of every process: what it is in, the mounts that it sees, the descriptors that it holds.
class Search {
public:
    /// `kind`: "net", or "pid" of which the processes inside count alone.
    Search(std::string kind, std::uint64_t inode)
        : kind_(std::move(kind)), inode_(inode), wanted_(fmt::format("{}:[{}]", kind_, inode)) {}
    Result<UniqueFd> run();

private:
    bool look_at_new_threads();
    void look_at_thread(const std::string& process, const std::string& thread);
    void look_at_mounts(const std::string& thread);
    void look_at_descriptors(const std::string& thread);
    void open_if_wanted(const std::string& path);
    /// What was there is gone by now, or may not be seen.
    void note(const std::string& path, int error) {
        if (error != ENOENT && error != ESRCH) {
            unseen_.push_back(path);
        }
    }
    [[nodiscard]] Error open_question() const;

    std::string kind_;
    std::uint64_t inode_;
    std::string wanted_; ///< as links and mounts name it
    UniqueFd found_;
    std::set<std::string> threads_;       ///< looked at
    std::set<std::uint64_t> mount_views_; ///< mount namespaces looked at
    std::vector<std::string> unseen_;
    std::string barred_; ///< it is here, but may not be opened
};

void Search::open_if_wanted(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        note(path, errno);
        return;
    }
    if (status.st_ino != inode_) {
        return;
    }
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const int error = errno;
    if (fd.valid() && fstat(fd.get(), &status) == 0 && status.st_ino == inode_) {
        found_ = std::move(fd);
    } else if (!fd.valid() && error != ENOENT && error != ESRCH) {
        barred_ = path;
    }
}

void Search::look_at_mounts(const std::string& thread) {
    struct stat view {};
    if (stat((thread + "/ns/mnt").c_str(), &view) != 0) {
        note(thread + "/ns/mnt", errno);
        return;
    }
    if (!mount_views_.insert(view.st_ino).second) {
        return;
    }
    // Fourth and fifth field: "net:[4026532123]" and the mount point.
    std::ifstream mounts(thread + "/mountinfo");
    if (!mounts) {
        note(thread + "/mountinfo", errno == EINVAL ? ESRCH : errno); // EINVAL: of a thread that is ending
        return;
    }
    std::string skip;
    std::string root;
    std::string point;
    while (!found_.valid() && mounts >> skip >> skip >> skip >> root >> point) {
        std::getline(mounts, skip);
        if (root == wanted_) {
            open_if_wanted(thread + "/root" + plain_path(point));
        }
    }
}

void Search::look_at_descriptors(const std::string& thread) {
    std::vector<std::string> numbers;
    if (const int error = list_numbers(thread + "/fd", numbers); error != 0) {
        note(thread + "/fd", error);
        return;
    }
    for (const std::string& number : numbers) {
        const std::string path = thread + "/fd/" + number;
        std::array<char, 64> target{};
        const ssize_t size = readlink(path.c_str(), target.data(), target.size());
        if (size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == wanted_) {
            open_if_wanted(path);
        }
    }
}

void Search::look_at_thread(const std::string& process, const std::string& thread) {
    const std::string path = fmt::format("/proc/{}/task/{}", process, thread);
    open_if_wanted(path + "/ns/" + kind_);
    if (found_.valid() || kind_ != "net" || (!unseen_.empty() && unseen_.back().starts_with(path))) {
        return; // one refusal is enough
    }
    look_at_mounts(path);
    const bool shares_descriptors =
        process != thread && syscall(SYS_kcmp, std::stoi(process), std::stoi(thread), KCMP_FILES, 0, 0) == 0;
    if (!found_.valid() && !shares_descriptors) {
        look_at_descriptors(path);
    }
}

/// False when there was none.
bool Search::look_at_new_threads() {
    bool any = false;
    std::vector<std::string> processes;
    if (const int error = list_numbers("/proc", processes); error != 0) {
        unseen_.emplace_back("/proc");
    }
    for (const std::string& process : processes) {
        std::vector<std::string> threads;
        if (const int error = list_numbers("/proc/" + process + "/task", threads); error != 0) {
            note("/proc/" + process, error);
        }
        for (const std::string& thread : threads) {
            if (!found_.valid() && threads_.insert(process + "/" + thread).second) {
                look_at_thread(process, thread);
                any = true;
            }
        }
    }
    return any;
}

Error Search::open_question() const {
    std::string why;
    if (!barred_.empty()) {
        why = fmt::format("is there ({}), but this process may not open it", barred_);
    } else if (unseen_.empty()) {
        why = "may still be there: this process sees a part of the machine's processes only";
    } else {
        const std::size_t shown = std::min<std::size_t>(unseen_.size(), 3);
        why = fmt::format("may still be there: this process may not look at {}{}",
                          fmt::join(unseen_.begin(), unseen_.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                          unseen_.size() > shown ? fmt::format(" and {} more", unseen_.size() - shown) : "");
    }
    return Error(ErrorKind::kTeardown,
                 fmt::format("the fault's {} namespace {} {}", kind_ == "net" ? "network" : kind_, wanted_, why))
        .with(kind_ + "ns", wanted_)
        .advise("Run railbreak recover --all as root, outside of containers.");
}

Result<UniqueFd> Search::run() {
    if (kind_ == "net") {
        open_if_wanted("/proc/thread-self/ns/net");
    }
    if (kind_ == "net" && !found_.valid()) {
        look_at_mounts("/proc/thread-self");
    }
    // Whoever holds it may hand it to a new process and end before it is looked at: so until there is nobody new.
    constexpr int kRounds = 16;
    int rounds = 0;
    while (!found_.valid() && rounds < kRounds && look_at_new_threads()) {
        ++rounds;
    }
    if (found_.valid()) {
        return std::move(found_);
    }
    const bool everybody = own_pid_namespace() == kFirstPidNamespace && threads_.contains("1/1");
    if (!everybody || !unseen_.empty() || !barred_.empty() || rounds == kRounds) {
        return fail(open_question());
    }
    return UniqueFd();
}

} // namespace

Result<UniqueFd> find_netns(const NetnsIdentity& identity, const NetnsSearch& search) {
    auto answer = search.ask_kernel ? ask_kernel(identity) : std::nullopt;
    return answer ? Result<UniqueFd>(std::move(*answer)) : Search("net", identity.inode).run();
}

std::uint64_t own_pid_namespace() {
    return number_of("/proc/self/ns/pid");
}

Result<bool> is_inhabited_pid_namespace(std::uint64_t inode) {
    return Search("pid", inode).run().map([](const UniqueFd& found) { return found.valid(); });
}

std::optional<uid_t> owner_of_netns(int netns_fd) {
    const UniqueFd users(ioctl(netns_fd, NS_GET_USERNS));
    struct stat status {};
    if (!users.valid() || fstat(users.get(), &status) != 0 || status.st_ino == kFirstUserNamespace) {
        return std::nullopt;
    }
    const std::uint64_t own = number_of("/proc/thread-self/ns/user");
    if (status.st_ino == own) {
        // From inside, its owner has the number that it has inside.
        const uid_t outside = outer_uid();
        return outside != geteuid() ? std::optional(outside) : std::nullopt;
    }
    uid_t owner = 0;
    return own == kFirstUserNamespace && ioctl(users.get(), NS_GET_OWNER_UID, &owner) == 0 ? std::optional(owner)
                                                                                           : std::nullopt;
}

} // namespace railbreak::injectors
