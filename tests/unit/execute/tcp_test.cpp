#include "collective/transport/rank_transport.hpp"

#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/execute/links.hpp"
#include "tests/unit/execute/ranks.hpp"
#include "tests/unit/execute/toy_schedules.hpp"

namespace railbreak::collective {
namespace {

using ::testing::HasSubstr;
using testing::Ranks;
using testing::soon;

const std::string kToken = "a token for tests, 32 bytes long";

std::unique_ptr<RankTransport> listening(Rank self, std::string token = kToken) {
    RankTransportOptions options;
    options.self = self;
    options.addresses = {"127.0.0.1"};
    options.token = std::move(token);
    options.handshake_budget = std::chrono::milliseconds(200);
    auto made = RankTransport::listen(options);
    EXPECT_TRUE(made.has_value()) << made.error().to_line();
    return std::move(*made);
}

PeerAddresses at(std::uint16_t port) {
    return {{{"127.0.0.1", port}}, ""};
}

/// All ranks of a schedule, connected over the loopback interface.
struct Mesh {
    std::vector<std::unique_ptr<RankTransport>> transports;
    std::map<Rank, PeerAddresses> peers;

    explicit Mesh(Rank ranks) {
        for (Rank rank = 0; rank < ranks; ++rank) {
            transports.push_back(listening(rank));
            peers[rank] = {{{"127.0.0.1", transports.back()->port(0)}}, transports.back()->local_name()};
        }
    }
    std::vector<Result<void>> connect(const Schedule& schedule, Deadline deadline = soon()) {
        std::vector<Result<void>> results(transports.size());
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < transports.size(); ++rank) {
            threads.emplace_back([&, rank] {
                const auto links = links_of(schedule, static_cast<Rank>(rank));
                results[rank] = transports[rank]->connect(peers, links, deadline);
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return results;
    }
    testing::Transports release() {
        testing::Transports out;
        for (auto& transport : transports) {
            out.push_back(std::move(transport));
        }
        return out;
    }
};

/// A plain connection to a port of this machine.
UniqueFd stranger(std::uint16_t port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = to_sockaddr("127.0.0.1", port).value();
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
}

TEST(Tcp, RunsSchedulesAndAddsLinksForTheNextOne) {
    Mesh mesh(4);
    const auto ring = testing::toy_ring(4, 200003);
    const auto lanes = testing::toy_two_lanes(4, 50001);
    for (const Schedule* schedule : {static_cast<const Schedule*>(&ring), static_cast<const Schedule*>(&lanes)}) {
        for (const auto& connected : mesh.connect(*schedule)) {
            ASSERT_TRUE(connected.has_value()) << connected.error().to_line();
        }
    }
    Ranks ranks(mesh.release(), {});
    for (int run = 0; run < 3; ++run) {
        ranks.expect_allreduce(ring, Dtype::kFloat32, 5);
        ranks.expect_allreduce(lanes, Dtype::kFloat16, 6);
    }
}

TEST(Tcp, ConnectingWhatIsConnectedDoesNothing) {
    Mesh mesh(3);
    const auto ring = testing::toy_ring(3, 30);
    for (int round = 0; round < 2; ++round) {
        for (const auto& connected : mesh.connect(ring)) {
            ASSERT_TRUE(connected.has_value()) << connected.error().to_line();
        }
    }
    const auto link = mesh.transports[0]->find_link({Direction::kOutgoing, 1, 0});
    ASSERT_TRUE(link.has_value());
    EXPECT_THAT(mesh.transports[0]->describe(*link), HasSubstr("rank 0 to rank 1, lane 0 (127.0.0.1:"));
    EXPECT_FALSE(mesh.transports[0]->find_link({Direction::kIncoming, 1, 0}).has_value());
}

TEST(Tcp, AFastPeersNextLinksAreKeptForTheNextCall) {
    const auto ring = testing::toy_ring(4, 30);
    const auto lanes = testing::toy_two_lanes(4, 30);
    for (int round = 0; round < 10; ++round) {
        Mesh mesh(4);
        std::vector<Result<void>> results(4);
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < 4; ++rank) {
            threads.emplace_back([&, rank] { // nobody waits for the others between the two calls
                const auto self = static_cast<Rank>(rank);
                results[rank] = mesh.transports[rank]->connect(mesh.peers, links_of(ring, self), soon()).and_then([&] {
                    return mesh.transports[rank]->connect(mesh.peers, links_of(lanes, self), soon());
                });
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        for (const auto& result : results) {
            ASSERT_TRUE(result.has_value()) << result.error().to_line();
        }
    }
}

TEST(Tcp, StrangersAreDroppedAndHoldUpNobody) {
    Mesh mesh(2);
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 5; ++i) {
        silent.push_back(stranger(mesh.transports[0]->port(0)));
        UniqueFd loud = stranger(mesh.transports[0]->port(0));
        const std::string garbage(500, 'x');
        ASSERT_EQ(::send(loud.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 500);
        silent.push_back(std::move(loud));
        stranger(mesh.transports[0]->port(0)).reset(); // comes and goes
    }
    const auto ring = testing::toy_ring(2, 1000);
    for (const auto& connected : mesh.connect(ring)) {
        ASSERT_TRUE(connected.has_value()) << connected.error().to_line();
    }
    // The next call has time to look at all strangers: it waits for a link that nobody makes.
    const LinkSpec never[] = {{Direction::kIncoming, 1, 1}};
    const auto missing = mesh.transports[0]->connect({}, never, Deadline::after(std::chrono::milliseconds(600)));
    EXPECT_FALSE(missing.has_value());
    EXPECT_GE(mesh.transports[0]->strangers_dropped(), 5);
    char byte = 0;
    for (const UniqueFd& one : silent) {
        while (::recv(one.get(), &byte, 1, 0) > 0) { // the greeting, then the end
        }
    }
    Ranks ranks(mesh.release(), {});
    ranks.expect_allreduce(ring, Dtype::kFloat32, 5);
}

TEST(Tcp, APeerWithAnotherTokenIsRefusedByName) {
    auto honest = listening(0);
    auto other = listening(1, "another token, also 32 bytes long");
    const std::map<Rank, PeerAddresses> peers{{0, at(honest->port(0))}, {1, at(other->port(0))}};
    Result<void> accepted;
    std::thread thread([&] {
        const LinkSpec incoming[] = {{Direction::kIncoming, 1, 0}};
        accepted = honest->connect(peers, incoming, Deadline::after(std::chrono::milliseconds(500)));
    });
    const LinkSpec outgoing[] = {{Direction::kOutgoing, 0, 0}};
    const auto connected = other->connect(peers, outgoing, soon());
    thread.join();
    ASSERT_FALSE(connected.has_value());
    EXPECT_THAT(connected.error().message(), HasSubstr("rank 1 connecting to rank 0 on lane 0"));
    ASSERT_FALSE(accepted.has_value());
    EXPECT_EQ(accepted.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(accepted.error().message(), HasSubstr("missing the links from rank 1 on lane 0"));
    EXPECT_GE(honest->strangers_dropped(), 1);
    EXPECT_FALSE(honest->find_link({Direction::kIncoming, 1, 0}).has_value());
}

TEST(Tcp, NobodyListeningIsAnErrorAtOnce) {
    auto lonely = listening(0);
    const std::uint16_t closed_port = listening(1)->port(0);
    const LinkSpec outgoing[] = {{Direction::kOutgoing, 1, 0}};
    const auto connected = lonely->connect({{1, at(closed_port)}}, outgoing, soon());
    ASSERT_FALSE(connected.has_value());
    EXPECT_EQ(connected.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(connected.error().to_line(), HasSubstr("ECONNREFUSED"));
}

TEST(Tcp, BadOptionsAreRefused) {
    RankTransportOptions options;
    options.addresses = {"localhost"};
    options.token = kToken;
    EXPECT_EQ(RankTransport::listen(options).error().kind(), ErrorKind::kInput);
    options.addresses = {"192.0.2.1"}; // reserved for documentation, on no machine
    EXPECT_EQ(RankTransport::listen(options).error().kind(), ErrorKind::kHarness);
    options.addresses = {"127.0.0.1"};
    options.token = "short";
    EXPECT_EQ(RankTransport::listen(options).error().kind(), ErrorKind::kInput);
}

TEST(Tcp, TheDeathOfARankEndsTheRunOfItsPeersAndNamesIt) {
    // Rank 1 is a process that connects and is then killed while the others wait for its data.
    Mesh mesh(2);
    const auto plan = testing::toy_ring(2, 1000000);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool connected = mesh.transports[1]->connect(mesh.peers, links_of(plan, 1), soon()).has_value();
        while (connected) {
            ::pause();
        }
        ::_exit(1);
    }
    mesh.transports[1].reset();
    ASSERT_TRUE(mesh.transports[0]->connect(mesh.peers, links_of(plan, 0), soon()).has_value());
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    Executor executor(*mesh.transports[0]);
    std::vector<std::byte> vector(4000000);
    const auto result = executor.run(plan, Dtype::kFloat32, vector, soon());
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 1 on lane 0 (127.0.0.1:"));
}

} // namespace
} // namespace railbreak::collective
