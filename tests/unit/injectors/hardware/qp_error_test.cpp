// Looking into processes for their queue pairs. What happens to a real queue pair is a guest test (software RoCE).
#include "injectors/hardware/qp_error.hpp"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace railbreak::injectors::hardware {
namespace {

/// A process that waits to be ended.
class Sleeper : public testing::Test {
protected:
    void SetUp() override {
        pid_ = ::fork();
        if (pid_ == 0) {
            ::pause();
            ::_exit(0);
        }
        ASSERT_GT(pid_, 0);
    }
    void TearDown() override { end(); }
    void end() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        pid_ = -1;
    }
    pid_t pid_ = -1;
};

TEST_F(Sleeper, AProcessWithoutVerbsHasNoQueuePairs) {
    const auto pairs = list_queue_pairs(pid_);
    ASSERT_TRUE(pairs) << pairs.error().to_line();
    EXPECT_TRUE(pairs->empty());
    EXPECT_EQ(force_queue_pairs_to_error(pid_).value_or(9), 0U);
}

TEST_F(Sleeper, AProcessThatIsGoneIsAnInputError) {
    const pid_t gone = pid_;
    end();
    const auto pairs = list_queue_pairs(gone);
    ASSERT_FALSE(pairs);
    EXPECT_EQ(pairs.error().kind(), ErrorKind::kInput) << pairs.error().to_line();
}

TEST(QueuePairs, AForeignProcessIsARefusal) {
    if (::geteuid() != 0) {
        const auto pairs = list_queue_pairs(1);
        ASSERT_FALSE(pairs);
        EXPECT_EQ(pairs.error().kind(), ErrorKind::kRefused);
        return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        constexpr uid_t kNobody = 65534;
        if (::setuid(kNobody) != 0) {
            ::_exit(2);
        }
        const auto pairs = list_queue_pairs(::getppid());
        ::_exit(!pairs && pairs.error().kind() == ErrorKind::kRefused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(QueuePairs, StatesHaveTheirNames) {
    EXPECT_EQ(to_string(QueuePairState::kReset), "reset");
    EXPECT_EQ(to_string(QueuePairState::kReadyToSend), "rts");
    EXPECT_EQ(to_string(QueuePairState::kError), "error");
}

} // namespace
} // namespace railbreak::injectors::hardware
