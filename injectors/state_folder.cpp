#include "injectors/state_folder.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/text_file.hpp"
#include "base/user.hpp"
#include "injectors/journal.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::string_view kJournal = "/journal";

/// The folder with its owner, unless others may write to it.
std::optional<JournalFolder> sound_folder(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return std::nullopt;
    }
    return JournalFolder{path, status.st_uid, status.st_gid};
}

/// Names of users' own folders begin with this and end with the user's number.
void add_users(const std::string& parent, std::string_view prefix, const std::string& below,
               std::vector<JournalFolder>& found) {
    std::error_code code;
    for (std::filesystem::directory_iterator entry(parent, code), end; !code && entry != end; entry.increment(code)) {
        const std::string name = entry->path().filename().string();
        uid_t user = 0;
        const char* last = name.data() + name.size();
        if (!name.starts_with(prefix) || std::from_chars(name.data() + prefix.size(), last, user).ptr != last ||
            name.size() == prefix.size()) {
            continue;
        }
        const std::string path = entry->path().string() + below;
        const auto outer = sound_folder(entry->path().string());
        const auto state = sound_folder(state_folder_of(path));
        auto journals = sound_folder(path);
        if (!journals && errno == ENOENT && state) {
            journals = JournalFolder{path, state->owner, state->group}; // whoever died before the first journal
        }
        // In /tmp anybody may make a folder with another user's number.
        if (outer && state && journals && outer->owner == user && state->owner == user && journals->owner == user) {
            found.push_back(std::move(*journals));
        }
    }
}

/// What a process has in its environment under that name; nothing when that may not be read.
std::optional<std::string> environment_of(const std::string& process, std::string_view variable) {
    const std::string all = read_small_file(process + "/environ");
    const std::string name = std::string(variable) + "=";
    for (std::size_t begin = 0; begin < all.size();) {
        const std::size_t end = std::min(all.find('\0', begin), all.size());
        if (all.compare(begin, name.size(), name) == 0) {
            return all.substr(begin + name.size(), end - begin - name.size());
        }
        begin = end + 1;
    }
    return std::nullopt;
}

/// Folders of agents and guards that are alive: their state may be anywhere. As root those of all users.
void add_living(std::vector<JournalFolder>& found) {
    std::error_code code;
    for (std::filesystem::directory_iterator entry("/proc", code), end; !code && entry != end; entry.increment(code)) {
        const std::string process = entry->path().string();
        struct stat status {};
        std::string name;
        std::ifstream comm(process + "/comm");
        if (!std::getline(comm, name) || (name != kAgentName && name != kGuardName) ||
            stat(process.c_str(), &status) != 0 || (geteuid() != 0 && status.st_uid != geteuid())) {
            continue;
        }
        const std::string chosen = environment_of(process, "RAILBREAK_STATE_DIR").value_or("");
        if (auto folder = chosen.starts_with('/') ? sound_folder(chosen) : std::nullopt;
            folder && folder->owner == status.st_uid) {
            found.push_back(std::move(*folder));
        }
    }
}

} // namespace

InUsersName::InUsersName(const JournalFolder& folder) : changed_(geteuid() == 0 && folder.owner != 0) {
    if (!changed_) {
        return;
    }
    groups_.resize(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
    const int count = getgroups(static_cast<int>(groups_.size()), groups_.data());
    groups_.resize(static_cast<std::size_t>(std::max(count, 0)));
    (void)setgroups(0, nullptr);
    setfsgid(folder.group);
    setfsuid(folder.owner);
}

InUsersName::~InUsersName() {
    if (changed_) {
        setfsuid(geteuid());
        setfsgid(getegid());
        (void)setgroups(groups_.size(), groups_.data());
    }
}

Result<std::string> run_as_owner(const JournalFolder& folder, const std::function<std::string(const Progress&)>& body,
                                 Nanoseconds patience) {
    if (folder.owner == geteuid()) {
        return run_in_child(body, patience);
    }
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    // A user of a container or of a directory that does not answer now has no entry; the folder's group is as good.
    const bool known = getpwuid_r(folder.owner, &entry, room.data(), room.size(), &found) == 0 && found != nullptr;
    const gid_t group = known ? found->pw_gid : folder.group;
    const auto as_owner = [&](const Progress& progress) {
        if (setgroups(0, nullptr) != 0 || setresgid(group, group, group) != 0 ||
            setresuid(folder.owner, folder.owner, folder.owner) != 0) {
            return std::string();
        }
        return body(progress);
    };
    return run_in_child(as_owner, patience);
}

std::string state_folder_of(const std::string& journal_folder) {
    return journal_folder.ends_with(kJournal) && journal_folder.size() > kJournal.size()
               ? journal_folder.substr(0, journal_folder.size() - kJournal.size())
               : journal_folder;
}

Result<std::vector<JournalFolder>> known_journal_folders(HostOps& ops) {
    auto own = default_journal_folder(ops);
    if (!own) {
        return tl::unexpected(std::move(own.error()));
    }
    std::vector<JournalFolder> found{{*own, geteuid(), getegid()}};
    const char* chosen = std::getenv("RAILBREAK_STATE_DIR"); // NOLINT(concurrency-mt-unsafe): read at start
    if (chosen != nullptr && *chosen != '\0') {
        return found;
    }
    if (outer_uid() == 0) {
        add_users("/run/user", "", "/railbreak/journal", found);
        add_users("/tmp", "railbreak-", std::string(kJournal), found);
    }
    add_living(found);
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    const auto same_path = [](const auto& a, const auto& b) { return a.path == b.path; };
    std::sort(found.begin() + 1, found.end(), by_path);
    found.erase(std::unique(found.begin() + 1, found.end(), same_path), found.end());
    const auto own_again = std::remove_if(found.begin() + 1, found.end(),
                                          [&](const JournalFolder& each) { return same_path(each, found.front()); });
    found.erase(own_again, found.end());
    return found;
}

std::string halt_file(const std::string& state_folder) {
    return state_folder + "/halt";
}

std::optional<std::string> halted(const std::string& state_folder) {
    const std::string path = halt_file(state_folder);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
        return errno == ENOENT || errno == ENOTDIR ? std::nullopt
                                                   : std::optional<std::string>("a halt file that cannot be read");
    }
    std::array<char, 200> text{};
    const ssize_t size = read(fd.get(), text.data(), text.size());
    std::string line(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    line.erase(std::min(line.find('\n'), line.size()));
    return line.empty() ? "no reason given" : line;
}

Result<void> make_halt_file(const std::string& state_folder, const std::string& text) {
    const std::string path = halt_file(state_folder);
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd.valid()) {
        return errno == EEXIST ? Result<void>() : fail_errno(ErrorKind::kHarness, "make the halt file " + path, errno);
    }
    const std::string line = text + "\n";
    if (write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        return fail_errno(ErrorKind::kHarness, "write the halt file " + path, errno); // an empty one halts as well
    }
    return {};
}

Result<bool> remove_halt_file(const std::string& state_folder) {
    const std::string path = halt_file(state_folder);
    if (unlink(path.c_str()) == 0) {
        return true;
    }
    return errno == ENOENT ? Result<bool>(false) : fail_errno(ErrorKind::kHarness, "remove " + path, errno);
}

} // namespace railbreak::injectors
