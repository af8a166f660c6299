// Ownership of descriptors, seen through the kernel: a closed one answers EBADF.
#include "base/fd.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace railbreak {
namespace {

int open_one() {
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    EXPECT_GE(fd, 0);
    return fd;
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(UniqueFd, ClosesAtTheEndOfItsLife) {
    int raw = -1;
    {
        const UniqueFd fd(open_one());
        raw = fd.get();
        EXPECT_TRUE(fd.valid());
        EXPECT_TRUE(is_open(raw));
    }
    EXPECT_FALSE(is_open(raw));
}

TEST(UniqueFd, IsEmptyByDefault) {
    const UniqueFd fd;
    EXPECT_FALSE(fd.valid());
    EXPECT_EQ(fd.get(), -1);
}

TEST(UniqueFd, MovesOwnershipAndClosesWhatItReplaces) {
    UniqueFd first(open_one());
    UniqueFd second(open_one());
    const int raw_first = first.get();
    const int raw_second = second.get();
    second = std::move(first);
    EXPECT_FALSE(is_open(raw_second));
    EXPECT_EQ(second.get(), raw_first);
    const UniqueFd third(std::move(second));
    EXPECT_TRUE(is_open(raw_first));
    EXPECT_EQ(third.get(), raw_first);
}

TEST(UniqueFd, ReleaseLeavesTheDescriptorOpen) {
    UniqueFd fd(open_one());
    const int raw = fd.release();
    EXPECT_FALSE(fd.valid());
    EXPECT_TRUE(is_open(raw));
    ::close(raw);
}

TEST(UniqueFd, ResetClosesAndTakesOver) {
    UniqueFd fd(open_one());
    const int first = fd.get();
    const int second = open_one();
    fd.reset(second);
    EXPECT_FALSE(is_open(first));
    EXPECT_EQ(fd.get(), second);
    fd.reset();
    EXPECT_FALSE(is_open(second));
    EXPECT_FALSE(fd.valid());
}

TEST(UniqueFd, KeepsErrnoOfTheCallThatFailedBefore) {
    UniqueFd bad(1'000'000); // nothing is open there: close() fails with EBADF
    errno = ENOSPC;
    bad.reset();
    EXPECT_EQ(errno, ENOSPC);
}

TEST(UniqueFdDeathTest, RefusesToBeReplacedByItself) {
    UniqueFd fd(open_one());
    EXPECT_DEATH(fd.reset(fd.get()), "not replaced by itself");
}

} // namespace
} // namespace railbreak
