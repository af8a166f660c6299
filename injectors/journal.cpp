#include "injectors/journal.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

namespace {

// Record types, the first byte of every payload.
constexpr std::uint8_t kHeader = 1;
constexpr std::uint8_t kIntent = 2;
constexpr std::uint8_t kMark = 3;
/// Of the format of this file and of encode_entry() and the facets' former states: one more with every change of any.
constexpr std::uint8_t kVersion = 3;
constexpr off_t kLargest = off_t{256} << 20; ///< far above what a run writes; a larger file is none of ours
constexpr std::string_view kSuffix = ".journal";

std::string header_payload(std::string_view run_id, std::string_view host_name, std::string_view boot_id) {
    Encoder out;
    out.put(kHeader);
    out.put(kVersion);
    out.put_string(run_id);
    out.put_string(host_name);
    out.put_string(boot_id);
    return out.take();
}

std::string intent_payload(const JournalEntry& entry) {
    Encoder out;
    out.put(kIntent);
    out.put_string(encode_entry(entry));
    return out.take();
}

bool apply_mark(JournalContents& contents, Decoder& in) {
    const auto mark = in.get<std::uint8_t>();
    const auto id = in.get<std::int32_t>();
    (void)in.get<std::int64_t>(); // when: for people who read the file
    if (!in.finished() || mark > static_cast<std::uint8_t>(JournalMark::kRestored)) {
        return false;
    }
    // An id may be used again after it was restored: a mark belongs to its latest intent.
    const auto fault = std::find_if(contents.faults.rbegin(), contents.faults.rend(),
                                    [&](const JournalledFault& each) { return each.entry.request.id == id; });
    if (fault == contents.faults.rend()) {
        return true;
    }
    switch (static_cast<JournalMark>(mark)) {
    case JournalMark::kApplied: fault->applied = true; break;
    case JournalMark::kReverted: fault->reverted = true; break;
    case JournalMark::kRestored: fault->restored = true; break;
    }
    return true;
}

bool apply_record(JournalContents& contents, std::string_view payload) {
    Decoder in(payload);
    const auto type = in.get<std::uint8_t>();
    if (type == kHeader) {
        const auto version = in.get<std::uint8_t>();
        if (in.ok() && version != kVersion) {
            contents.other_version = version;
            return false;
        }
        contents.run_id = in.get_string();
        contents.host_name = in.get_string();
        contents.boot_id = in.get_string();
        return in.finished();
    }
    if (type == kIntent) {
        auto entry = decode_entry(in.get_string());
        if (!in.finished() || !entry) {
            return false;
        }
        contents.faults.push_back({std::move(*entry), false, false, false});
        return true;
    }
    return type == kMark && apply_mark(contents, in);
}

std::string file_word(std::string_view text) {
    std::string word;
    for (const char c : text.substr(0, 64)) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        word.push_back(plain ? c : '_');
    }
    return word.empty() ? "_" : word;
}

Result<std::string> read_whole(int fd, const std::string& path) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > kLargest) {
        return fail(Error(ErrorKind::kTeardown, path + " is no journal: no regular file, or too large for one")
                        .with("journal", path)
                        .advise("Look at it, and move it away."));
    }
    std::string bytes;
    char buffer[1 << 16];
    for (;;) {
        const ssize_t got = pread(fd, buffer, sizeof buffer, static_cast<off_t>(bytes.size()));
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return fail_errno(ErrorKind::kHarness, "read the journal " + path, errno);
        }
        if (got == 0) {
            return bytes;
        }
        bytes.append(buffer, static_cast<std::size_t>(got));
    }
}

Result<void> lock(int fd, const std::string& path) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) {
            return fail(Error(ErrorKind::kRefused, "the journal " + path + " belongs to a run that is alive")
                            .with("busy", path));
        }
        return fail_errno(ErrorKind::kHarness, "lock the journal " + path, errno);
    }
    return {};
}

