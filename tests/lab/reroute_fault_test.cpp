// What one NIC's addresses send leaves through the other: seen in the counters of both, on connections that exist.
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "injectors/link_state.hpp"
#include "injectors/own_routes.hpp"
#include "injectors/real_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"
#include "tests/lab/stream.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBulk = std::size_t{1} << 20;

FaultRequest reroute(std::int32_t id) {
    return {.id = id, .kind = FaultKind::kReroute, .nic = "nic0", .via_nic = "nic1"};
}
FaultRequest down(std::int32_t id, const char* nic) {
    return {.id = id, .kind = FaultKind::kLinkDown, .nic = nic};
}

class RerouteFault : public InjectorLab {
protected:
    void SetUp() override {
        InjectorLab::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        // Hosts may hand their own settings down; what is tested is written here.
        for (const char* nic : {"all", "nic0", "nic1"}) {
            ASSERT_TRUE(ops_->write_file(filter_of(nic), "0").has_value());
        }
        auto peer = open_host_ops_in(peer_netns_.get());
        ASSERT_TRUE(peer.has_value());
        for (const char* nic : {"all", "peer0", "peer1"}) {
            ASSERT_TRUE((*peer)->write_file(filter_of(nic), "0").has_value());
        }
    }
    static std::string filter_of(const std::string& nic) { return "/proc/sys/net/ipv4/conf/" + nic + "/rp_filter"; }
    Stream stream(const std::string& near, const std::string& far) const {
        return {host_netns_.get(), near, peer_netns_.get(), far};
    }
    [[nodiscard]] std::uint64_t sent(std::int32_t ifindex) const {
        const auto links = ops_->links();
        for (const LinkRecord& each : links.value()) {
            if (each.ifindex == ifindex) {
                return each.sent_bytes;
            }
        }
        return 0;
    }
    /// The stream's bytes leave through that NIC, and not through the other.
    void expect_leaves_through(Stream& stream, std::int32_t through, std::int32_t other) {
        const std::uint64_t through_before = sent(through);
        const std::uint64_t other_before = sent(other);
        ASSERT_TRUE(stream.carry(kBulk));
        EXPECT_GE(sent(through) - through_before, kBulk);
        EXPECT_LT(sent(other) - other_before, kBulk / 8);
    }
};

