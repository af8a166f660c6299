#include "harness/lab/state.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/user.hpp"

namespace railbreak::lab {
namespace {

using nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr std::string_view kSuffix = ".lab.json";
constexpr int kLockRetryMilliseconds = 2;

json process_to_json(const ProcessId& process) {
    return {{"pid", process.pid}, {"start_ticks", process.start_ticks}};
}

ProcessId process_from_json(const json& value) {
    return {value.at("pid").get<pid_t>(), value.at("start_ticks").get<std::uint64_t>()};
}

json hosts_to_json(const LabSpec& spec) {
    json hosts = json::array();
    for (const auto& host : hosts_of(spec)) {
        json nics = json::array();
        for (const auto& nic : host.nics) {
            nics.push_back(
                {{"name", nic.name}, {"mac", nic.mac}, {"address", nic.address}, {"switch_port", nic.switch_port}});
        }
        hosts.push_back({{"name", host.name}, {"nics", std::move(nics)}});
    }
    return hosts;
}

std::string file_name(std::string_view name) {
    return fmt::format("{}{}", name, kSuffix);
}

std::string read_all(int fd) {
    std::string text;
    char part[4096];
    ssize_t size = 0;
    while ((size = ::read(fd, part, sizeof part)) > 0) {
        text.append(part, static_cast<std::size_t>(size));
    }
    return text;
}

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return false;
        }
        text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return true;
}

} // namespace

std::string read_boot_id() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id;
}

std::string to_json(const LabRecord& record) {
    json namespaces = json::array();
    for (const auto& id : record.namespaces) {
        namespaces.push_back({{"inode", id.inode}, {"cookie", id.cookie}});
    }
    const json value = {
        {"version", kFormatVersion},
        {"name", record.spec.name},
        {"hosts", record.spec.hosts},
        {"nics_per_host", record.spec.nics_per_host},
        {"rate_bits_per_s", record.spec.rate.bits_per_s()},
        {"mtu_bytes", record.spec.mtu_bytes},
        {"kept", record.kept},
        {"owner", process_to_json(record.owner)},
        {"keeper", process_to_json(record.keeper)},
        {"created_at_ns", record.created_at.count()},
        {"boot_id", record.boot_id},
        {"namespaces", std::move(namespaces)},
        {"cluster", hosts_to_json(record.spec)},
    };
    return value.dump(2) + "\n";
}

std::optional<LabRecord> parse_record(std::string_view text) {
    try {
        const json value = json::parse(text);
        if (value.at("version").get<int>() != kFormatVersion) {
            return std::nullopt;
        }
        LabRecord record;
        record.spec.name = value.at("name").get<std::string>();
        record.spec.hosts = value.at("hosts").get<unsigned>();
        record.spec.nics_per_host = value.at("nics_per_host").get<unsigned>();
        record.spec.rate = BitRate::bits_per_s(value.at("rate_bits_per_s").get<std::uint64_t>());
        record.spec.mtu_bytes = value.at("mtu_bytes").get<unsigned>();
        record.kept = value.at("kept").get<bool>();
        record.owner = process_from_json(value.at("owner"));
        record.keeper = process_from_json(value.at("keeper"));
        record.created_at = Nanoseconds(value.at("created_at_ns").get<std::int64_t>());
        record.boot_id = value.at("boot_id").get<std::string>();
        for (const auto& id : value.at("namespaces")) {
            record.namespaces.push_back({id.at("inode").get<std::uint64_t>(), id.at("cookie").get<std::uint64_t>()});
        }
        return check_spec(record.spec) ? std::optional(std::move(record)) : std::nullopt;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

std::string state_folder() {
    if (const char* chosen = std::getenv("RAILBREAK_STATE_DIR"); chosen != nullptr && *chosen != '\0') {
        return chosen;
    }
    const uid_t uid = outer_uid();
    if (uid == 0) {
        return "/run/railbreak";
    }
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/') {
        return fmt::format("{}/railbreak", runtime);
    }
    return fmt::format("/tmp/railbreak-{}", uid);
}

namespace {

/// A folder that cannot be used. One that the user has named is the user's to put right.
tl::unexpected<Error> unusable_folder(std::string_view what, const std::string& path, int errno_value) {
    const char* chosen = std::getenv("RAILBREAK_STATE_DIR");
    const bool named = chosen != nullptr && path == chosen;
    auto failure = fail_errno(named ? ErrorKind::kInput : ErrorKind::kHarness,
                              fmt::format("{} the state folder {}", what, path), errno_value);
    return fail(std::move(failure.value())
                    .advise(named ? "RAILBREAK_STATE_DIR must name a folder, or one to make in a folder that is there"
                                  : "name another in RAILBREAK_STATE_DIR"));
}

} // namespace

Result<StateFolder> StateFolder::open(const std::string& path) {
    if (path.empty() || path.front() != '/') {
        return fail(Error(ErrorKind::kInput, fmt::format("the state folder \"{}\" is no absolute path", path))
                        .advise("set RAILBREAK_STATE_DIR to a path that starts with a slash"));
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return unusable_folder("make", path, errno);
    }
    UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts {};
    if (!folder.valid() || ::fstat(folder.get(), &facts) != 0) {
        return unusable_folder("open", path, errno);
    }
    // In /tmp anybody could have made it first, and what is read from it names processes to end.
    if (facts.st_uid != ::geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fail(Error(ErrorKind::kRefused, fmt::format("the state folder {} is not this user's alone", path))
                        .with("owner_uid", std::to_string(facts.st_uid))
                        .with("mode", fmt::format("{:o}", facts.st_mode & 07777U))
                        .advise("remove it, or name another in RAILBREAK_STATE_DIR"));
    }
    return StateFolder(std::move(folder));
}

Result<void> StateFolder::lock(const Deadline& deadline) {
    while (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "lock the state folder", errno);
        }
        if (deadline.passed()) {
            return fail(ErrorKind::kRefused, "another railbreak process has kept the state folder locked");
        }
        ::poll(nullptr, 0, kLockRetryMilliseconds); // flock() has no timeout of its own
    }
    return {};
}

