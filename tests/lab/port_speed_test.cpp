// A cap by link modes: refused on what is no hardware, and its whole course on the e1000e of the virtual machine. So is
// the removal of that NIC from its bus.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "injectors/fault_keeper.hpp"
#include "injectors/journal.hpp"
#include "injectors/link_state.hpp"
#include "injectors/message_parts.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/stepped_host_ops.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using hardware::LinkMode;
using hardware::LinkModes;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr BitRate kFull = BitRate::bits_per_s(1'000'000'000);
constexpr BitRate kSlow = BitRate::bits_per_s(100'000'000);

class PortSpeedOfASoftwareNic : public InjectorLab {};

TEST_F(PortSpeedOfASoftwareNic, IsRefusedByName) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto refused = keeper.apply({.id = 1, .kind = FaultKind::kPortSpeed, .nic = "nic0", .rate = kSlow});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(refused.error().message(), "nic0 cannot change its speed: it is no hardware (veth)");
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

/// The virtual machine's NIC runs at 1 Gbit/s whatever it offers. Here it is said to run at the one speed that it
/// offers, as a real port would; everything else is the driver's.
class TrainedOps final : public SteppedHostOps {
public:
    explicit TrainedOps(HostOps& inner) : SteppedHostOps(inner, [](std::string_view) { return Result<void>(); }) {}
    Result<LinkModes> link_modes(std::int32_t ifindex) override {
        return SteppedHostOps::link_modes(ifindex).map([](LinkModes modes) {
            bool only_slow = true;
            for (const LinkMode& mode : modes.modes) {
                only_slow = only_slow && (!mode.advertised || speed_of(mode) == BitRate() || speed_of(mode) == kSlow);
            }
            modes.speed = only_slow ? kSlow : modes.speed;
            return modes;
        });
    }
};

class PortSpeed : public InjectorLab {
protected:
    void SetUp() override {
        std::error_code ignored;
        const auto driver = std::filesystem::read_symlink("/sys/class/net/eth0/device/driver", ignored).filename();
        if (access("/run/guest/module_names", F_OK) != 0 || driver != "e1000e") {
            GTEST_SKIP() << "runs on the e1000e of railbreak's own virtual machine only (./dev test guest)";
        }
        // Tests before this one may have left it for a namespace of their own.
        const UniqueFd machine(open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(setns(machine.get(), CLONE_NEWNET), 0);
        auto opened = open_host_ops();
        ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
        real_ = std::move(*opened);
        prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards of killed agents
        std::string pattern = ::testing::TempDir() + "railbreak-speed-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        ops_ = std::make_unique<TrainedOps>(*real_);
        for (const char* nic : {"eth1", "eth0"}) {
            ASSERT_TRUE(real_->set_link_flags(index(nic), IFF_UP, IFF_UP).has_value());
        }
        ASSERT_TRUE(carrier());
    }
    void TearDown() override {
        if (!folder_.empty()) {
            std::filesystem::remove_all(folder_);
        }
    }
    [[nodiscard]] static std::int32_t index(const char* nic) { return static_cast<std::int32_t>(if_nametoindex(nic)); }
    /// Waits until eth0 runs.
    [[nodiscard]] bool carrier() const {
        return wait_running(*real_, index("eth0"), Deadline::after(kPatience)).value_or(false);
    }
    [[nodiscard]] std::vector<std::string> snapshot() const override {
        EXPECT_TRUE(carrier());
        const LinkModes modes = real_->link_modes(index("eth0")).value();
        const std::vector<AddressRecord> addresses = real_->addresses().value();
        std::vector<std::string> lines;
        for (const LinkMode& mode : modes.modes) {
            lines.push_back(fmt::format("{} {}", mode.name, mode.advertised));
        }
        for (const AddressRecord& address : addresses) {
            lines.push_back(fmt::format("address {} of {}", address.address, address.ifindex));
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    [[nodiscard]] static FaultRequest slow(std::int32_t id, BitRate rate = kSlow) {
        return {.id = id, .kind = FaultKind::kPortSpeed, .nic = "eth0", .rate = rate};
    }

    std::unique_ptr<HostOps> real_;
};

TEST_F(PortSpeed, IsLoweredAndPutBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(slow(1));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "link modes");
    EXPECT_EQ(applied->data_path, "all traffic of the port, RoCE included");
    EXPECT_NE(snapshot(), before);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(PortSpeed, ALinkThatTrainsAtAnotherSpeedIsNoFault) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*real_, options()); // the machine's own NIC stays at its speed
    const auto applied = keeper.apply(slow(1));
    ASSERT_FALSE(applied.has_value());
    EXPECT_THAT(applied.error().to_line(), HasSubstr("offers 100 Mbit/s alone, but the link runs at 1 Gbit/s"));
    EXPECT_TRUE(keeper.revert_all().has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, RefusesWhatThePortCannotOrDoesAlready) {
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto odd = keeper.apply(slow(1, BitRate::bits_per_s(250'000'000)));
    const auto full = keeper.apply(slow(2, kFull));
    ASSERT_FALSE(odd.has_value());
    ASSERT_FALSE(full.has_value());
    EXPECT_THAT(odd.error().to_line(), HasSubstr("no link mode of 250 Mbit/s"));
    EXPECT_THAT(full.error().message(), HasSubstr("eth0 offers no more than 1 Gbit/s as it is"));
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, GoesWithALinkDownInAnyOrder) {
    const auto before = snapshot();
    const FaultRequest down{.id = 2, .kind = FaultKind::kLinkDown, .nic = "eth0"};
    for (const std::int32_t applied : {1, 2}) {
        for (const std::int32_t first : {1, 2}) {
            FaultKeeper keeper = open_keeper(*ops_, options());
            for (const std::int32_t id : {applied, 3 - applied}) {
                const auto done = keeper.apply(id == 1 ? slow(1) : down);
                ASSERT_TRUE(done.has_value()) << id << ": " << done.error().to_line();
            }
            for (const std::int32_t id : {first, 3 - first}) {
                const auto reverted = keeper.revert(id);
                EXPECT_TRUE(reverted.has_value()) << id << ": " << reverted.error().to_line();
            }
            expect_as_before(before, first);
            EXPECT_TRUE(keeper.close().has_value());
        }
    }
}

TEST_F(PortSpeed, ASecondIsHeldToWhatThePortHas) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    ASSERT_TRUE(keeper.apply(slow(1)).has_value());
    const auto odd = keeper.apply(slow(2, BitRate::bits_per_s(250'000'000)));
    ASSERT_FALSE(odd.has_value());
    EXPECT_THAT(odd.error().to_line(), HasSubstr("no link mode of 250 Mbit/s"));
    ASSERT_TRUE(keeper.apply(slow(3)).has_value());
    ASSERT_TRUE(keeper.revert(1).has_value());
    EXPECT_NE(snapshot(), before); // the other still holds it
    ASSERT_TRUE(keeper.revert(3).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

TEST_F(PortSpeed, ComesBackWhicheverStepFails) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(slow(1))), 5);
}

TEST_F(PortSpeed, ComesBackFromTheJournalWhereverAgentAndGuardAreKilled) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(slow(1)), true), 5);
}

