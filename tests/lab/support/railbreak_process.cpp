#include "tests/lab/support/railbreak_process.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace railbreak::tests {

namespace {

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string role_of(const std::filesystem::path& process) {
    std::string comm = read_file(process / "comm");
    comm.erase(comm.find_last_not_of('\n') + 1);
    if (comm.starts_with("rb-lab:")) {
        return "keeper"; // a fork of the controller, whose command line it still has
    }
    const std::string command = read_file(process / "cmdline");
    const std::size_t first = command.find('\0');
    const std::size_t second = command.find('\0', first + 1);
    if (first != std::string::npos && second != std::string::npos && command.find("railbreak") < first) {
        return command.substr(first + 1, second - first - 1);
    }
    return comm;
}

bool is_pid(const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

} // namespace

TemporaryFolder::TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "railbreak-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

RailbreakProcess::RailbreakProcess(const std::filesystem::path& home, const std::vector<std::string>& arguments,
                                   const std::string& program) {
    std::vector<std::string> argv{"/usr/bin/env", "RAILBREAK_STATE_DIR=" + (home / "state").string(),
                                  "RAILBREAK_DB=" + (home / "runs.db").string(), program};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Result<launch::Child> child = launch::spawn({.argv = argv});
    if (!child) {
        ADD_FAILURE() << child.error().to_line();
        return;
    }
    child_ = std::move(*child);
    child_.stdin_fd.reset();
    for (const int fd : {child_.stdout_fd.get(), child_.stderr_fd.get()}) {
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
}

RailbreakProcess::~RailbreakProcess() {
    if (child_.pid > 0 && !launch::wait_for(child_, Deadline::after(Nanoseconds::zero()))) {
        launch::send_signal(child_, SIGKILL);
        (void)launch::wait_for(child_, Deadline::after(std::chrono::seconds(5)));
    }
}

void RailbreakProcess::read_output(Nanoseconds budget) {
    std::array<pollfd, 2> fds{{{child_.stdout_fd.get(), POLLIN, 0}, {child_.stderr_fd.get(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), Deadline::after(budget).poll_timeout_ms()) <= 0) {
        return;
    }
    std::array<char, 4096> buffer{};
    for (std::size_t i = 0; i < fds.size(); ++i) {
        UniqueFd& fd = i == 0 ? child_.stdout_fd : child_.stderr_fd;
        ssize_t count = 0;
        while (fd.valid() && (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
            (i == 0 ? out_ : err_).append(buffer.data(), static_cast<std::size_t>(count));
        }
        if (count == 0) {
            fd.reset();
        }
    }
}

bool RailbreakProcess::wait_for(const std::string& output, const UniqueFd& from, const std::string& text,
                                Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    while (output.find(text) == std::string::npos) {
        if (deadline.passed() || !from.valid()) {
            return false;
        }
        read_output(std::min<Nanoseconds>(deadline.left(), std::chrono::milliseconds(200)));
    }
    return true;
}

bool RailbreakProcess::wait_for_stderr(const std::string& text, Nanoseconds patience) {
    return wait_for(err_, child_.stderr_fd, text, patience);
}

bool RailbreakProcess::wait_for_stdout(const std::string& text, Nanoseconds patience) {
    return wait_for(out_, child_.stdout_fd, text, patience);
}

std::optional<Finished> RailbreakProcess::finish(Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    while (child_.stdout_fd.valid() || child_.stderr_fd.valid()) {
        if (deadline.passed()) {
            return std::nullopt;
        }
        read_output(std::min<Nanoseconds>(deadline.left(), std::chrono::milliseconds(200)));
    }
    std::optional<launch::ExitStatus> status = launch::wait_for(child_, deadline);
    if (!status) {
        return std::nullopt;
    }
    child_.pid = -1;
    return Finished{*status, out_, err_};
}

Finished run_railbreak(const std::filesystem::path& home, const std::vector<std::string>& arguments,
                       Nanoseconds patience, const std::string& program) {
    RailbreakProcess process(home, arguments, program);
    std::optional<Finished> finished = process.finish(patience);
    return finished ? std::move(*finished) : Finished{{false, -1}, "", "did not end: " + process.err()};
}

std::vector<RunProcess> processes_of(const std::filesystem::path& home) {
    const std::string mark = "RAILBREAK_STATE_DIR=" + (home / "state").string();
    std::vector<RunProcess> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        if (is_pid(entry.path().filename().string()) &&
            read_file(entry.path() / "environ").find(mark) != std::string::npos) {
            found.push_back({static_cast<pid_t>(std::stol(entry.path().filename().string())), role_of(entry.path())});
        }
    }
    return found;
}

std::vector<RunProcess> wait_until_none(const std::filesystem::path& home, Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    std::vector<RunProcess> left = processes_of(home);
    while (!left.empty() && !deadline.passed()) {
        (void)::poll(nullptr, 0, 20); // processes that are not ours have nothing to wait on
        left = processes_of(home);
    }
    return left;
}

bool wait_until_stopped(pid_t pid, Nanoseconds patience) {
    const std::string status = "/proc/" + std::to_string(pid) + "/status";
    const Deadline deadline = Deadline::after(patience);
    while (read_file(status).find("State:\tT") == std::string::npos) {
        if (deadline.passed()) {
            return false;
        }
        (void)::poll(nullptr, 0, 1); // it is not our child, whose stop could be waited for
    }
    return true;
}

} // namespace railbreak::tests