/// Between open and lock another process may have recovered and deleted the file: then the lock is worthless.
bool still_there(int fd, const std::string& path) {
    struct stat by_fd {};
    struct stat by_path {};
    return fstat(fd, &by_fd) == 0 && stat(path.c_str(), &by_path) == 0 && by_fd.st_ino == by_path.st_ino &&
           by_fd.st_dev == by_path.st_dev;
}

Result<void> check_owner(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0) {
        return fail_errno(ErrorKind::kHarness, "look at the state folder " + path, errno);
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fail(Error(ErrorKind::kRefused, "the state folder " + path + " belongs to, or can be written by, others")
                        .with("folder", path)
                        .advise("Set RAILBREAK_STATE_DIR to a folder of your own."));
    }
    return {};
}

} // namespace

std::vector<JournalEntry> JournalContents::open_entries() const {
    std::vector<JournalEntry> open;
    for (auto fault = faults.rbegin(); fault != faults.rend(); ++fault) {
        if (!fault->restored) {
            open.push_back(fault->entry);
        }
    }
    return open;
}

JournalContents parse_journal(std::string_view bytes) {
    JournalContents contents;
    for (;;) {
        const std::string_view rest = bytes.substr(contents.valid_bytes);
        if (rest.empty()) {
            return contents;
        }
        const FrameView frame = read_frame(rest);
        if (frame.status != FrameStatus::kWhole || !apply_record(contents, frame.payload)) {
            contents.torn = !contents.other_version.has_value();
            return contents;
        }
        contents.valid_bytes += frame.size;
    }
}

Result<JournalContents> read_journal_file(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open the journal " + path, errno);
    }
    auto bytes = read_whole(fd.get(), path);
    if (!bytes) {
        return fail(std::move(bytes.error()));
    }
    return parse_journal(*bytes);
}

tl::unexpected<Error> other_version(const std::string& path, std::uint8_t version) {
    return fail(Error(ErrorKind::kTeardown, fmt::format("the journal {} was written by another version of railbreak "
                                                        "(format {}; this one knows {})",
                                                        path, version, kVersion))
                    .with("journal", path)
                    .advise("Run `railbreak recover` of that version."));
}

std::vector<std::string> journal_folder_candidates() {
    const char* chosen = std::getenv("RAILBREAK_STATE_DIR"); // NOLINT(concurrency-mt-unsafe): read at start
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");    // NOLINT(concurrency-mt-unsafe): read at start
    std::vector<std::string> candidates;
    if (chosen != nullptr && *chosen != '\0') {
        candidates.emplace_back(chosen);
    } else {
        // Inside of a namespace every user is root: by that name they would share one folder, or be refused it, and
        // recover, which runs outside, would look elsewhere.
        const uid_t user = outer_uid();
        if (user == 0) {
            candidates.emplace_back("/run/railbreak/journal");
        }
        if (runtime != nullptr && *runtime != '\0') {
            candidates.push_back(std::string(runtime) + "/railbreak/journal");
        }
        candidates.push_back("/tmp/railbreak-" + std::to_string(user) + "/journal");
    }
    return candidates;
}

Result<std::string> default_journal_folder(HostOps& ops) {
    Result<std::string> last = fail(ErrorKind::kInternal, "no state folder");
    for (const std::string& path : journal_folder_candidates()) {
        auto made = ops.make_folder(path).and_then([&] { return check_owner(path); });
        if (made && access(path.c_str(), W_OK) == 0) {
            // In /tmp anyone may have made the parent first.
            if (path.starts_with("/tmp/")) {
                made = check_owner(path.substr(0, path.rfind('/')));
            }
            if (made) {
                return path;
            }
        }
        last = made ? fail_errno(ErrorKind::kHarness, "write to the state folder " + path, EACCES)
                    : fail(std::move(made.error()));
    }
    return last;
}

std::string mark_frame(JournalMark mark, std::int32_t id, Nanoseconds when) {
    Encoder out;
    out.put(kMark);
    out.put(static_cast<std::uint8_t>(mark));
    out.put(id);
    out.put(when.count());
    return make_frame(out.take());
}

