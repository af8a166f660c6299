#include "injectors/process_control.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "injectors/host_files.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

// Fields after the name, counted from the state (field 3 of proc(5)).
constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 1;
constexpr std::size_t kFlags = 6;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStart = 19;
constexpr std::uint32_t kKernelThread = 0x0020'0000; ///< PF_KTHREAD of the kernel's sched.h

template <class Integer> bool to_number(std::string_view text, Integer& value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size();
}

/// Takes everything up to `separator` off the front of `text`.
std::string_view take_word(std::string_view& text, char separator) {
    const std::size_t end = text.find(separator);
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return word;
}

/// "Uid:\treal\teffective\tsaved\tfile system".
bool effective_uid(std::string_view status, std::uint32_t& uid) {
    while (!status.empty()) {
        std::string_view line = take_word(status, '\n');
        if (take_word(line, '\t') == "Uid:") {
            (void)take_word(line, '\t');
            return to_number(take_word(line, '\t'), uid);
        }
    }
    return false;
}

/// Lines "number:controllers:path"; cgroup v2 has no controllers there (cgroups(7)).
std::vector<std::pair<std::string, std::string>> cgroup_lines(std::string_view text) {
    std::vector<std::pair<std::string, std::string>> lines;
    while (!text.empty()) {
        std::string_view line = take_word(text, '\n');
        (void)take_word(line, ':');
        const std::string_view controllers = take_word(line, ':');
        lines.emplace_back(controllers, line);
    }
    return lines;
}

/// A process may end between two of its files.
bool ended(const Error& error) {
    const int code = kernel_errno(error);
    return code == ENOENT || code == ESRCH;
}

} // namespace

Result<ProcessRecord> parse_stat(std::string_view line) {
    const std::size_t open = line.find(" (");
    const std::size_t close = line.rfind(") ");
    ProcessRecord record;
    if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
        !to_number(line.substr(0, open), record.identity.pid)) {
        return fail(ErrorKind::kHarness, "a line of /proc/PID/stat has another form than expected");
    }
    record.identity.command = line.substr(open + 2, close - open - 2);
    std::string_view rest = line.substr(close + 2);
    std::array<std::string_view, kStart + 1> fields{};
    for (std::string_view& field : fields) {
        field = take_word(rest, ' ');
    }
    std::uint32_t flags = 0;
    std::uint32_t threads = 0;
    if (fields[kState].size() != 1 || !to_number(fields[kParent], record.parent) || !to_number(fields[kFlags], flags) ||
        !to_number(fields[kThreads], threads) || !to_number(fields[kStart], record.identity.start_ticks)) {
        return fail(ErrorKind::kHarness, "a line of /proc/PID/stat has another form than expected");
    }
    record.state = fields[kState].front();
    if (record.state == 'Z' && threads > 1) {
        record.state = '?';
    }
    record.kernel_thread = (flags & kKernelThread) != 0;
    return record;
}

namespace {

/// What /proc does not show may be hidden (hidepid), and be there all the same.
Result<std::optional<ProcessRecord>> not_shown(std::int32_t pid) {
    if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH)) {
        return std::nullopt;
    }
    return fail(Error(ErrorKind::kHarness, fmt::format("process {} is there, but /proc does not show it", pid))
                    .with("pid", std::to_string(pid))
                    .advise("Run as root: /proc is mounted so that it hides the processes of others."));
}

} // namespace

Result<std::optional<ProcessRecord>> read_process(std::int32_t pid) {
    const std::string folder = fmt::format("/proc/{}", pid);
    const auto stat = host_files::read_file(folder + "/stat");
    const auto status = host_files::read_file(folder + "/status");
    const auto cgroups = host_files::read_file(folder + "/cgroup");
    for (const auto* text : {&stat, &status, &cgroups}) {
        if (!*text) {
            return ended(text->error()) ? not_shown(pid) : tl::unexpected(text->error());
        }
    }
    auto record = parse_stat(*stat);
    if (!record) {
        return tl::unexpected(record.error());
    }
    if (!effective_uid(*status, record->uid)) {
        return fail(ErrorKind::kHarness, folder + "/status names no user");
    }
    record->cgroups = cgroup_lines(*cgroups);
    return record;
}

Result<void> send_signal(const ProcessIdentity& process, int signal) {
    const std::string what =
        signal == 0 ? fmt::format("signal the process {}", process.pid)
                    : fmt::format("send {} to the process {}",
                                  sigabbrev_np(signal) == nullptr ? "a signal" : sigabbrev_np(signal), process.pid);
    const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    if (!pidfd.valid()) {
        return fail_errno(ErrorKind::kHarness, what, errno);
    }
    const auto stat = host_files::read_file(fmt::format("/proc/{}/stat", process.pid));
    if (!stat && !ended(stat.error())) {
        return tl::unexpected(stat.error());
    }
    const auto found = stat ? parse_stat(*stat) : fail(ErrorKind::kHarness, "");
    if (!found || found->identity.start_ticks != process.start_ticks) {
        return fail_errno(ErrorKind::kHarness, what, ESRCH);
    }
    if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) != 0) {
        return fail_errno(ErrorKind::kHarness, what, errno);
    }
    return {};
}

} // namespace railbreak::injectors
