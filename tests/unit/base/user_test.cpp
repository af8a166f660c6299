// The user behind a user namespace, asked in a child that enters one.
#include "base/user.hpp"

#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace railbreak {
namespace {

constexpr uid_t kSomeUser = 4242;
constexpr int kNoNamespace = 77;

/// Becomes root of a user namespace and says by its exit code whether the user outside is still known.
[[noreturn]] void ask_inside() {
    if (::geteuid() == 0 && ::setuid(kSomeUser) != 0) {
        ::_exit(kNoNamespace);
    }
    ::prctl(PR_SET_DUMPABLE, 1); // a change of user takes /proc/self away from its process
    const uid_t before = ::geteuid();
    const std::string map = "0 " + std::to_string(before) + " 1\n";
    if (::unshare(CLONE_NEWUSER) != 0) {
        ::_exit(kNoNamespace);
    }
    const int file = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    if (::write(file, map.data(), map.size()) != static_cast<ssize_t>(map.size())) {
        ::_exit(kNoNamespace);
    }
    ::_exit(::geteuid() == 0 && outer_uid() == before ? 0 : 1);
}

TEST(OuterUid, IsTheEffectiveUserWithoutANamespace) {
    EXPECT_EQ(outer_uid(), ::geteuid());
}

TEST(OuterUid, LooksThroughANamespaceOfOneUser) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        ask_inside();
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoNamespace) {
        GTEST_SKIP() << "user namespaces are not allowed here";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace railbreak