TEST_F(RerouteFault, MovesLiveConnectionsOfBothFamiliesThereAndBack) {
    Stream ip4 = stream("10.9.0.1", "10.9.0.2");
    Stream secondary = stream("10.9.0.77", "10.9.0.2");
    Stream ip6 = stream("fd09::1", "fd09::2");
    Stream other = stream("10.10.0.1", "10.10.0.2");
    for (Stream* each : {&ip4, &secondary, &ip6}) {
        expect_leaves_through(*each, nic_, nic1_);
    }
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(reroute(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "policy rules and a routing table");
    for (Stream* each : {&ip4, &secondary, &ip6, &other}) {
        expect_leaves_through(*each, nic1_, nic_);
    }
    Stream late = stream("10.9.0.1", "10.9.0.2"); // those that begin now, too
    expect_leaves_through(late, nic1_, nic_);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    // Counted last, before the undo.
    const auto carried = std::find_if(reverted->readback.begin(), reverted->readback.end(),
                                      [](const auto& each) { return each.first == "via_nic_sent_bytes"; });
    ASSERT_NE(carried, reverted->readback.end());
    EXPECT_GE(std::stoull(carried->second), 4 * kBulk);
    for (Stream* each : {&ip4, &secondary, &ip6, &late}) {
        expect_leaves_through(*each, nic_, nic1_);
    }
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, LoosensAStrictReverseFilterAndTightensItAgain) {
    ASSERT_TRUE(ops_->write_file(filter_of("nic0"), "1").has_value());
    Stream ip4 = stream("10.9.0.1", "10.9.0.2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    expect_leaves_through(ip4, nic1_, nic_); // answers still come in on nic0
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, GuardRestoresWhenTheAgentIsKilledAtAnyEffect) {
    ASSERT_TRUE(ops_->write_file(filter_of("nic0"), "1").has_value());
    kill_at_every_effect(apply_and_revert(reroute(1)), false);
}
TEST_F(RerouteFault, RecoveryRestoresWhenAgentAndGuardAreKilledAtAnyEffect) {
    kill_at_every_effect(apply_and_revert(reroute(1)), true);
}
TEST_F(RerouteFault, FailsAtEveryEffectTogetherWithLinkDown) {
    fail_at_every_effect([](FaultKeeper& keeper) {
        return keeper.apply(reroute(1)) && keeper.apply(down(2, "nic0")) && keeper.revert(1) && keeper.revert(2);
    });
}

TEST_F(RerouteFault, GoesTogetherWithACapOnTheOtherNic) {
    Stream ip4 = stream("10.9.0.1", "10.9.0.2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const FaultRequest cap{.id = 2,
                           .kind = FaultKind::kCap,
                           .nic = "nic1",
                           .direction = Direction::kBoth,
                           .rate = BitRate::bits_per_s(200'000'000)};
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    ASSERT_TRUE(keeper.apply(cap).has_value());
    expect_leaves_through(ip4, nic1_, nic_);
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_leaves_through(ip4, nic_, nic1_);
    ASSERT_TRUE(keeper.apply(reroute(3)).has_value());
    ASSERT_TRUE(keeper.revert(2).has_value());
    expect_leaves_through(ip4, nic1_, nic_);
    ASSERT_TRUE(keeper.revert(3).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, BothNicsMaySwap) {
    Stream first = stream("10.9.0.1", "10.9.0.2");
    Stream second = stream("10.10.0.1", "10.10.0.2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    ASSERT_TRUE(keeper.apply({.id = 2, .kind = FaultKind::kReroute, .nic = "nic1", .via_nic = "nic0"}).has_value());
    expect_leaves_through(first, nic1_, nic_);
    expect_leaves_through(second, nic_, nic1_);
    ASSERT_TRUE(keeper.revert(1).has_value());
    ASSERT_TRUE(keeper.revert(2).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, ComesBeforeTheRulesOfOthers) {
    SourceRule foreign{AF_INET, 77, RTPROT_STATIC, 100, std::string("\x0a\x09\x00\x01", 4), 32};
    ASSERT_TRUE(ops_->replay(new_rule(foreign), NLM_F_CREATE | NLM_F_EXCL).has_value());
    Stream ip4 = stream("10.9.0.1", "10.9.0.2");
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    expect_leaves_through(ip4, nic1_, nic_);
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    ASSERT_TRUE(ops_->replay(delete_rule(foreign), 0).has_value());
    foreign.priority = 1; // no room before it
    ASSERT_TRUE(ops_->replay(new_rule(foreign), NLM_F_CREATE | NLM_F_EXCL).has_value());
    const auto refused = keeper.apply(reroute(2));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("a policy rule of priority 1"));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, RefusesAForeignUseOfItsTable) {
    const std::uint32_t table = own_route_table(nic_);
    add_route(AF_INET, "192.168.99.0", 24, "", table, static_cast<std::uint32_t>(nic1_));
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply(reroute(1));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_THAT(refused.error().message(), HasSubstr("routing table " + std::to_string(table)));
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, RefusesNicsThatCannotTakeOver) {
    add_route(AF_INET, "", 0, "10.10.0.2", 99, static_cast<std::uint32_t>(nic1_)); // a default route, in any table
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto expect_refused = [&](const FaultRequest& request, ErrorKind kind, const char* why) {
        const auto refused = keeper.apply(request);
        ASSERT_FALSE(refused.has_value()) << why;
        EXPECT_EQ(refused.error().kind(), kind);
        EXPECT_THAT(refused.error().message(), HasSubstr(why));
    };
    expect_refused(reroute(1), ErrorKind::kRefused, "nic1 may not be touched: it carries the default route");
    FaultRequest unknown = reroute(1);
    unknown.via_nic = "nic7";
    expect_refused(unknown, ErrorKind::kRefused, "no network interface nic7");
    unknown.via_nic = "nic0";
    expect_refused(unknown, ErrorKind::kInput, "needs another NIC");
    unknown.via_nic = "lo";
    expect_refused(unknown, ErrorKind::kRefused, "loopback");
    ASSERT_TRUE(ops_->set_link_flags(nic1_, IFF_UP, 0).has_value()); // takes its default route away, too
    expect_refused(reroute(1), ErrorKind::kRefused, "nic1 is down");
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, RefusesNicsWithADefaultRouteInAllButName) {
    const auto devices = [&] { return ops_->default_route_devices().value(); };
    const auto nic1 = static_cast<std::uint32_t>(nic1_);
    ASSERT_THAT(devices(), ::testing::Not(::testing::Contains(nic1_)));
    add_route(AF_INET, "128.0.0.0", 1, "10.10.0.2", 99, nic1); // a VPN's half
    EXPECT_THAT(devices(), ::testing::Contains(nic1_));
    ASSERT_TRUE(ops_->set_link_flags(nic1_, IFF_UP, 0).has_value()); // takes the route away
    ASSERT_THAT(devices(), ::testing::Not(::testing::Contains(nic1_)));
    ASSERT_TRUE(ops_->set_link_flags(nic1_, IFF_UP, IFF_UP).has_value());
    add_route(AF_INET, "16.0.0.0", 4, "10.10.0.2", 99, nic1);
    EXPECT_THAT(devices(), ::testing::Not(::testing::Contains(nic1_)));
}

TEST_F(RerouteFault, TheNicThatTakesOverKeepsItsRoutes) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    const FaultRequest small{.id = 2, .kind = FaultKind::kMtu, .nic = "nic1", .mtu_bytes = 1000};
    for (const FaultRequest& request : {down(2, "nic1"), small}) {
        const auto refused = keeper.apply(request);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    }
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, WithoutAnIpv6GatewayIpv6StaysWhereItIs) {
    for (std::string message : ops_->records(RecordKind::kRoutes, nic1_).value_or(std::vector<std::string>())) {
        const auto hops = read_route(message);
        if (!hops.empty() && hops.front().family == AF_INET6 && !hops.front().gateway.empty()) {
            const std::uint16_t type = RTM_DELROUTE;
            std::memcpy(message.data() + offsetof(nlmsghdr, nlmsg_type), &type, sizeof type);
            ASSERT_TRUE(ops_->replay(message, 0).has_value());
        }
    }
    Stream ip4 = stream("10.9.0.1", "10.9.0.2");
    Stream ip6 = stream("fd09::1", "fd09::2");
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto preview = keeper.preview(reroute(1));
    ASSERT_TRUE(preview.has_value());
    EXPECT_THAT(preview->steps.changes, testing::Contains(HasSubstr("IPv6 stays where it is")));
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    expect_leaves_through(ip4, nic1_, nic_);
    expect_leaves_through(ip6, nic_, nic1_);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(RerouteFault, LeavesNothingWhenTheDeviceIsGone) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto before = ops_->rules();
    ASSERT_TRUE(keeper.apply(reroute(1)).has_value());
    ASSERT_TRUE(ops_->remove_link(nic_).has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_EQ(ops_->rules().value().size(), before.value().size());
    for (const std::string& message : ops_->records(RecordKind::kRoutes, nic1_).value_or(std::vector<std::string>())) {
        for (const Route& route : read_route(message)) {
            EXPECT_NE(route.protocol, kOwnRouteProtocol);
        }
    }
    EXPECT_TRUE(keeper.close().has_value());
}

} // namespace
} // namespace railbreak::injectors
