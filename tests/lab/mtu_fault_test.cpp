// A smaller MTU on a real veth device, and all that the kernel forgets below the smallest MTU of IPv6.
#include <fstream>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "injectors/composer.hpp"
#include "injectors/netlink.hpp"
#include "tests/lab/datagrams.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;

FaultRequest mtu(std::int32_t id, std::uint32_t bytes) {
    return {.id = id, .kind = FaultKind::kMtu, .nic = "nic0", .mtu_bytes = bytes};
}
FaultRequest down(std::int32_t id) {
    return {.id = id, .kind = FaultKind::kLinkDown, .nic = "nic0"};
}

class MtuFault : public InjectorLab {
protected:
    [[nodiscard]] LinkRecord nic0() const {
        const auto links = ops_->links();
        for (const LinkRecord& each : links.value()) {
            if (each.ifindex == nic_) {
                return each;
            }
        }
        return {};
    }
    /// Settings of IPv6 that are not the default, so that a new interface would have others.
    static void set_unusual_settings() {
        std::ofstream("/proc/sys/net/ipv6/conf/nic0/hop_limit") << "33";
        std::ofstream("/proc/sys/net/ipv6/conf/nic0/accept_ra") << "0";
        std::ofstream("/proc/sys/net/ipv6/neigh/nic0/gc_stale_time") << "77";
    }
};

TEST_F(MtuFault, LowersTheMtuAndGivesItBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(mtu(1, 1400));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_THAT(applied->readback, testing::Contains(std::pair<std::string, std::string>("mtu_bytes", "1400")));
    EXPECT_EQ(nic0().mtu, 1400U);
    ASSERT_TRUE(keeper.apply(mtu(2, 1300)).has_value());
    EXPECT_EQ(nic0().mtu, 1300U);
    ASSERT_TRUE(keeper.revert(2).has_value());
    EXPECT_EQ(nic0().mtu, 1400U);
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(MtuFault, BelowTheSmallestOfIpv6GivesBackAddressesRoutesAndSettings) {
    set_unusual_settings();
    DatagramEnd near4(host_netns_.get(), "10.9.0.1");
    DatagramEnd far4(peer_netns_.get(), "10.9.0.2");
    DatagramEnd near6(host_netns_.get(), "fd09::1");
    DatagramEnd far6(peer_netns_.get(), "fd09::2");
    ASSERT_TRUE(near4.reaches(far4) && near6.reaches(far6));
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(mtu(1, 1000));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    // Addresses, routes, neighbours and every setting of IPv6: otherwise there would be nothing to test.
    EXPECT_LT(snapshot().size() + 50, before.size());
    EXPECT_TRUE(near4.reaches(far4));
    EXPECT_TRUE(near6.is_cut_off_from(far6));
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(DatagramEnd(host_netns_.get(), "fd09::1").reaches(far6));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(MtuFault, GuardRestoresWhenTheAgentIsKilledAtAnyEffect) {
    set_unusual_settings();
    kill_at_every_effect(apply_and_revert(mtu(1, 1000)), false);
}
TEST_F(MtuFault, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffectTogetherWithLinkDown) {
    set_unusual_settings();
    kill_at_every_effect(
        [](FaultKeeper& keeper) {
            return keeper.apply(mtu(1, 1000)) && keeper.apply(down(2)) && keeper.revert(1) && keeper.revert(2);
        },
        true);
}
TEST_F(MtuFault, FailsAtEveryEffect) {
    set_unusual_settings();
    fail_at_every_effect(apply_and_revert(mtu(1, 1000)));
}

TEST_F(MtuFault, GoesTogetherWithLinkDownInAnyOrder) {
    for (std::uint32_t seed = 1; seed <= 8 && !HasFailure(); ++seed) {
        const auto before = snapshot();
        std::mt19937 random(seed);
        FaultKeeper keeper = open_keeper(*ops_, options());
        std::map<std::int32_t, FaultRequest> active;
        for (int step = 0; step < 10 || !active.empty(); ++step) {
            const auto id = static_cast<std::int32_t>(random() % 3);
            if (active.erase(id) != 0) {
                const auto reverted = keeper.revert(id);
                ASSERT_TRUE(reverted.has_value()) << "seed " << seed << ": " << reverted.error().to_line();
            } else if (step < 10) {
                const FaultRequest request =
                    random() % 3 == 0 ? down(id) : mtu(id, static_cast<std::uint32_t>(900 + random() % 600));
                const auto applied = keeper.apply(request);
                ASSERT_TRUE(applied.has_value()) << "seed " << seed << ": " << applied.error().to_line();
                active[id] = request;
            }
            std::vector<FaultRequest> faults;
            for (const auto& [each, fault] : active) {
                faults.push_back(fault);
            }
            const WantedState wanted = compose(faults).value();
            EXPECT_EQ(nic0().mtu, wanted.mtu_bytes.value_or(1500));
            EXPECT_EQ((nic0().flags & IFF_UP) == 0, wanted.down);
        }
        expect_as_before(before, static_cast<int>(seed));
        EXPECT_TRUE(keeper.close().has_value());
        wait_ended(keeper.guard_pid(), kPatience);
    }
}

TEST_F(MtuFault, RefusesWhatTheDeviceCannotHave) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    for (const std::uint32_t wrong : {0U, 67U, 1500U, 9000U, 70'000U}) {
        const auto refused = keeper.apply(mtu(1, wrong));
        ASSERT_FALSE(refused.has_value()) << wrong;
        EXPECT_EQ(refused.error().kind(), ErrorKind::kInput);
        EXPECT_THAT(refused.error().message(), HasSubstr("between 68 and 1499"));
    }
    // A second fault takes the former state over; the kernel itself refuses then, and the first one stays.
    ASSERT_TRUE(keeper.apply(down(1)).has_value());
    const auto refused = keeper.apply(mtu(2, 20));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kInput);
    EXPECT_THAT(refused.error().message(), HasSubstr("mtu less than device minimum"));
    EXPECT_EQ(nic0().flags & IFF_UP, 0U);
    ASSERT_TRUE(keeper.close().has_value());
    expect_as_before(before, 0);
}

TEST_F(MtuFault, RefusesADeviceThatOthersRideOn) {
    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, "rider");
    message.put_u32(IFLA_LINK, static_cast<std::uint32_t>(nic_));
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "macvlan");
    message.end_nest(info);
    if (const auto made = channel_->request(message, "make a macvlan"); !made) {
        GTEST_SKIP() << made.error().to_line();
    }
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply(mtu(1, 1400));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("rider (macvlan) rides on it and would lose its MTU of 1500"));
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

} // namespace
} // namespace railbreak::injectors
