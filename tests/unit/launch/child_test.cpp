#include "harness/launch/child.hpp"

#include <array>
#include <csignal>

#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace railbreak::launch {
namespace {

constexpr Nanoseconds kPatience = std::chrono::seconds(20);

std::string read_all(int fd) {
    std::string text;
    std::array<char, 256> buffer{};
    for (ssize_t count = 0; (count = ::read(fd, buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

TEST(Child, SpeaksOverItsStandardStreamsAndEnds) {
    Result<Child> child = spawn({.argv = {"/bin/cat"}});
    ASSERT_TRUE(child) << child.error().to_line();
    ASSERT_EQ(::write(child->stdin_fd.get(), "ping", 4), 4);
    child->stdin_fd.reset();
    EXPECT_EQ(read_all(child->stdout_fd.get()), "ping");
    const std::optional<ExitStatus> status = wait_for(*child, Deadline::after(kPatience));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->describe(), "exit code 0");
}

TEST(Child, AProgramThatDoesNotExistIsAnErrorThatNamesIt) {
    const Result<Child> child = spawn({.argv = {"/nonexistent/program"}});
    ASSERT_FALSE(child);
    EXPECT_NE(child.error().message().find("/nonexistent/program"), std::string::npos);
    EXPECT_NE(child.error().to_line().find("ENOENT"), std::string::npos);
}

TEST(Child, AnArgumentIsNeverReadByAShell) {
    Result<Child> child = spawn({.argv = {"/bin/echo", "$(id); `id` > x"}});
    ASSERT_TRUE(child) << child.error().to_line();
    EXPECT_EQ(read_all(child->stdout_fd.get()), "$(id); `id` > x\n");
    EXPECT_TRUE(wait_for(*child, Deadline::after(kPatience)));
}

TEST(Child, WaitingEndsAtTheDeadlineAndASignalEndsTheChild) {
    Result<Child> child = spawn({.argv = {"/bin/cat"}});
    ASSERT_TRUE(child) << child.error().to_line();
    EXPECT_FALSE(wait_for(*child, Deadline::after(std::chrono::milliseconds(10))));
    send_signal(*child, SIGKILL);
    const std::optional<ExitStatus> status = wait_for(*child, Deadline::after(kPatience));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->describe(), "killed by signal 9 (SIGKILL)");
    send_signal(*child, SIGKILL); // a child that is gone is not an error
}

TEST(Child, HasASessionOfItsOwnAndNoBlockedSignals) {
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    ASSERT_EQ(::sigprocmask(SIG_BLOCK, &block, nullptr), 0);
    Result<Child> child = spawn({.argv = {"/bin/cat"}});
    ASSERT_EQ(::sigprocmask(SIG_UNBLOCK, &block, nullptr), 0);
    ASSERT_TRUE(child) << child.error().to_line();
    EXPECT_EQ(::getsid(child->pid), child->pid);
    send_signal(*child, SIGTERM);
    const std::optional<ExitStatus> status = wait_for(*child, Deadline::after(kPatience));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->describe(), "killed by signal 15 (SIGTERM)");
}

} // namespace
} // namespace railbreak::launch
