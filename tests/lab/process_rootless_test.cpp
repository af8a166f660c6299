// Faults on processes as a normal user, who may change no cgroup: what is left, and what is refused with a reason.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "tests/lab/process_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kNobody = 4242;

class RootlessProcess : public InjectorLab {
protected:
    void SetUp() override {
        prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards
        std::string pattern = ::testing::TempDir() + "railbreak-rootless-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        if (geteuid() == 0) {
            ASSERT_EQ(chown(folder_.c_str(), kNobody, kNobody), 0);
        }
    }

    /// Becomes root of a user namespace, which is a normal user to everybody else. Empty, or the reason.
    static std::string become_rootless() {
        if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
                               setresuid(kNobody, kNobody, kNobody) != 0)) {
            return strerror(errno);
        }
        prctl(PR_SET_DUMPABLE, 1); // or its own files in /proc would belong to somebody else
        const uid_t uid = geteuid();
        const gid_t gid = getegid();
        if (unshare(CLONE_NEWUSER) != 0) {
            return strerror(errno);
        }
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", uid);
        std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", gid);
        return geteuid() == 0 ? "" : "the ids of the user namespace cannot be set";
    }

    /// Runs the body in a child process that is rootless. Failures there are failures here.
    void rootless(const std::function<void()>& body) {
        constexpr int kNotPossible = 77;
        const pid_t child = fork();
        if (child == 0) {
            if (const std::string reason = become_rootless(); !reason.empty()) {
                std::printf("no user namespace: %s\n", reason.c_str());
                std::fflush(stdout);
                _exit(kNotPossible);
            }
            prctl(PR_SET_CHILD_SUBREAPER, 1); // of workers' children
            auto opened = open_host_ops();
            EXPECT_TRUE(opened.has_value());
            ops_ = opened ? std::move(*opened) : nullptr;
            if (ops_ != nullptr) {
                body();
            }
            std::fflush(stdout);
            _exit(HasFailure() ? 1 : 0);
        }
        const int status = wait_ended(child, kPatience);
        if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPossible) {
            GTEST_SKIP() << "this user may make no user namespace";
        }
        EXPECT_EQ(status, 0);
    }
};

TEST_F(RootlessProcess, IsPausedBySignalAndKilled) {
    rootless([&] {
        Worker worker;
        FaultKeeper keeper = open_keeper(*ops_, options());
        const auto paused = keeper.apply({.id = 1, .kind = FaultKind::kPause, .pid = worker.pid()});
        ASSERT_TRUE(paused.has_value()) << paused.error().to_line();
        EXPECT_EQ(paused->mechanism, "SIGSTOP");
        EXPECT_TRUE(worker.none_counts(false));
        ASSERT_TRUE(keeper.revert(1).has_value());
        EXPECT_TRUE(worker.all_count());
        const auto killed = keeper.apply({.id = 2, .kind = FaultKind::kKill, .pid = worker.pid()});
        ASSERT_TRUE(killed.has_value()) << killed.error().to_line();
        EXPECT_TRUE(keeper.close().has_value());
    });
}

TEST_F(RootlessProcess, GetsNoCpuQuotaAndIsToldWhy) {
    rootless([&] {
        Worker worker;
        FaultKeeper keeper = open_keeper(*ops_, options());
        const auto refused = keeper.apply({.id = 1, .kind = FaultKind::kCpu, .pid = worker.pid(), .cpu = 100'000});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
        EXPECT_THAT(refused.error().message(), HasSubstr("no permission to change"));
        EXPECT_TRUE(keeper.close().has_value());
    });
}

TEST_F(RootlessProcess, MayNotTouchAnotherUsersProcess) {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root has processes that are another user's here";
    }
    Worker worker;
    rootless([&] {
        FaultKeeper keeper = open_keeper(*ops_, options());
        for (const FaultKind kind : {FaultKind::kPause, FaultKind::kKill}) {
            const auto refused = keeper.apply({.id = 1, .kind = kind, .pid = worker.pid()});
            ASSERT_FALSE(refused.has_value());
            EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
            EXPECT_THAT(refused.error().to_line(), HasSubstr("may not be"));
        }
        EXPECT_THAT(keeper.open_faults(), IsEmpty());
        EXPECT_TRUE(keeper.close().has_value());
    });
    EXPECT_TRUE(worker.all_count());
}

} // namespace
} // namespace railbreak::injectors
