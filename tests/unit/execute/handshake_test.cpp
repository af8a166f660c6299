#include "collective/transport/handshake.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace railbreak::collective {
namespace {

const std::string kToken = "0123456789abcdef-token";

/// Moves the output of one end to the other, `step` bytes at a time; returns all bytes moved.
Result<std::vector<std::byte>> carry(Handshake& from, Handshake& to, std::size_t step) {
    std::vector<std::byte> moved;
    while (!from.output().empty() && !to.input().empty()) {
        const std::size_t count = std::min({step, from.output().size(), to.input().size()});
        std::copy_n(from.output().begin(), count, to.input().begin());
        moved.insert(moved.end(), from.output().begin(), from.output().begin() + static_cast<std::ptrdiff_t>(count));
        from.wrote(count);
        if (Result<void> read = to.read(count); !read) {
            return tl::unexpected<Error>(read.error());
        }
    }
    return moved;
}

TEST(Handshake, BothEndsAgreeWhateverTheSizeOfTheReads) {
    for (const std::size_t step : {1U, 7U, 1000U}) {
        Handshake acceptor = Handshake::accepting(kToken, 5).value();
        Handshake connector = Handshake::connecting(kToken, {3, 5, 1}).value();
        std::vector<std::byte> wire;
        for (int round = 0; round < 3; ++round) {
            for (const bool forth : {true, false}) {
                auto moved = forth ? carry(acceptor, connector, step) : carry(connector, acceptor, step);
                ASSERT_TRUE(moved.has_value()) << moved.error().to_line();
                wire.insert(wire.end(), moved->begin(), moved->end());
            }
        }
        EXPECT_TRUE(acceptor.done());
        EXPECT_TRUE(connector.done());
        EXPECT_EQ(acceptor.claim(), (LinkClaim{3, 5, 1}));
        const auto* token = reinterpret_cast<const std::byte*>(kToken.data());
        EXPECT_EQ(std::search(wire.begin(), wire.end(), token, token + kToken.size()), wire.end());
    }
}

TEST(Handshake, AnotherTokenIsRefusedByTheAcceptor) {
    Handshake acceptor = Handshake::accepting(kToken, 5).value();
    Handshake connector = Handshake::connecting(kToken + "x", {3, 5, 1}).value();
    ASSERT_TRUE(carry(acceptor, connector, 100).has_value());
    const auto refused = carry(connector, acceptor, 100);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_FALSE(acceptor.done());
}

TEST(Handshake, ARecordedClaimDoesNotOpenAnotherConnection) {
    Handshake first = Handshake::accepting(kToken, 5).value();
    Handshake connector = Handshake::connecting(kToken, {3, 5, 1}).value();
    ASSERT_TRUE(carry(first, connector, 100).has_value());
    const std::vector<std::byte> recorded = carry(connector, first, 100).value();
    Handshake second = Handshake::accepting(kToken, 5).value();
    ASSERT_EQ(second.input().size(), recorded.size());
    std::copy(recorded.begin(), recorded.end(), second.input().begin());
    EXPECT_FALSE(second.read(recorded.size()).has_value());
}

TEST(Handshake, AnAcceptorWithoutTheTokenIsRefusedByTheConnector) {
    Handshake honest = Handshake::accepting(kToken, 5).value();
    Handshake connector = Handshake::connecting(kToken, {3, 5, 1}).value();
    ASSERT_TRUE(carry(honest, connector, 100).has_value());
    std::fill(connector.input().begin(), connector.input().end(), std::byte{0});
    EXPECT_EQ(connector.read(connector.input().size()).error().kind(), ErrorKind::kRefused);
}

TEST(Handshake, AClaimForAnotherRankIsRefused) {
    Handshake acceptor = Handshake::accepting(kToken, 5).value();
    Handshake connector = Handshake::connecting(kToken, {3, 6, 0}).value();
    ASSERT_TRUE(carry(acceptor, connector, 100).has_value());
    EXPECT_FALSE(carry(connector, acceptor, 100).has_value());
}

TEST(Handshake, SomethingElseThanRailbreakIsRefused) {
    Handshake connector = Handshake::connecting(kToken, {3, 6, 0}).value();
    std::fill(connector.input().begin(), connector.input().end(), std::byte{'S'});
    EXPECT_FALSE(connector.read(connector.input().size()).has_value());
}

} // namespace
} // namespace railbreak::collective
