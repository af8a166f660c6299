#include "harness/launch/line_channel.hpp"

#include <array>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/clock.hpp"

namespace railbreak::launch {
namespace {

struct Ends {
    UniqueFd read_end;
    UniqueFd write_end;
};

Ends make_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// Two channels that talk to each other.
struct Pair {
    Pair() : Pair(make_pipe(), make_pipe()) {}
    Pair(Ends there, Ends back)
        : left(std::move(back.read_end), std::move(there.write_end)),
          right(std::move(there.read_end), std::move(back.write_end)) {}
    LineChannel left;
    LineChannel right;
};

TEST(LineChannel, DeliversWholeLinesInOrderHoweverTheyWereCut) {
    Ends raw = make_pipe();
    Ends unused = make_pipe();
    LineChannel channel(std::move(raw.read_end), std::move(unused.write_end));
    ASSERT_EQ(::write(raw.write_end.get(), "one\ntw", 6), 6);
    EXPECT_EQ(channel.receive().value(), std::vector<std::string>{"one"});
    ASSERT_EQ(::write(raw.write_end.get(), "o\n\nthree\n", 9), 9);
    EXPECT_EQ(channel.receive().value(), (std::vector<std::string>{"two", "", "three"}));
    EXPECT_FALSE(channel.at_end());
}

TEST(LineChannel, QueuesWhatThePipeDoesNotTakeAndLosesNothing) {
    Pair pair;
    const std::string line(1 << 20, 'x'); // far more than a pipe holds
    ASSERT_TRUE(pair.left.send(line));
    ASSERT_TRUE(pair.left.send("end"));
    EXPECT_TRUE(pair.left.wants_write());
    std::vector<std::string> received;
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (received.size() < 2 && !deadline.passed()) {
        const std::vector<std::string> lines = pair.right.receive().value();
        received.insert(received.end(), lines.begin(), lines.end());
        ASSERT_TRUE(pair.left.flush());
    }
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received[0], line);
    EXPECT_EQ(received[1], "end");
    EXPECT_FALSE(pair.left.wants_write());
}

TEST(LineChannel, SeesTheEndOfFileAfterTheLastLine) {
    Pair pair;
    ASSERT_TRUE(pair.left.send("last"));
    pair.left.close_write();
    EXPECT_EQ(pair.right.receive().value(), std::vector<std::string>{"last"});
    EXPECT_TRUE(pair.right.at_end());
    EXPECT_EQ(pair.left.send("more").error().kind(), ErrorKind::kHarness);
}

TEST(LineChannel, RefusesALineWithoutEnd) {
    Pair pair;
    const std::string endless(LineChannel::kMaxLineBytes + (1 << 20), 'y');
    ASSERT_TRUE(pair.left.send(endless));
    Result<std::vector<std::string>> received;
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    while (received && !deadline.passed()) {
        received = pair.right.receive();
        (void)pair.left.flush();
    }
    ASSERT_FALSE(received);
    EXPECT_NE(received.error().message().find("longer than"), std::string::npos);
}

} // namespace
} // namespace railbreak::launch
