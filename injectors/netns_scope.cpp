#include "injectors/netns_scope.hpp"

#include <cerrno>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>

namespace railbreak::injectors {

namespace {

bool is_own(int netns_fd) {
    struct stat own {};
    struct stat asked {};
    return ::stat("/proc/thread-self/ns/net", &own) == 0 && ::fstat(netns_fd, &asked) == 0 &&
           own.st_dev == asked.st_dev && own.st_ino == asked.st_ino;
}

} // namespace

Result<void> run_in_netns(int netns_fd, const std::function<void()>& body) {
    if (is_own(netns_fd)) {
        body();
        return {};
    }
    Result<void> entered;
    try {
        std::thread helper([&entered, &body, netns_fd] {
            if (::setns(netns_fd, CLONE_NEWNET) != 0) {
                const int error = errno;
                entered = fail_errno(error == EPERM ? ErrorKind::kRefused : ErrorKind::kHarness,
                                     "enter a network namespace", error);
                return;
            }
            body();
        });
        helper.join();
    } catch (const std::system_error& error) {
        return fail(ErrorKind::kHarness, fmt::format("cannot start a thread: {}", error.what()));
    }
    return entered;
}

} // namespace railbreak::injectors
