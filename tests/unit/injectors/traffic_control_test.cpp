// Traffic-control messages against the real kernel: what was asked for is what the kernel keeps.
#include "injectors/traffic_control.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

namespace railbreak::injectors {
namespace {

constexpr std::uint32_t kQuantum = 60000;

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

testing::AssertionResult done(const Result<void>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

TEST(BurstTicks, AreTheTimeOfTheBurstIn64Nanoseconds) {
    // 16000 B at 125 MB/s take 128 us = 2000 ticks of 64 ns.
    EXPECT_EQ(burst_ticks(ByteCount::bytes(16000), mbit(1000)), 2000U);
    EXPECT_EQ(burst_bytes(2000, mbit(1000)), ByteCount::bytes(16000));
    // Rounded up: 1 B at 50 GB/s takes 0.02 ns.
    EXPECT_EQ(burst_ticks(ByteCount::bytes(1), mbit(400'000)), 1U);
    // Saturated, not wrapped.
    EXPECT_EQ(burst_ticks(ByteCount::bytes(1'000'000'000'000), BitRate::bits_per_s(8)), UINT32_MAX);
}

TEST(BurstTicks, NeverComeBackAsLessThanWasAsked) {
    for (const std::uint64_t rate : {1ULL, 37ULL, 200ULL, 999ULL, 1000ULL, 40'000ULL, 400'000ULL}) {
        for (const std::uint64_t burst : {1ULL, 1514ULL, 16'000ULL, 65'536ULL, 1'000'003ULL}) {
            const auto back = burst_bytes(burst_ticks(ByteCount::bytes(burst), mbit(rate)), mbit(rate));
            EXPECT_GE(back.bytes(), burst) << rate;
            EXPECT_LE(back.bytes(), burst + 1 + mbit(rate).bytes_per_s() * 64 / 1'000'000'000) << rate;
        }
    }
}

TEST(TcHandle, PrintsLikeTc) {
    EXPECT_EQ(to_tc_string(kLabHtbClass), "fb01:1");
    EXPECT_EQ(to_tc_string(tc_handle(1, 0)), "1:0");
}

class TrafficControl : public testing::Test {
protected:
    static void SetUpTestSuite() {
        if (::geteuid() != 0) {
            static_cast<void>(::unshare(CLONE_NEWUSER));
        }
    }
    void SetUp() override {
        UniqueFd netns;
        std::thread([&netns] {
            if (::unshare(CLONE_NEWNET) == 0) {
                netns.reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
            }
        }).join();
        if (!netns.valid()) {
            GTEST_SKIP() << "network namespaces need CAP_SYS_ADMIN here";
        }
        auto opened = NetlinkChannel::open_in(netns.get());
        ASSERT_TRUE(opened) << opened.error().to_line();
        channel_.emplace(std::move(*opened));
        NetlinkMessage veth(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        ifinfomsg header{};
        header.ifi_flags = IFF_UP;
        header.ifi_change = IFF_UP;
        veth.append_header(header);
        veth.put_string(IFLA_IFNAME, "rail0");
        nlattr* info = veth.begin_nest(IFLA_LINKINFO);
        veth.put_string(IFLA_INFO_KIND, "veth");
        veth.end_nest(info);
        ASSERT_TRUE(done(channel_->request(veth, "make a veth")));
        auto index = interface_index(*channel_, "rail0");
        ASSERT_TRUE(index) << index.error().to_line();
        nic_ = *index;
    }
    /// The qdisc of that handle, if the kernel lists one.
    std::optional<QdiscRecord> qdisc(int ifindex, TcHandle handle) {
        auto all = list_qdiscs(*channel_, ifindex);
        EXPECT_TRUE(all) << all.error().to_line();
        for (const auto& record : *all) {
            if (record.handle == handle) {
                return record;
            }
        }
        return std::nullopt;
    }
    std::optional<NetlinkChannel> channel_;
    int nic_ = 0;
};

TEST_F(TrafficControl, HtbReadsBackExactlyUpTo400Gbit) {
    ASSERT_TRUE(done(add_htb(*channel_, nic_, kLabHtb, 1)));
    auto wanted = make_htb_class(mbit(1), ByteCount::bytes(16000), kQuantum);
    ASSERT_TRUE(done(add_htb_class(*channel_, nic_, kLabHtb, kLabHtbClass, wanted)));
    ASSERT_TRUE(done(add_bfifo(*channel_, nic_, kLabHtbClass, kLabFifo, ByteCount::bytes(200'000))));
    for (const std::uint64_t rate : {1ULL, 200ULL, 34'359ULL, 34'360ULL, 40'000ULL, 400'000ULL, 3ULL}) {
        wanted = make_htb_class(mbit(rate), ByteCount::bytes(100'000), kQuantum + 1);
        ASSERT_TRUE(done(change_htb_class(*channel_, nic_, kLabHtbClass, wanted)));
        const auto kept = read_htb_class(*channel_, nic_, kLabHtbClass);
        ASSERT_TRUE(kept) << kept.error().to_line();
        EXPECT_EQ(*kept, wanted) << rate << " Mbit/s";
    }
    const auto root = qdisc(nic_, kLabHtb);
    ASSERT_TRUE(root);
    EXPECT_EQ(root->kind, "htb");
    EXPECT_EQ(root->parent, kTcRoot);
    EXPECT_EQ(root->htb_default, 1U);
    const auto fifo = qdisc(nic_, kLabFifo);
    ASSERT_TRUE(fifo);
    EXPECT_EQ(fifo->kind, "bfifo");
    EXPECT_EQ(fifo->parent, kLabHtbClass);
    EXPECT_EQ(fifo->fifo_limit, ByteCount::bytes(200'000));
}

TEST_F(TrafficControl, RateAndCeilAreIndependent) {
    ASSERT_TRUE(done(add_htb(*channel_, nic_, kLabHtb, 1)));
    const HtbClass wanted{mbit(100), mbit(50'000), 777, 888, 5000};
    ASSERT_TRUE(done(add_htb_class(*channel_, nic_, kLabHtb, kLabHtbClass, wanted)));
    const auto kept = read_htb_class(*channel_, nic_, kLabHtbClass);
    ASSERT_TRUE(kept) << kept.error().to_line();
    EXPECT_EQ(*kept, wanted);
}

TEST_F(TrafficControl, AddRefusesToReplaceAndChangeRefusesToCreate) {
    const auto parameters = make_htb_class(mbit(100), ByteCount::bytes(16000), kQuantum);
    ASSERT_TRUE(done(add_htb(*channel_, nic_, kLabHtb, 1)));
    const auto changed = change_htb_class(*channel_, nic_, kLabHtbClass, parameters);
    ASSERT_FALSE(changed);
    EXPECT_EQ(kernel_errno(changed.error()), ENOENT);
    const auto replaced = add_htb(*channel_, nic_, tc_handle(0xfa01, 0), 1);
    ASSERT_FALSE(replaced);
    EXPECT_EQ(kernel_errno(replaced.error()), EEXIST);
    const auto read = read_htb_class(*channel_, nic_, kLabHtbClass);
    ASSERT_FALSE(read);
    EXPECT_EQ(kernel_errno(read.error()), ENOENT);
}

TEST_F(TrafficControl, DeleteTakesOnlyItsOwnHandle) {
    ASSERT_TRUE(done(add_htb(*channel_, nic_, kLabHtb, 1)));
    EXPECT_FALSE(delete_qdisc(*channel_, nic_, kTcRoot, tc_handle(0xfa01, 0)));
    EXPECT_TRUE(qdisc(nic_, kLabHtb));
    ASSERT_TRUE(done(delete_qdisc(*channel_, nic_, kTcRoot, kLabHtb)));
    EXPECT_FALSE(qdisc(nic_, kLabHtb));
}

TEST_F(TrafficControl, TbfKeepsRatesAbove32Bits) {
    const TcHandle handle = tc_handle(0xfa01, 0);
    const ByteCount burst = ByteCount::bytes(1'000'000);
    const ByteCount limit = ByteCount::bytes(4'000'000);
    ASSERT_TRUE(done(add_tbf(*channel_, nic_, kTcRoot, handle, {mbit(40'000), burst, limit})));
    EXPECT_EQ(qdisc(nic_, handle)->tbf_rate, mbit(40'000));
    ASSERT_TRUE(done(change_tbf(*channel_, nic_, kTcRoot, handle, {mbit(500), burst, limit})));
    EXPECT_EQ(qdisc(nic_, handle)->tbf_rate, mbit(500));
}

TEST_F(TrafficControl, ReceiveCapComesAndGoesWithoutTouchingTheRoot) {
    const auto before = list_qdiscs(*channel_, nic_);
    ASSERT_TRUE(before);
    const auto ifb = add_ifb(*channel_, "rb-ifb0", "railbreak test");
    if (!ifb && kernel_errno(ifb.error()) == EOPNOTSUPP) {
        GTEST_SKIP() << ifb.error().to_line();
    }
    ASSERT_TRUE(ifb) << ifb.error().to_line();
    ASSERT_TRUE(done(add_clsact(*channel_, nic_)));
    const auto twice = add_clsact(*channel_, nic_);
    ASSERT_FALSE(twice);
    EXPECT_EQ(kernel_errno(twice.error()), EEXIST);
    for (const auto direction : {TcDirection::kIngress, TcDirection::kEgress}) {
        ASSERT_TRUE(done(add_redirect(*channel_, nic_, direction, 0xfa01, *ifb)));
        EXPECT_TRUE(has_redirect(*channel_, nic_, direction, 0xfa01).value_or(false));
        EXPECT_FALSE(has_redirect(*channel_, nic_, direction, 0xfa02).value_or(true));
        ASSERT_TRUE(done(delete_redirect(*channel_, nic_, direction, 0xfa01)));
        EXPECT_FALSE(has_redirect(*channel_, nic_, direction, 0xfa01).value_or(true));
    }
    ASSERT_TRUE(done(delete_clsact(*channel_, nic_)));
    ASSERT_TRUE(done(delete_link(*channel_, *ifb)));
    EXPECT_FALSE(interface_index(*channel_, "rb-ifb0"));
    const auto after = list_qdiscs(*channel_, nic_);
    ASSERT_TRUE(after);
    ASSERT_EQ(after->size(), before->size());
    EXPECT_EQ(after->front().kind, before->front().kind);
}

} // namespace
} // namespace railbreak::injectors