Result<std::vector<std::string>> list_journals(const std::string& folder) {
    std::vector<std::string> paths;
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) {
        if (errno == ENOENT) {
            return paths;
        }
        return fail_errno(ErrorKind::kHarness, "list the state folder " + folder, errno);
    }
    while (const dirent* entry = readdir(directory)) { // NOLINT(concurrency-mt-unsafe): our own stream
        const std::string_view name = entry->d_name;
        struct stat status {};
        const bool there = fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (name.ends_with(kSuffix) && there && S_ISREG(status.st_mode)) { // a journal is never anything else
            paths.push_back(folder + "/" + std::string(name));
        }
    }
    closedir(directory);
    std::sort(paths.begin(), paths.end());
    return paths;
}

Result<Journal> Journal::create(HostOps& ops, const std::string& folder, std::string_view run_id,
                                std::string_view host_name) {
    auto boot_id = ops.boot_id();
    if (!boot_id) {
        return fail(std::move(boot_id.error()));
    }
    if (auto made = ops.make_folder(folder); !made) {
        return fail(std::move(made.error()));
    }
    const std::string path = folder + "/" + file_word(run_id) + "." + file_word(host_name) + "." +
                             std::to_string(ops.boottime().count()) + "-" + std::to_string(getpid()) +
                             std::string(kSuffix);
    // The file gets its name last, locked and written: a recovery that runs at the same time (the agents of a lab start
    // together) finds either nothing or a journal whose owner lives.
    auto fd = ops.create_file(folder);
    if (!fd) {
        return fail(std::move(fd.error()));
    }
    Journal journal(ops, std::move(*fd), path);
    auto ready =
        lock(journal.fd(), path)
            .and_then([&] { return ops.append(journal.fd(), make_frame(header_payload(run_id, host_name, *boot_id))); })
            .and_then([&] { return ops.sync_file(journal.fd()); })
            .and_then([&] { return ops.publish_file(journal.fd(), path); })
            .and_then([&] { return ops.sync_folder(folder); });
    if (!ready) {
        return fail(std::move(ready.error()));
    }
    return journal;
}

Result<Journal> Journal::adopt(HostOps& ops, const std::string& path) {
    UniqueFd fd(open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid()) {
        return fail_errno(ErrorKind::kHarness, "open the journal " + path, errno);
    }
    Journal journal(ops, std::move(fd), path);
    if (auto locked = lock(journal.fd(), path); !locked) {
        return fail(std::move(locked.error()));
    }
    if (!still_there(journal.fd(), path)) {
        return fail_errno(ErrorKind::kHarness, "open the journal " + path, ENOENT);
    }
    auto bytes = read_whole(journal.fd(), path);
    if (!bytes) {
        return fail(std::move(bytes.error()));
    }
    journal.contents_ = parse_journal(*bytes);
    if (journal.contents_.other_version) {
        return other_version(path, *journal.contents_.other_version);
    }
    if (journal.contents_.torn) {
        // Cut it, or the marks appended behind it would never be read.
        if (auto cut = ops.truncate_file(journal.fd(), journal.contents_.valid_bytes); !cut) {
            return fail(std::move(cut.error()));
        }
    }
    return journal;
}

std::string Journal::folder() const {
    return path_.substr(0, path_.rfind('/'));
}

Result<void> Journal::intent(const JournalEntry& entry) {
    return ops_->append(fd(), make_frame(intent_payload(entry)))
        .and_then([&] { return ops_->sync_file(fd()); })
        .and_then([&] { return ops_->sync_folder(folder()); });
}

Result<void> Journal::mark(JournalMark mark, std::int32_t id) {
    return ops_->append(fd(), mark_frame(mark, id, ops_->boottime())).and_then([&] { return ops_->sync_file(fd()); });
}

Result<void> Journal::remove() {
    return ops_->remove_file(path_).and_then([&] { return ops_->sync_folder(folder()); });
}

} // namespace railbreak::injectors