void StateFolder::unlock() {
    ::flock(folder_.get(), LOCK_UN);
}

Result<void> StateFolder::write(const LabRecord& record) {
    const auto target = file_name(record.spec.name);
    const auto draft = fmt::format(".{}.{}", target, ::getpid()); // remove_abandoned_drafts() knows this form
    const UniqueFd file(
        ::openat(folder_.get(), draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid() || !write_all(file.get(), to_json(record)) ||
        ::renameat(folder_.get(), draft.c_str(), folder_.get(), target.c_str()) != 0) {
        const int error = errno;
        ::unlinkat(folder_.get(), draft.c_str(), 0);
        return fail_errno(ErrorKind::kHarness, fmt::format("write the record of the lab {}", record.spec.name), error);
    }
    return {};
}

std::optional<LabRecord> StateFolder::read(std::string_view name) const {
    // Whoever put a pipe or a device here must not make every command wait.
    const UniqueFd file(
        ::openat(folder_.get(), file_name(name).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat facts {};
    if (!file.valid() || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return std::nullopt;
    }
    auto record = parse_record(read_all(file.get()));
    return record && record->spec.name == name ? record : std::nullopt;
}

void StateFolder::remove(std::string_view name) {
    ::unlinkat(folder_.get(), file_name(name).c_str(), 0);
}

std::vector<std::string> StateFolder::files() const {
    std::vector<std::string> found;
    UniqueFd copy(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy.valid() ? ::fdopendir(copy.get()) : nullptr, &::closedir);
    if (entries == nullptr) {
        return found;
    }
    static_cast<void>(copy.release()); // the stream owns it now
    while (const dirent* entry = ::readdir(entries.get())) {
        found.emplace_back(entry->d_name);
    }
    return found;
}

std::vector<std::string> StateFolder::names() const {
    std::vector<std::string> found;
    for (const std::string_view name : files()) {
        if (name.front() != '.' && name.ends_with(kSuffix)) {
            found.emplace_back(name.substr(0, name.size() - kSuffix.size()));
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

void StateFolder::remove_abandoned_drafts() {
    for (const auto& name : files()) {
        const auto mark = name.rfind(fmt::format("{}.", kSuffix));
        if (name.front() != '.' || mark == std::string::npos) {
            continue;
        }
        pid_t writer = 0;
        const char* digits = name.c_str() + mark + kSuffix.size() + 1;
        const char* end = name.c_str() + name.size();
        const auto read = std::from_chars(digits, end, writer);
        if (read.ec == std::errc() && read.ptr == end && identify_process(writer).pid == 0) {
            ::unlinkat(folder_.get(), name.c_str(), 0);
        }
    }
}

} // namespace railbreak::lab
