// Hardware mechanisms on a real driver: the e1000e and the software RoCE of the virtual machine. Only there: these
// tests take a NIC off its bus.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/hardware/dcb.hpp"
#include "injectors/hardware/devlink_rate.hpp"
#include "injectors/hardware/link_modes.hpp"
#include "injectors/hardware/pci.hpp"
#include "injectors/hardware/pcie_speed.hpp"
#include "injectors/hardware/probes.hpp"
#include "injectors/hardware/qp_error.hpp"
#include "injectors/hardware/rdma_devices.hpp"
#include "injectors/hardware/vf.hpp"
#include "injectors/real_host_ops.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr const char* kNic = "eth0";
constexpr auto kPatience = std::chrono::seconds(60);

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

template <class T> testing::AssertionResult done(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

class GuestNic : public testing::Test {
protected:
    void SetUp() override {
        const bool guest =
            ::access("/run/guest/module_names", F_OK) == 0 && sysfs_.read("class/dmi/id/sys_vendor") == "QEMU";
        const auto function = pci_function_of_nic(sysfs_, kNic);
        if (!guest || !function || function->driver != "e1000e") {
            GTEST_SKIP() << "runs on the e1000e of railbreak's own virtual machine only (./dev test guest)";
        }
        auto route = NetlinkChannel::open();
        auto generic = NetlinkChannel::open(NETLINK_GENERIC);
        auto ops = open_host_ops();
        ASSERT_TRUE(done(route));
        ASSERT_TRUE(done(generic));
        ASSERT_TRUE(done(ops));
        route_.emplace(std::move(*route));
        generic_.emplace(std::move(*generic));
        ops_ = std::move(*ops);
    }
    std::int32_t ifindex(const char* name = kNic) {
        const auto index = interface_index(*route_, name);
        EXPECT_TRUE(done(index));
        return index.value_or(0);
    }
    void set_up(const char* name) { EXPECT_TRUE(done(ops_->set_link_flags(ifindex(name), IFF_UP, IFF_UP))); }
    GenericFamily ethtool() {
        const auto family = find_family(*generic_, "ethtool");
        EXPECT_TRUE(done(family));
        return family.value_or(GenericFamily{});
    }
    LinkModes modes() {
        const auto read = read_link_modes(*generic_, ethtool(), kNic);
        EXPECT_TRUE(done(read));
        return read.value_or(LinkModes{});
    }
    /// Waits until the link runs at that speed.
    bool reaches(BitRate speed) {
        const auto deadline = Deadline::after(kPatience);
        while (modes().speed != speed) {
            const auto event = ops_->wait_event(deadline);
            if (!event || !*event) {
                return false;
            }
        }
        return true;
    }
    const Sysfs sysfs_;
    std::optional<NetlinkChannel> route_;
    std::optional<NetlinkChannel> generic_;
    std::unique_ptr<HostOps> ops_;
};

std::string to_line(const LinkModes& modes) {
    std::string line = fmt::format("autoneg {} speed {} duplex {}, advertised", modes.autonegotiation,
                                   modes.speed ? to_string(*modes.speed) : "unknown", modes.duplex);
    for (const LinkMode& mode : modes.modes) {
        line += fmt::format(" {}{}", mode.advertised ? "" : "!", mode.name);
    }
    return line;
}

TEST_F(GuestNic, LinkModesAreNarrowedAndPutBack) {
    set_up("eth1");
    set_up(kNic);
    ASSERT_TRUE(reaches(mbit(1000)));
    const auto former = modes();
    std::printf("before: %s\n", to_line(former).c_str());
    ASSERT_TRUE(done(set_link_speed(*generic_, ethtool(), kNic, former, mbit(100))));
    const auto narrowed = modes();
    std::printf("narrowed: %s\n", to_line(narrowed).c_str());
    EXPECT_EQ(advertised(narrowed), narrowed_to(former, mbit(100)).value_or(std::vector<std::uint32_t>{}));
    EXPECT_NE(advertised(narrowed), advertised(former));
    // The link trains anew; the emulated NIC does so at its only speed, whatever it advertises.
    EXPECT_EQ(narrowed.speed, std::nullopt);
    ASSERT_TRUE(reaches(mbit(1000)));
    ASSERT_TRUE(done(restore_link_modes(*generic_, ethtool(), kNic, former)));
    EXPECT_TRUE(reaches(mbit(1000)));
    std::printf("restored: %s\n", to_line(modes()).c_str());
    EXPECT_EQ(modes(), former);
}

TEST_F(GuestNic, ASpeedThatTheNicLacksChangesNothing) {
    const auto former = modes();
    EXPECT_FALSE(set_link_speed(*generic_, ethtool(), kNic, former, mbit(2500)));
    EXPECT_EQ(advertised(modes()), advertised(former));
}

TEST_F(GuestNic, WhatTheDriverLacksIsNamed) {
    const auto dcb = read_dcb(*route_, kNic);
    ASSERT_FALSE(dcb);
    EXPECT_EQ(kernel_errno(dcb.error()), EOPNOTSUPP);
    const auto vfs = read_vfs(*route_, ifindex());
    ASSERT_TRUE(done(vfs));
    EXPECT_TRUE(vfs->empty());
    const auto devlink = find_family(*generic_, "devlink");
    ASSERT_TRUE(done(devlink)); // Debian's kernel has it
    EXPECT_TRUE(done(list_rates(*generic_, *devlink)));
    EXPECT_TRUE(done(list_devlink_ports(*generic_, *devlink)));
    // The kernel understands the question for one object: it is the device that it does not know.
    const auto rate = read_rate(*generic_, *devlink, {"pci", "0000:00:1f.7", 1, ""});
    ASSERT_FALSE(rate);
    EXPECT_EQ(kernel_errno(rate.error()), ENODEV) << rate.error().to_line();
}

TEST_F(GuestNic, TheFunctionLeavesTheBusAndComesBack) {
    const auto former = pci_function_of_nic(sysfs_, kNic);
    ASSERT_TRUE(done(former));
    std::printf("%s below \"%s\", %s\n", former->address.c_str(), former->upstream.c_str(),
                rescan_path(*former).c_str());
    const auto old_index = ifindex();
    ASSERT_TRUE(done(check_removable(sysfs_, *former, {"eth1"})));
    EXPECT_FALSE(check_removable(sysfs_, *former, {kNic}));
    ASSERT_TRUE(done(remove_pci_function(sysfs_, *former)));
    EXPECT_FALSE(interface_index(*route_, kNic));
    const auto wait = [&](Deadline deadline) { return ops_->wait_event(deadline); };
    const auto back = restore_pci_function(sysfs_, *former, wait, Deadline::after(kPatience));
    ASSERT_TRUE(done(back));
    EXPECT_EQ(*back, *former);
    EXPECT_NE(ifindex(back->nics.at(0).name.c_str()), old_index);
}

TEST_F(GuestNic, ThePciePortHasASpeedControlOrTheReasonIsTold) {
    const auto function = pci_function_of_nic(sysfs_, kNic);
    ASSERT_TRUE(done(function));
    const auto control = find_pcie_speed(sysfs_, *function);
    if (!control) { // before Linux 6.13
        EXPECT_EQ(control.error().kind(), ErrorKind::kRefused);
        return;
    }
    EXPECT_TRUE(done(set_pcie_speed(sysfs_, *control, control->slowest_state)));
    EXPECT_TRUE(done(restore_pcie_speed(sysfs_, *control)));
}

TEST_F(GuestNic, TheProbesSayWhatIsThere) {
    const auto list = probe_hardware({*route_, *generic_, sysfs_, kNic, read_privileges(), {}, "/dev"});
    ASSERT_TRUE(done(list));
    for (const HardwareMechanism& each : *list) {
        std::printf("%-15s %-11s %s%s%s\n", each.name.c_str(), std::string(to_string(each.availability)).c_str(),
                    each.device.c_str(), each.missing.empty() ? "" : ": ", each.missing.c_str());
        EXPECT_EQ(each.availability == Availability::kAvailable, each.name == "pci_remove") << each.name;
        EXPECT_EQ(each.availability == Availability::kUnproven, each.name == "link_modes") << each.name;
    }
}

/// Software RoCE on the NIC, made by RDMA netlink.
class GuestRoce : public GuestNic {
protected:
    void SetUp() override {
        GuestNic::SetUp();
        if (IsSkipped()) {
            return;
        }
        set_up(kNic);
        auto rdma = NetlinkChannel::open(NETLINK_RDMA);
        ASSERT_TRUE(done(rdma));
        NetlinkMessage message(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK), 0);
        message.put_string(RDMA_NLDEV_ATTR_DEV_NAME, "soft0");
        message.put_string(RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
        message.put_string(RDMA_NLDEV_ATTR_NDEV_NAME, kNic);
        const auto made = rdma->request(message, "make a software RoCE device");
        ASSERT_TRUE(made || kernel_errno(made.error()) == EEXIST) << made.error().to_line();
    }
};

/// In the victim: a queue pair with a posted receive; says "ready", then waits for the receive to be flushed.
int be_the_victim(int ready_fd) {
    int count = 0;
    ibv_device** devices = ::ibv_get_device_list(&count);
    ibv_context* context = count > 0 ? ::ibv_open_device(devices[0]) : nullptr;
    ibv_pd* domain = context != nullptr ? ::ibv_alloc_pd(context) : nullptr;
    ibv_comp_channel* channel = domain != nullptr ? ::ibv_create_comp_channel(context) : nullptr;
    ibv_cq* queue = channel != nullptr ? ::ibv_create_cq(context, 8, nullptr, channel, 0) : nullptr;
    ibv_qp_init_attr wanted{};
    wanted.send_cq = queue;
    wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = 4;
    wanted.cap.max_recv_wr = 4;
    wanted.cap.max_send_sge = 1;
    wanted.cap.max_recv_sge = 1;
    ibv_qp* pair = queue != nullptr ? ::ibv_create_qp(domain, &wanted) : nullptr;
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = 1;
    if (pair == nullptr ||
        ::ibv_modify_qp(pair, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0) {
        return 3;
    }
    ibv_recv_wr receive{};
    ibv_recv_wr* bad = nullptr;
    if (::ibv_req_notify_cq(queue, 0) != 0 || ::ibv_post_recv(pair, &receive, &bad) != 0 ||
        ::write(ready_fd, "r", 1) != 1) {
        return 4;
    }
    const auto deadline = Deadline::after(kPatience);
    pollfd waiter{channel->fd, POLLIN, 0};
    ibv_wc completion{};
    if (::poll(&waiter, 1, deadline.poll_timeout_ms()) == 1 && ::ibv_poll_cq(queue, 1, &completion) == 1) {
        return completion.status == IBV_WC_WR_FLUSH_ERR ? 0 : 5;
    }
    return 6;
}

TEST_F(GuestRoce, TheDeviceIsFoundWithItsInterfaceAndNode) {
    const auto devices = rdma_devices_of(sysfs_, kNic);
    ASSERT_EQ(devices.size(), 1U);
    EXPECT_EQ(devices[0].name, "soft0");
    EXPECT_EQ(devices[0].pci_address, "");
    EXPECT_NE(devices[0].verbs_node, "");
    ASSERT_EQ(devices[0].ports.size(), 1U);
    EXPECT_EQ(devices[0].ports[0].link_layer, "Ethernet");
    const auto list = probe_hardware({*route_, *generic_, sysfs_, kNic, read_privileges(), {}, "/dev"});
    ASSERT_TRUE(done(list));
    const auto found =
        std::find_if(list->begin(), list->end(), [](const HardwareMechanism& each) { return each.name == "qp_error"; });
    ASSERT_NE(found, list->end());
    EXPECT_EQ(found->availability, Availability::kAvailable) << found->missing;
    EXPECT_EQ(found->device, "soft0");
}

TEST_F(GuestRoce, QueuePairsOfAnotherProcessGoToTheErrorState) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t victim = ::fork();
    if (victim == 0) {
        ::_exit(be_the_victim(ends[1]));
    }
    ::close(ends[1]);
    char ready = 0;
    const bool started = ::read(ends[0], &ready, 1) == 1;
    ::close(ends[0]);
    if (started) {
        const auto pairs = list_queue_pairs(victim);
        EXPECT_TRUE(done(pairs));
        if (pairs) {
            EXPECT_EQ(pairs->size(), 1U);
            EXPECT_TRUE(!pairs->empty() && pairs->front().state == QueuePairState::kInit);
        }
        const auto forced = force_queue_pairs_to_error(victim);
        EXPECT_TRUE(done(forced));
        EXPECT_EQ(forced.value_or(0), 1U);
        EXPECT_EQ(force_queue_pairs_to_error(victim).value_or(9), 0U); // they are in that state already
    }
    int status = 0;
    ASSERT_EQ(::waitpid(victim, &status, 0), victim);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "3: no queue pair, 4: no receive, 5: another completion, 6: no completion";
}

} // namespace
} // namespace railbreak::injectors::hardware
