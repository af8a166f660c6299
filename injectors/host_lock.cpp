#include "injectors/host_lock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.hpp"
#include "injectors/host_files.hpp"
#include "injectors/process_control.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::string_view kPrefix = "host-";
constexpr std::string_view kSuffix = ".lock";
constexpr int kAttempts = 16; ///< against owners that end at this very moment
constexpr int kRetryMs = 5;   ///< flock() has no timeout of its own

std::string one_line(std::string_view text) {
    std::string line(text);
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return line;
}

template <class Number> Number number_of(const std::map<std::string, std::string>& values, const std::string& key) {
    Number number{};
    const auto found = values.find(key);
    if (found != values.end()) {
        std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
    }
    return number;
}

std::string read_text(int fd) {
    std::array<char, 4096> text{};
    const ssize_t size = pread(fd, text.data(), text.size(), 0);
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

/// Whether that very process runs. One that only waits to be reaped has let go of its lock.
bool is_running(const ProcessIdentity& process) {
    const auto found = read_process(process.pid);
    return found && *found && (*found)->identity.start_ticks == process.start_ticks && (*found)->state != 'Z';
}

/// An owner removes its file before it lets go of the lock: then the lock of an old descriptor says nothing.
bool still_there(int fd, const std::string& path) {
    struct stat by_fd {};
    struct stat by_path {};
    return fstat(fd, &by_fd) == 0 && stat(path.c_str(), &by_path) == 0 && by_fd.st_ino == by_path.st_ino &&
           by_fd.st_dev == by_path.st_dev;
}

} // namespace

std::string HostOwner::describe() const {
    return fmt::format("the run {} (host {}, agent process {}, user {}, since {})", run_id, host_name, agent.pid, user,
                       to_iso8601(since));
}

std::string to_text(const HostOwner& owner) {
    return fmt::format("run={}\nhost={}\nuser={}\nsince_ns={}\nagent={}\nagent_start={}\nguard={}\nguard_start={}\n"
                       "journal={}\n",
                       one_line(owner.run_id), one_line(owner.host_name), one_line(owner.user), owner.since.count(),
                       owner.agent.pid, owner.agent.start_ticks, owner.guard.pid, owner.guard.start_ticks,
                       one_line(owner.journal));
}

std::optional<HostOwner> parse_owner(std::string_view text) {
    std::map<std::string, std::string> values;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        if (const std::size_t equals = line.find('='); equals != std::string_view::npos) {
            values[std::string(line.substr(0, equals))] = line.substr(equals + 1);
        }
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    HostOwner owner;
    owner.run_id = values["run"];
    owner.host_name = values["host"];
    owner.user = values["user"];
    owner.since = Nanoseconds(number_of<std::int64_t>(values, "since_ns"));
    owner.agent = {number_of<std::int32_t>(values, "agent"), number_of<std::uint64_t>(values, "agent_start"), {}};
    owner.guard = {number_of<std::int32_t>(values, "guard"), number_of<std::uint64_t>(values, "guard_start"), {}};
    owner.journal = values["journal"];
    return owner.agent.pid > 0 && owner.guard.pid >= 0 ? std::optional(std::move(owner)) : std::nullopt;
}

std::string current_user() {
    const uid_t user = outer_uid();
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    const bool known = getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
    return fmt::format("{} ({})", known ? found->pw_name : "unknown", user);
}

ProcessIdentity identify(std::int32_t pid) {
    const auto found = read_process(pid);
    return found && *found ? (*found)->identity : ProcessIdentity{};
}

ProcessIdentity current_process() {
    return identify(getpid());
}

Result<HostLock> HostLock::take(const std::string& state_folder, const NetnsIdentity& netns, HostOwner owner) {
    return take_file(fmt::format("{}/{}{}-{}{}", state_folder, kPrefix, netns.inode, netns.cookie, kSuffix),
                     std::move(owner));
}

Result<HostLock> HostLock::note_presence(const std::string& state_folder, const NetnsIdentity& netns, HostOwner owner) {
    return take_file(
        fmt::format("{}/{}{}-{}-{}{}", state_folder, kPrefix, netns.inode, netns.cookie, owner.agent.pid, kSuffix),
        std::move(owner));
}

Result<HostLock> HostLock::take_file(const std::string& path, HostOwner owner) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!fd.valid()) {
            return fail_errno(ErrorKind::kHarness, "open the host's lock " + path, errno);
        }
        if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) {
                return fail_errno(ErrorKind::kHarness, "lock " + path, errno);
            }
            const auto holder = parse_owner(read_text(fd.get()));
            if (!(holder && is_running(holder->agent)) && attempt + 1 < kAttempts) {
                poll(nullptr, 0, kRetryMs); // somebody is about to write it, or to tidy it away
                continue;
            }
            return fail(Error(ErrorKind::kRefused,
                              fmt::format("this host is in the hands of {}",
                                          holder ? holder->describe() : "another railbreak run that has just started"))
                            .with("lock", path)
                            .with("run", holder ? holder->run_id : "unknown")
                            .advise("Wait until that run has ended, or end it with railbreak halt."));
        }
        if (!still_there(fd.get(), path)) {
            continue;
        }
        HostLock lock(std::move(fd), path, std::move(owner));
        if (auto written = lock.write_down(); !written) {
            return tl::unexpected(std::move(written.error()));
        }
        return lock;
    }
    return fail(ErrorKind::kHarness, "the host's lock " + path + " changes hands without end");
}

Result<void> HostLock::write_down() {
    const std::string text = to_text(owner_);
    if (ftruncate(fd_.get(), 0) != 0 ||
        pwrite(fd_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        return fail_errno(ErrorKind::kHarness, "write the host's lock " + path_, errno);
    }
    return {};
}

Result<void> HostLock::note(std::int32_t guard_pid, const std::string& journal) {
    owner_.guard = identify(guard_pid);
    owner_.journal = journal;
    return write_down();
}

HostLock::~HostLock() {
    if (fd_.valid()) {
        unlink(path_.c_str()); // before the lock is let go of: see still_there()
    }
}

Result<std::vector<HostOwner>> list_owners(const std::string& state_folder, bool tidy) {
    const auto names = host_files::list_folder(state_folder);
    if (!names) {
        return tl::unexpected(names.error());
    }
    std::vector<HostOwner> owners;
    for (const std::string& name : *names) {
        const std::string path = state_folder + "/" + name;
        if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) {
            continue;
        }
        const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
        if (!fd.valid()) {
            continue; // gone since it was listed
        }
        // Asked of the process and not of the lock: to try that would refuse an agent that starts at this moment.
        auto owner = parse_owner(read_text(fd.get()));
        if (owner && is_running(owner->agent)) {
            owners.push_back(std::move(*owner));
        } else if (tidy && flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && still_there(fd.get(), path)) {
            unlink(path.c_str());
        }
    }
    return owners;
}

} // namespace railbreak::injectors
