#include "collective/transport/shm_transport.hpp"

#include <array>
#include <csignal>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collective/transport/pacer.hpp"
#include "collective/transport/port_transport.hpp"
#include "collective/transport/rank_transport.hpp"
#include "collective/transport/shm_ring.hpp"
#include "tests/unit/execute/ranks.hpp"
#include "tests/unit/execute/toy_schedules.hpp"

namespace railbreak::collective {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::ListSchedule;
using testing::Ranks;
using testing::soon;

constexpr Port kLocal{PortKind::kLocal, 0};
constexpr LinkSpec kTo1{Direction::kOutgoing, 1, 0, kLocal, kLocal};
constexpr LinkSpec kFrom0{Direction::kIncoming, 0, 0, kLocal, kLocal};

std::vector<std::byte> numbered(std::size_t count, std::size_t from = 0) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>((from + i) % 251);
    }
    return bytes;
}

struct Ring {
    RingWriter writer;
    RingReader reader;
};

Ring make_ring_pair() {
    ShmSegment::Made made = ShmSegment::create().value();
    RingReader reader(ShmSegment::open(made.descriptor.get()).value());
    return {RingWriter(std::move(made.segment)), std::move(reader)};
}

TEST(ShmRing, GivesBackWhatWentInForManyRoundsOfItsMemory) {
    Ring ring = make_ring_pair();
    std::size_t in = 0;
    std::size_t out = 0;
    for (int round = 0; round < 40; ++round) {
        const auto head = numbered(32, in);
        const auto body = numbered(100'003, in + 32);
        const std::size_t limit = std::min<std::size_t>(ring.writer.space().value(), 90'000);
        in += ring.writer.write(head, body, limit);
        std::vector<std::byte> first(5);
        std::vector<std::byte> rest(70'001);
        const std::size_t got = ring.reader.read(first, rest, std::min<std::size_t>(*ring.reader.available(), 70'006));
        first.insert(first.end(), rest.begin(), rest.end());
        first.resize(got);
        ASSERT_EQ(first, numbered(got, out));
        out += got;
        ASSERT_EQ(ring.reader.available().value(), in - out);
        ASSERT_EQ(ring.writer.space().value(), kRingBytes - (in - out));
    }
    EXPECT_GT(in, 3 * kRingBytes);
}

TEST(ShmRing, AnnouncesSleepOnlyWhenThereIsNothingToDo) {
    Ring ring = make_ring_pair();
    EXPECT_FALSE(ring.writer.prepare_sleep());
    EXPECT_TRUE(ring.reader.prepare_sleep());
    EXPECT_EQ(ring.writer.write({}, numbered(10), 10), 10U);
    EXPECT_TRUE(ring.writer.reader_sleeps());
    EXPECT_FALSE(ring.writer.reader_sleeps()) << "one sleep, one wake-up";
    EXPECT_FALSE(ring.reader.prepare_sleep());
    EXPECT_EQ(ring.writer.write({}, numbered(kRingBytes), kRingBytes - 10), kRingBytes - 10);
    EXPECT_TRUE(ring.writer.prepare_sleep());
    std::vector<std::byte> one(1);
    EXPECT_EQ(ring.reader.read(one, {}, 1), 1U);
    EXPECT_TRUE(ring.reader.writer_sleeps());
}

TEST(ShmRing, OnlySealedMemoryOfTheRightSizeIsARing) {
    const UniqueFd plain(::memfd_create("test", MFD_CLOEXEC));
    EXPECT_FALSE(ShmSegment::open(plain.get()).has_value());
    ASSERT_EQ(::ftruncate(plain.get(), 4096 + kRingBytes), 0);
    EXPECT_FALSE(ShmSegment::open(plain.get()).has_value()) << "could be cut short under the reader";
    EXPECT_FALSE(ShmSegment::open(STDIN_FILENO).has_value());
    const ShmSegment::Made made = ShmSegment::create().value();
    EXPECT_NE(::ftruncate(made.descriptor.get(), 0), 0);
}

TEST(Pacer, AnIdlePortGathersNoCredit) {
    Pacer pacer(BitRate::bits_per_s(8'000'000)); // a byte a microsecond
    Nanoseconds now = std::chrono::hours(5);
    for (int flow = 0; flow < 3; ++flow) {
        const std::size_t piece = pacer.allowance(now);
        EXPECT_EQ(piece, 16384U);
        pacer.moved(1000, now);
        EXPECT_EQ(pacer.wake_at(), std::nullopt) << "nobody asked";
        EXPECT_EQ(pacer.allowance(now + microseconds(999)), 0U);
        EXPECT_EQ(pacer.wake_at(), now + microseconds(1000));
        EXPECT_GT(pacer.allowance(now + microseconds(1000)), 0U);
        pacer.moved(1000, now + microseconds(1000));
        now += std::chrono::hours(1);
    }
}

TEST(Pacer, ALateOwnerLosesNoBandwidthUpToALimit) {
    Pacer pacer(BitRate::bits_per_s(8'000'000));
    const Nanoseconds start = std::chrono::seconds(9);
    pacer.moved(1000, start);
    EXPECT_EQ(pacer.allowance(start), 0U);
    pacer.moved(1000, start + microseconds(1400)); // asked at once, served late
    EXPECT_EQ(pacer.allowance(start + microseconds(1400)), 0U);
    EXPECT_EQ(pacer.wake_at(), start + microseconds(2000));
    pacer.moved(1000, start + std::chrono::seconds(1)); // stopped for a second
    EXPECT_EQ(pacer.allowance(start + std::chrono::seconds(1) - Pacer::kMostLateness), 0U);
    EXPECT_EQ(pacer.wake_at(), start + std::chrono::seconds(1) - Pacer::kMostLateness + microseconds(1000));
}

TEST(Pacer, WithoutARateNothingIsHeldBack) {
    Pacer pacer{BitRate{}};
    pacer.moved(1U << 30, Nanoseconds(5));
    EXPECT_GT(pacer.allowance(Nanoseconds(5)), 1U << 30);
    EXPECT_FALSE(pacer.limited());
}

/// Schedules whose lanes run inside a host, or partly.
ListSchedule inside_chain(Rank p, std::int64_t elements) {
    ListSchedule made = testing::toy_chain(p, elements);
    made.attach_inside(0);
    return made;
}

ListSchedule mixed_lanes(Rank p, std::int64_t elements) {
    ListSchedule made = testing::toy_two_lanes(p, elements);
    made.attach_inside(1);
    return made;
}

ListSchedule both_inside(Rank p, std::int64_t elements) {
    ListSchedule made = mixed_lanes(p, elements);
    made.attach_inside(0);
    return made;
}

TEST(SharedMemory, SchedulesGiveTheSumWithAndWithoutARate) {
    for (const Rank p : {2, 3, 5}) {
        for (const auto make : {inside_chain, mixed_lanes, both_inside}) {
            Ranks free = testing::ranks_of(make(p, 5));
            Ranks paced = testing::ranks_of(make(p, 5), BitRate::bits_per_s(2'000'000'000));
            for (const std::int64_t elements : {2, 1001, 200'011}) {
                free.expect_allreduce(make(p, elements), Dtype::kFloat32, 3);
                free.expect_allreduce(make(p, elements), Dtype::kBfloat16, 4);
                paced.expect_allreduce(make(p, elements), Dtype::kFloat32, 5);
            }
        }
    }
}

TEST(SharedMemory, PieceSizesNeverChangeTheResult) {
    for (const std::size_t size : {1U, 64U, 1000U, 1U << 22}) {
        ExecutorOptions options;
        options.forward_bytes = size;
        options.call_bytes = std::max<std::size_t>(size, 64);
        options.staging_bytes = size;
        Ranks ranks = testing::ranks_of(mixed_lanes(3, 5), {}, options);
        ranks.expect_allreduce(mixed_lanes(3, 5003), Dtype::kFloat32, 1);
    }
}

/// Both ends of one link inside a host.
struct LinkPair {
    std::unique_ptr<ShmTransport> sender;
    std::unique_ptr<ShmTransport> receiver;
    LinkIndex out = 0;
    LinkIndex in = 0;

    explicit LinkPair(BitRate rate = {})
        : sender(ShmTransport::make(0, rate).value()), receiver(ShmTransport::make(1, rate).value()) {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        out = sender->add_link(kTo1, UniqueFd(ends[0])).value();
        in = receiver->add_link(kFrom0, UniqueFd(ends[1])).value();
    }
    /// Reads until the receiver has `wanted` bytes more.
    std::vector<std::byte> take(std::size_t wanted) const {
        std::vector<std::byte> all;
        while (all.size() < wanted) {
            std::vector<std::byte> part(wanted - all.size());
            const auto got = receiver->receive_some(in, {}, part);
            if (!got) {
                ADD_FAILURE() << got.error().to_line();
                break;
            }
            all.insert(all.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(*got));
            if (*got == 0 && receiver->wait(soon()).value() == WaitResult::kTimedOut) {
                ADD_FAILURE() << "nothing came";
                break;
            }
        }
        return all;
    }
};

TEST(SharedMemory, ASleepingEndIsWokenByTheOther) {
    LinkPair pair;
    const auto data = numbered(4 * kRingBytes + 17);
    std::thread thread([&] {
        std::size_t sent = 0;
        while (sent < data.size()) {
            const auto count = pair.sender->send_some(pair.out, {}, std::span(data).subspan(sent));
            ASSERT_TRUE(count.has_value()) << count.error().to_line();
            sent += *count;
            if (*count == 0) {
                ASSERT_EQ(pair.sender->wait(soon()).value(), WaitResult::kReady);
            }
        }
    });
    EXPECT_EQ(pair.take(data.size()), data);
    thread.join();
    EXPECT_EQ(pair.receiver->describe(pair.in), "rank 1 from rank 0, lane 0 (shared memory)");
}

TEST(SharedMemory, APacedPortLetsASmallPieceThroughAndThenNothingForAWhile) {
    LinkPair pair(BitRate::bits_per_s(80'000)); // 16 KiB take 1.6 s
    const auto data = numbered(100'000);
    EXPECT_EQ(pair.sender->send_some(pair.out, {}, data).value(), 16384U);
    EXPECT_EQ(pair.sender->send_some(pair.out, {}, data).value(), 0U);
    EXPECT_EQ(pair.sender->wait(Deadline::after(milliseconds(1))).value(), WaitResult::kTimedOut);
    EXPECT_EQ(pair.take(16384), numbered(16384));
}

TEST(SharedMemory, TheTimerOfAPacedPortEndsTheWait) {
    LinkPair pair(BitRate::bits_per_s(80'000'000)); // 16 KiB take 1.6 ms
    const auto data = numbered(16384);
    ASSERT_GT(pair.sender->send_some(pair.out, {}, data).value(), 0U);
    ASSERT_EQ(pair.sender->send_some(pair.out, {}, data).value(), 0U);
    EXPECT_EQ(pair.sender->wait(soon()).value(), WaitResult::kReady);
    EXPECT_GT(pair.sender->send_some(pair.out, {}, data).value(), 0U);
}

TEST(SharedMemory, WhatWasSentBeforeTheEndCanStillBeReceived) {
    LinkPair pair;
    ASSERT_EQ(pair.sender->send_some(pair.out, numbered(7), {}).value(), 7U);
    pair.sender.reset();
    ASSERT_EQ(pair.receiver->wait(soon()).value(), WaitResult::kReady);
    EXPECT_EQ(pair.receiver->take_closed(), std::vector<LinkIndex>{pair.in});
    EXPECT_EQ(pair.receiver->readable_bytes(pair.in), 7U);
    EXPECT_EQ(pair.take(7), numbered(7));
    std::vector<std::byte> more(1);
    const auto ended = pair.receiver->receive_some(pair.in, {}, more);
    ASSERT_FALSE(ended.has_value());
    EXPECT_EQ(ended.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(ended.error().message(), HasSubstr("rank 1 cannot receive from rank 0 on lane 0 (shared memory): the "
                                                   "peer closed the connection"));
}

TEST(SharedMemory, BreakingOffIsNoticedByTheOtherEnd) {
    LinkPair pair;
    pair.receiver->abort();
    ASSERT_EQ(pair.sender->wait(soon()).value(), WaitResult::kReady);
    EXPECT_EQ(pair.sender->take_closed(), std::vector<LinkIndex>{pair.out});
    const auto sent = pair.sender->send_some(pair.out, {}, numbered(1));
    ASSERT_FALSE(sent.has_value());
    EXPECT_EQ(sent.error().kind(), ErrorKind::kOutcome);
    std::vector<std::byte> byte(1);
    EXPECT_FALSE(pair.receiver->receive_some(pair.in, {}, byte).has_value());
}

TEST(SharedMemory, SomethingElseThanARingIsADeadLink) {
    auto receiver = ShmTransport::make(1, {}).value();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd by_hand(ends[0]);
    const LinkIndex in = receiver->add_link(kFrom0, UniqueFd(ends[1])).value();
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    *reinterpret_cast<int*>(CMSG_DATA(header)) = STDIN_FILENO;
    ASSERT_EQ(::sendmsg(by_hand.get(), &message, 0), 1);
    ASSERT_EQ(receiver->wait(soon()).value(), WaitResult::kReady);
    EXPECT_EQ(receiver->take_closed(), std::vector<LinkIndex>{in});
}

const std::string kToken = "a token for tests, 32 bytes long";

/// A host of ranks with two NICs, 127.0.0.1 and 127.0.0.2.
struct Host {
    std::vector<std::unique_ptr<RankTransport>> transports;
    std::map<Rank, PeerAddresses> peers;

    explicit Host(Rank ranks) {
        for (Rank rank = 0; rank < ranks; ++rank) {
            auto made = RankTransport::listen({.self = rank, .addresses = {"127.0.0.1", "127.0.0.2"}, .token = kToken});
            EXPECT_TRUE(made.has_value()) << made.error().to_line();
            transports.push_back(std::move(*made));
            const RankTransport& transport = *transports.back();
            peers[rank] = {{{"127.0.0.1", transport.port(0)}, {"127.0.0.2", transport.port(1)}},
                           transport.local_name()};
        }
    }
    void connect(const Schedule& schedule) {
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < transports.size(); ++rank) {
            threads.emplace_back([&, rank] {
                const auto links = links_of(schedule, static_cast<Rank>(rank));
                const auto connected = transports[rank]->connect(peers, links, soon());
                EXPECT_TRUE(connected.has_value()) << connected.error().to_line();
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }
    Ranks ranks() {
        testing::Transports out;
        for (auto& transport : transports) {
            out.push_back(std::move(transport));
        }
        return Ranks(std::move(out), {});
    }
};

TEST(RankTransport, RunsSchedulesOverTheirNicsAndInsideTheHost) {
    Host host(3);
    const auto mixed = mixed_lanes(3, 50001);
    const auto inside = inside_chain(3, 50001);
    ListSchedule second = testing::toy_ring(3, 50001); // the same lane as before, over other ports
    second.attach(0, 0, {PortKind::kNic, 1});
    second.attach(1, 0, {PortKind::kNic, 1});
    for (const Schedule* schedule : {static_cast<const Schedule*>(&mixed), static_cast<const Schedule*>(&inside),
                                     static_cast<const Schedule*>(&second)}) {
        host.connect(*schedule);
    }
    const auto describe = [&](const LinkSpec& link) {
        const auto found = host.transports[0]->find_link(link);
        return found ? host.transports[0]->describe(*found) : std::string("none");
    };
    EXPECT_THAT(describe({Direction::kOutgoing, 1, 0, {}, {}}), HasSubstr("lane 0 (127.0.0.1:"));
    EXPECT_THAT(describe({Direction::kOutgoing, 1, 0, {PortKind::kNic, 1}, {PortKind::kNic, 1}}),
                HasSubstr("lane 0 (127.0.0.2:"));
    EXPECT_THAT(describe({Direction::kIncoming, 2, 0, {PortKind::kNic, 1}, {}}), HasSubstr("lane 0 (127.0.0.1:"))
        << "the peer's end is bound to its own NIC";
    EXPECT_THAT(describe({Direction::kOutgoing, 1, 1, kLocal, kLocal}), HasSubstr("lane 1 (shared memory)"));
    Ranks ranks = host.ranks();
    for (int run = 0; run < 2; ++run) {
        ranks.expect_allreduce(mixed, Dtype::kFloat32, 5);
        ranks.expect_allreduce(inside, Dtype::kFloat16, 6);
        ranks.expect_allreduce(second, Dtype::kFloat32, 7);
    }
}

TEST(RankTransport, ANicThatIsNotThereIsNamed) {
    Host host(2);
    const LinkSpec link[] = {{Direction::kOutgoing, 1, 0, {PortKind::kNic, 2}, {}}};
    const auto connected = host.transports[0]->connect(host.peers, link, soon());
    ASSERT_FALSE(connected.has_value());
    EXPECT_EQ(connected.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(connected.error().message(), HasSubstr("own NIC 2"));
}

TEST(RankTransport, NobodyListeningInsideTheHostIsAnErrorAtOnce) {
    Host host(2);
    const LinkSpec link[] = {kTo1};
    for (const std::string& name : {std::string(), std::string("gone")}) {
        host.peers[1].local = name;
        const auto connected = host.transports[0]->connect(host.peers, link, soon());
        ASSERT_FALSE(connected.has_value());
        EXPECT_EQ(connected.error().kind(), ErrorKind::kOutcome);
        EXPECT_THAT(connected.error().message(), HasSubstr("rank 0 connecting to rank 1 on lane 0 (shared memory)"));
    }
}

TEST(RankTransport, TheDeathOfARankOnTheSameHostIsNoticedAndLeavesNothing) {
    Host host(2);
    const auto plan = inside_chain(2, 1'000'000);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool connected = host.transports[1]->connect(host.peers, links_of(plan, 1), soon()).has_value();
        while (connected) {
            ::pause();
        }
        ::_exit(1);
    }
    host.transports[1].reset();
    ASSERT_TRUE(host.transports[0]->connect(host.peers, links_of(plan, 0), soon()).has_value());
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    Executor executor(*host.transports[0]);
    std::vector<std::byte> vector(4'000'000);
    const auto result = executor.run(plan, Dtype::kFloat32, vector, soon());
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kOutcome);
    EXPECT_THAT(result.error().message(), HasSubstr("rank 1 on lane 0 (shared memory)"));
    const LinkSpec again[] = {{Direction::kOutgoing, 1, 3, kLocal, kLocal}};
    const auto refused = host.transports[0]->connect(host.peers, again, soon());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().to_line(), HasSubstr("ECONNREFUSED")) << "its socket has no file to be left behind";
}

} // namespace
} // namespace railbreak::collective