/// The same NIC leaves its bus with an address, a route, a neighbour and an MTU of its own, and comes back with them.
class PciRemoval : public PortSpeed {
protected:
    void SetUp() override {
        PortSpeed::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        ops_ = std::make_unique<SteppedHostOps>(*real_, [](std::string_view) { return Result<void>(); });
        auto channel = NetlinkChannel::open();
        ASSERT_TRUE(channel.has_value());
        channel_ = std::make_unique<NetlinkChannel>(std::move(*channel));
        ASSERT_TRUE(real_->set_mtu(index("eth0"), 1400).has_value());
        constexpr std::array<std::uint8_t, 4> kOwn{10, 77, 0, 1};
        constexpr std::array<std::uint8_t, 4> kPeer{10, 77, 0, 2};
        constexpr std::array<std::uint8_t, 6> kPeerMac{2, 9, 9, 9, 9, 9};
        NetlinkMessage address(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
        ifaddrmsg owner{};
        owner.ifa_family = AF_INET;
        owner.ifa_prefixlen = 24;
        owner.ifa_index = static_cast<std::uint32_t>(index("eth0"));
        address.append_header(owner);
        address.put_bytes(IFA_LOCAL, kOwn.data(), kOwn.size());
        send(address, "give eth0 an address");
        NetlinkMessage neighbour(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
        ndmsg entry{};
        entry.ndm_family = AF_INET;
        entry.ndm_ifindex = index("eth0");
        entry.ndm_state = NUD_PERMANENT;
        neighbour.append_header(entry);
        neighbour.put_bytes(NDA_DST, kPeer.data(), kPeer.size());
        neighbour.put_bytes(NDA_LLADDR, kPeerMac.data(), kPeerMac.size());
        send(neighbour, "give eth0 a neighbour");
        NetlinkMessage route(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
        rtmsg way{};
        way.rtm_family = AF_INET;
        way.rtm_dst_len = 16;
        way.rtm_table = RT_TABLE_MAIN;
        way.rtm_protocol = RTPROT_STATIC;
        way.rtm_type = RTN_UNICAST;
        route.append_header(way);
        constexpr std::array<std::uint8_t, 4> kThere{10, 78, 0, 0};
        route.put_bytes(RTA_DST, kThere.data(), kThere.size());
        route.put_bytes(RTA_GATEWAY, kPeer.data(), kPeer.size());
        send(route, "give eth0 a route");
        // The kernel takes its time over the address that it gives the link itself.
        const Deadline deadline = Deadline::after(kPatience);
        while (!has_own_ipv6_route() && !deadline.passed()) {
            ASSERT_TRUE(real_->wait_event(Deadline::after(std::chrono::seconds(1))).has_value());
        }
        ASSERT_TRUE(has_own_ipv6_route());
    }
    [[nodiscard]] bool has_own_ipv6_route() const {
        const std::vector<std::string> routes = real_->records(RecordKind::kRoutes, index("eth0")).value();
        return std::any_of(routes.begin(), routes.end(), [](const std::string& route) {
            const auto header = family_header<rtmsg>(route);
            return header.rtm_family == AF_INET6 && header.rtm_type == RTN_LOCAL;
        });
    }
    /// Everything but the interface's index.
    [[nodiscard]] std::vector<std::string> snapshot() const override {
        const std::int32_t own = index("eth0");
        EXPECT_TRUE(own != 0 && carrier());
        std::vector<std::string> lines;
        const std::vector<LinkRecord> links = real_->links().value();
        for (const LinkRecord& link : links) {
            if (link.ifindex == own) {
                lines.push_back(fmt::format("{} {} MTU {} up {}", link.name, link.mac, link.mtu, link.flags & IFF_UP));
            }
        }
        for (const RecordKind kind : {RecordKind::kAddresses, RecordKind::kRoutes, RecordKind::kNeighbours}) {
            const std::vector<std::string> records = real_->records(kind, own).value();
            for (const std::string& record : records) {
                add_line(lines, record);
            }
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    [[nodiscard]] static FaultRequest removal() { return {.id = 1, .kind = FaultKind::kPciRemove, .nic = "eth0"}; }
    /// Applies the removal, after which agent and, if so asked, guard are killed.
    [[nodiscard]] static Script killed_while_removed(bool guard_too) {
        return [guard_too](FaultKeeper& keeper) {
            if (keeper.apply(removal()) && if_nametoindex("eth0") == 0) {
                if (guard_too) {
                    kill(keeper.guard_pid(), SIGKILL);
                }
                kill(getpid(), SIGKILL);
            }
            return false;
        };
    }

private:
    /// The record as it is compared, in hexadecimal digits, without the interface's index.
    static void add_line(std::vector<std::string>& lines, const std::string& record) {
        Parts parts = take_apart(comparable_record(record));
        if (head_of(record).nlmsg_type == RTM_NEWROUTE) {
            drop(parts, {RTA_OIF});
        } else if (!parts.head.empty()) {
            static_assert(offsetof(ifaddrmsg, ifa_index) == 4 && offsetof(ndmsg, ndm_ifindex) == 4);
            parts.head.replace(NLMSG_HDRLEN + 4, 4, 4, '\0');
        }
        const std::string bytes = parts.head.empty() ? std::string() : put_together(parts);
        if (bytes.empty()) {
            return;
        }
        std::string line;
        for (const char byte : bytes) {
            line += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        }
        lines.push_back(std::move(line));
    }
};

TEST_F(PciRemoval, TheNicComesBackWithAllThatItHad) {
    const auto before = snapshot();
    EXPECT_GE(before.size(), 5U);
    const std::int32_t former = index("eth0");
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(removal());
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "PCI removal");
    EXPECT_EQ(index("eth0"), 0);
    const auto reverted = keeper.revert(1);
    ASSERT_TRUE(reverted.has_value()) << reverted.error().to_line();
    EXPECT_NE(index("eth0"), former);
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(PciRemoval, TheGuardBringsItBackWhenTheAgentIsKilled) {
    const auto before = snapshot();
    EXPECT_FALSE(run_agent(killed_while_removed(false), 0, false));
    expect_as_before(before, 0);
}

TEST_F(PciRemoval, RecoveryBringsItBackWhenAgentAndGuardAreKilled) {
    const auto before = snapshot();
    EXPECT_FALSE(run_agent(killed_while_removed(true), 0, false));
    EXPECT_EQ(index("eth0"), 0);
    const auto report = FaultKeeper::recover(*real_, folder_);
    ASSERT_TRUE(report.has_value()) << report.error().to_line();
    EXPECT_TRUE(report->complete());
    expect_as_before(before, 0);
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(PciRemoval, WhatWouldBeLostForGoodIsARefusal) {
    const auto before = snapshot();
    const auto refusal = [&](const FaultRequest& request) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        const auto refused = keeper.apply(request);
        EXPECT_TRUE(keeper.close().has_value());
        return refused ? std::string("not refused") : refused.error().to_line();
    };
    nic_ = index("eth0");
    ASSERT_TRUE(real_->make_htb(nic_, kLabHtb).has_value());
    EXPECT_THAT(refusal(removal()), HasSubstr("eth0 has the queueing discipline htb fb01:"));
    ASSERT_TRUE(real_->remove_qdisc(nic_, kTcRoot, kLabHtb).has_value());
    FaultKeeper keeper = open_keeper(*ops_, options());
    FaultRequest down{.id = 2, .kind = FaultKind::kLinkDown, .nic = "eth0"};
    ASSERT_TRUE(keeper.apply(down).has_value());
    const auto refused = keeper.apply(removal());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr("pci_remove and link_down cannot be combined on one NIC"));
    ASSERT_TRUE(keeper.revert(2).has_value());
    EXPECT_TRUE(keeper.close().has_value());
    expect_as_before(before, 0);
}

/// Each takes the NIC half a minute: not in the usual selection of the virtual machine.
TEST_F(PciRemoval, ComesBackWhereverAgentAndGuardAreKilledAtEveryEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(removal()), true), 8);
}

TEST_F(PciRemoval, ComesBackAfterAFailureAtEveryEffect) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(removal())), 8);
}

} // namespace
} // namespace railbreak::injectors
