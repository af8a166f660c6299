// Runs these tests inside a simulated InfiniBand fabric: starts ibsim on a small fabric, then this program again with
// ibsim's library in place of the management nodes, and ends ibsim. Where ibsim is not installed the tests that need
// it skip.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace {

using railbreak::Deadline;
using railbreak::UniqueFd;

constexpr const char* kPreload = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so";
constexpr const char* kSimulator = "/usr/bin/ibsim";
constexpr const char* kInside = "RAILBREAK_IBSIM";

/// Four hosts on one switch.
constexpr const char* kFabric = "Switch 8 \"Switch1\"\n[1] \"Hca1\"[1]\n[2] \"Hca2\"[1]\n[3] \"Hca3\"[1]\n"
                                "[4] \"Hca4\"[1]\n\n"
                                "Hca 2 \"Hca1\"\n[1] \"Switch1\"[1]\n\n"
                                "Hca 2 \"Hca2\"\n[1] \"Switch1\"[2]\n\n"
                                "Hca 2 \"Hca3\"\n[1] \"Switch1\"[3]\n\n"
                                "Hca 2 \"Hca4\"\n[1] \"Switch1\"[4]\n";

pid_t start(const std::vector<std::string>& command, int stdout_fd) {
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string& word : command) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    if (stdout_fd >= 0) {
        ::posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
        ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    pid_t pid = -1;
    const int error = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? pid : -1;
}

int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Reads the simulator's output until it says that it is ready.
bool becomes_ready(int fd) {
    const auto deadline = Deadline::after(std::chrono::seconds(20));
    std::string seen;
    std::array<char, 512> buffer{};
    while (seen.find("ready") == std::string::npos) {
        pollfd waiter{fd, POLLIN, 0};
        if (::poll(&waiter, 1, deadline.poll_timeout_ms()) <= 0) {
            return false;
        }
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got <= 0) {
            return false;
        }
        seen.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return true;
}

int run_in_fabric(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
    std::ofstream(folder / "fabric") << kFabric;
    // Its sockets are found by this name, so that two runs do not meet.
    const std::string name = "railbreak-" + std::to_string(::getpid());
    ::setenv("IBSIM_SOCKNAME", name.c_str(), 1);
    ::setenv("SIM_HOST", "Hca1", 1);
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return 1;
    }
    const UniqueFd output(ends[0]);
    UniqueFd simulators_end(ends[1]);
    const pid_t simulator = start({kSimulator, "-s", "-n", folder / "fabric"}, simulators_end.get());
    simulators_end.reset();
    if (simulator < 0 || !becomes_ready(output.get())) {
        std::fprintf(stderr, "ibsim did not start\n");
        return 1;
    }
    ::setenv(kInside, "1", 1);
    ::setenv("LD_PRELOAD", kPreload, 1);
    // Under AddressSanitizer a preloaded library comes before the sanitizer's own, and this one copies more than it has
    // (memcpy in its read); accesses of railbreak's code are checked all the same.
    ::setenv("ASAN_OPTIONS", "verify_asan_link_order=0:replace_intrin=0", 1);
    const pid_t child = start(arguments, -1);
    const int status = child > 0 ? wait_for(child) : 1;
    ::kill(simulator, SIGTERM);
    static_cast<void>(wait_for(simulator));
    return status;
}

} // namespace

int main(int argc, char** argv) {
    const bool inside = std::getenv(kInside) != nullptr;
    // A network namespace of its own: for the names of the simulator's sockets, and for tests that break NICs.
    if (!inside && ::unshare(CLONE_NEWNET) == 0) {
        ::setenv("RAILBREAK_PRIVATE_NETNS", "1", 1);
    }
    const bool installed = ::access(kPreload, R_OK) == 0 && ::access(kSimulator, X_OK) == 0;
    const std::vector<std::string> flags(argv + 1, argv + argc); // before GoogleTest takes its own out
    testing::InitGoogleTest(&argc, argv);
    if (inside || !installed || testing::GTEST_FLAG(list_tests)) {
        return RUN_ALL_TESTS();
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "railbreak-ibsim-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        return 1;
    }
    std::vector<std::string> arguments{std::filesystem::read_symlink("/proc/self/exe")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto former = std::filesystem::current_path();
    std::filesystem::current_path(pattern); // the preloaded library makes its files in the working folder
    const int status = run_in_fabric(arguments, pattern);
    std::filesystem::current_path(former);
    std::filesystem::remove_all(pattern);
    return status;
}
