#include "injectors/ballast.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <deque>
#include <memory>
#include <set>
#include <sstream>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace railbreak::injectors {

namespace {

constexpr int kDeepest = 6;
constexpr int kMostNames = 200'000; ///< of one file system

/// A mount point that may have a ballast below it.
struct Place {
    std::string folder;
    dev_t device = 0;
};

/// "\040" and the like, in which mountinfo writes spaces.
std::string unescaped(std::string_view word) {
    std::string text;
    for (std::size_t i = 0; i < word.size(); ++i) {
        unsigned char code = 0;
        const char* digits = word.data() + i + 1;
        if (word[i] == '\\' && i + 3 < word.size() && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
            text.push_back(static_cast<char>(code));
            i += 3;
        } else {
            text.push_back(word[i]);
        }
    }
    return text;
}

std::vector<Place> places_in(std::string_view mountinfo) {
    static const std::set<std::string> kTypes{"ext4", "xfs", "f2fs", "tmpfs"};
    struct stat root {};
    std::set<dev_t> seen{::stat("/", &root) == 0 ? root.st_dev : 0};
    std::vector<Place> places;
    std::istringstream lines{std::string(mountinfo)};
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string skipped;
        std::string folder;
        std::string type;
        words >> skipped >> skipped >> skipped >> skipped >> folder;
        while (words >> type && type != "-") {
        }
        words >> type;
        struct stat status {};
        folder = unescaped(folder);
        if (kTypes.contains(type) && ::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
            seen.insert(status.st_dev).second) {
            places.push_back({folder, status.st_dev});
        }
    }
    return places;
}

/// A folder of the mount, reached without following a link; invalid when that is not possible.
UniqueFd open_below(const std::string& mount, std::string_view below) {
    UniqueFd folder(::open(mount.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    while (folder.valid() && !below.empty()) {
        const std::string name(below.substr(0, below.find('/')));
        below.remove_prefix(std::min(name.size() + 1, below.size()));
        folder = UniqueFd(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
    return folder;
}

/// Only what a fault makes: a file of its own that nobody else may read.
bool is_ballast(int folder, const char* name) {
    struct stat status {};
    return std::string_view(name).starts_with(kBallastName) &&
           ::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
           (status.st_mode & 07777U) == 0600 && status.st_nlink == 1;
}

bool is_folder_of(int folder, const dirent& entry, dev_t device) {
    struct stat status {};
    return (entry.d_type == DT_DIR || entry.d_type == DT_UNKNOWN) &&
           ::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode) &&
           status.st_dev == device;
}

void look_in(const Place& place, std::vector<BallastFile>& found) {
    std::deque<std::pair<std::string, int>> folders{{"", 0}};
    int names = 0;
    while (!folders.empty() && names < kMostNames) {
        const auto [below, depth] = folders.front();
        folders.pop_front();
        UniqueFd fd = open_below(place.folder, below);
        const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd.valid() ? ::fdopendir(fd.get()) : nullptr, &::closedir);
        if (entries == nullptr) {
            continue; // not for this user, or gone
        }
        const int folder = fd.release(); // the stream owns it now
        while (const dirent* entry = ::readdir(entries.get())) {
            ++names;
            const std::string_view name = entry->d_name;
            const std::string path = below.empty() ? std::string(name) : below + "/" + std::string(name);
            if (is_ballast(folder, entry->d_name)) {
                found.push_back({place.folder, path});
            } else if (name != "." && name != ".." && depth < kDeepest && is_folder_of(folder, *entry, place.device)) {
                folders.emplace_back(path, depth + 1);
            }
        }
    }
}

} // namespace

std::string BallastFile::path() const {
    return mount == "/" ? mount + below : mount + "/" + below;
}

std::vector<BallastFile> find_ballast(std::string_view mountinfo) {
    std::vector<BallastFile> found;
    for (const Place& place : places_in(mountinfo)) {
        look_in(place, found);
    }
    return found;
}

Result<void> remove_ballast(const BallastFile& file) {
    const std::size_t slash = file.below.rfind('/');
    const std::string name = slash == std::string::npos ? file.below : file.below.substr(slash + 1);
    const UniqueFd folder =
        open_below(file.mount, std::string_view(file.below).substr(0, slash == std::string::npos ? 0 : slash));
    if (!folder.valid() || !is_ballast(folder.get(), name.c_str())) {
        return fail(ErrorKind::kTeardown, file.path() + " is not the ballast file any more that it was");
    }
    if (::unlinkat(folder.get(), name.c_str(), 0) != 0 || ::fsync(folder.get()) != 0) {
        return fail_errno(ErrorKind::kTeardown, "delete " + file.path(), errno);
    }
    return {};
}

} // namespace railbreak::injectors
