// Probing a NIC: a veth offers nothing and says why; a tree of files shows what an InfiniBand NIC would.
#include "injectors/hardware/probes.hpp"

#include <algorithm>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/hardware/rdma_devices.hpp"
#include "tests/unit/injectors/hardware/replay_kernel.hpp"
#include "tests/unit/injectors/hardware/sysfs_tree.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::string_view kNicPath = "0000:00:01.0/0000:01:00.0";
const Privileges kRoot{true, true, true};

/// A sysfs in which nic0 is port 1 of mlx5_0 (InfiniBand) and soft0 (software RoCE) sits on nic1.
void add_rdma(SysfsTree& tree) {
    tree.pci_function("0000:00:01.0", "0x060400", "pcieport");
    tree.pci_function(kNicPath, "0x020700", "mlx5_core");
    tree.nic(kNicPath, "nic0", "02:00:00:00:00:10");
    tree.file("devices/virtual/net/nic1/address", "02:00:00:00:00:11");
    tree.link("class/net/nic1", "devices/virtual/net/nic1");
    const std::string device = "devices/pci0000:00/0000:00:01.0/0000:01:00.0";
    tree.file("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand");
    tree.file("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    tree.file("class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp");
    tree.link("class/infiniband/mlx5_0/device", device);
    tree.file("class/infiniband/soft0/ports/1/link_layer", "Ethernet");
    tree.file("class/infiniband/soft0/ports/1/state", "1: DOWN");
    tree.file("class/infiniband/soft0/ports/1/phys_state", "3: Disabled");
    tree.file("class/infiniband/soft0/ports/1/gid_attrs/ndevs/0", "nic1");
    tree.file("class/infiniband/soft0/ports/1/gid_attrs/ndevs/1", "nic1");
    tree.file("class/infiniband/soft0/ports/1/gid_attrs/ndevs/2", "");
    tree.file("class/infiniband_mad/issm0/ibdev", "mlx5_0");
    tree.file("class/infiniband_mad/issm0/port", "1");
    tree.file("class/infiniband_mad/umad3/ibdev", "mlx5_0");
    tree.file("class/infiniband_mad/umad3/port", "1");
    tree.file("class/infiniband_verbs/uverbs0/ibdev", "mlx5_0");
    tree.file("class/infiniband_verbs/uverbs1/ibdev", "soft0");
}

TEST(RdmaDevices, AreReadWithTheirNodes) {
    SysfsTree tree;
    add_rdma(tree);
    const RdmaDevice infiniband{
        "mlx5_0", "0000:01:00.0", "uverbs0", {{1, "InfiniBand", "ACTIVE", "LinkUp", {}, "umad3"}}};
    const RdmaDevice software{"soft0", "", "uverbs1", {{1, "Ethernet", "DOWN", "Disabled", {"nic1"}, ""}}};
    EXPECT_EQ(list_rdma_devices(tree.sysfs()), (std::vector<RdmaDevice>{infiniband, software}));
    EXPECT_EQ(rdma_devices_of(tree.sysfs(), "nic0"), std::vector<RdmaDevice>{infiniband});
    EXPECT_EQ(rdma_devices_of(tree.sysfs(), "nic1"), std::vector<RdmaDevice>{software});
    EXPECT_TRUE(rdma_devices_of(tree.sysfs(), "none0").empty());
}

class Probes : public VethNamespace {
protected:
    std::vector<HardwareMechanism> probe(const Sysfs& sysfs, Privileges privileges,
                                         std::vector<std::string> protected_nics = {}, std::string nodes = "/dev") {
        const auto list = probe_hardware(
            {*route_, *generic_, sysfs, "nic0", privileges, std::move(protected_nics), std::move(nodes)});
        EXPECT_TRUE(done(list));
        return list.value_or(std::vector<HardwareMechanism>{});
    }
    static HardwareMechanism find(const std::vector<HardwareMechanism>& list, std::string_view name) {
        const auto found = std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
        EXPECT_NE(found, list.end()) << name;
        return found != list.end() ? *found : HardwareMechanism{};
    }
};

TEST_F(Probes, AVethOffersNothingAndSaysWhy) {
    SysfsTree tree;
    tree.file("devices/virtual/net/nic0/address", "02:00:00:00:00:11");
    tree.link("class/net/nic0", "devices/virtual/net/nic0");
    const auto list = probe(tree.sysfs(), kRoot);
    std::vector<std::string> names;
    for (const HardwareMechanism& each : list) {
        if (!each.name.starts_with("gpu_")) {
            EXPECT_EQ(each.availability, Availability::kMissing) << each.name;
            EXPECT_FALSE(each.missing.empty()) << each.name;
            names.push_back(each.name);
        }
        EXPECT_FALSE(each.proven_how.empty()) << each.name;
        EXPECT_FALSE(each.acts_on.empty()) << each.name;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"dcb_class_rate", "devlink_rate", "vf_rate", "vf_link_state",
                                               "link_modes", "ib_port", "qp_error", "pci_remove", "pcie_speed"}));
    EXPECT_NE(find(list, "dcb_class_rate").missing.find("no hardware"), std::string::npos);
    EXPECT_NE(find(list, "pci_remove").missing.find("no PCI device"), std::string::npos);
}

TEST_F(Probes, GpusAreNamedOrTheirAbsenceIs) {
    const SysfsTree tree;
    const auto power = find(probe(tree.sysfs(), kRoot), "gpu_power");
    EXPECT_NE(power.availability, Availability::kAvailable);
    EXPECT_EQ(power.device.empty(), power.availability == Availability::kMissing);
    EXPECT_FALSE(power.missing.empty());
}

TEST_F(Probes, AnInfiniBandNicIsSeen) {
    SysfsTree tree;
    add_rdma(tree);
    tree.file("class/thermal/cooling_device0/type", "PCIe_Port_Link_Speed_0000:00:01.0");
    tree.file("class/thermal/cooling_device0/cur_state", "0");
    tree.file("class/thermal/cooling_device0/max_state", "4");
    tree.file("dev/infiniband/umad3", "");
    tree.file("dev/infiniband/uverbs0", "");
    const std::string nodes = tree.sysfs().root() + "/dev";
    const auto list = probe(tree.sysfs(), kRoot, {}, nodes);
    const auto port = find(list, "ib_port");
    EXPECT_EQ(port.availability, Availability::kUnproven) << port.missing;
    EXPECT_EQ(port.device, "mlx5_0 port 1");
    EXPECT_EQ(port.kinds, (std::vector<std::string>{"link_down", "cap"}));
    EXPECT_EQ(find(list, "qp_error").device, "mlx5_0");
    EXPECT_EQ(find(list, "qp_error").availability, Availability::kUnproven);
    EXPECT_EQ(find(list, "pci_remove").availability, Availability::kUnproven);
    EXPECT_EQ(find(list, "pci_remove").device, "0000:01:00.0");
    EXPECT_EQ(find(list, "pcie_speed").availability, Availability::kUnproven);
    EXPECT_EQ(find(list, "pcie_speed").device, "0000:00:01.0");
    EXPECT_NE(find(list, "dcb_class_rate").missing.find("mlx5_core"), std::string::npos);
    tree.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/sriov_totalvfs", "8");
    EXPECT_NE(find(probe(tree.sysfs(), kRoot), "vf_rate").how_to_get.find("up to 8"), std::string::npos);
}

TEST_F(Probes, OfSeveralPortsTheInterfacesOwnIsTaken) {
    SysfsTree tree;
    add_rdma(tree);
    tree.file("class/infiniband/mlx5_0/ports/2/link_layer", "InfiniBand");
    tree.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/nic0/dev_port", "1");
    EXPECT_EQ(find(probe(tree.sysfs(), kRoot), "ib_port").device, "mlx5_0 port 2");
    tree.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/nic0/dev_port", "0");
    EXPECT_EQ(find(probe(tree.sysfs(), kRoot), "ib_port").device, "mlx5_0 port 1");
}

TEST_F(Probes, ANodeThatIsMissingIsNamed) {
    SysfsTree tree;
    add_rdma(tree);
    const std::string nodes = tree.sysfs().root() + "/dev";
    const auto without_node = find(probe(tree.sysfs(), kRoot, {}, nodes), "ib_port");
    EXPECT_EQ(without_node.availability, Availability::kMissing);
    EXPECT_NE(without_node.missing.find("umad3"), std::string::npos);
    tree.remove("class/infiniband_mad");
    const auto without_module = find(probe(tree.sysfs(), kRoot, {}, nodes), "ib_port");
    EXPECT_NE(without_module.how_to_get.find("ib_umad"), std::string::npos);
}

TEST_F(Probes, WhatIsProtectedIsNotOffered) {
    SysfsTree tree;
    add_rdma(tree);
    const auto list = probe(tree.sysfs(), kRoot, {"nic0"});
    EXPECT_EQ(find(list, "pci_remove").availability, Availability::kMissing);
    EXPECT_NE(find(list, "pci_remove").missing.find("protected"), std::string::npos);
}

TEST_F(Probes, WithoutPrivilegesTheReasonIsThat) {
    SysfsTree tree;
    add_rdma(tree);
    const auto removal = find(probe(tree.sysfs(), Privileges{true, false, false}), "pci_remove");
    EXPECT_EQ(removal.availability, Availability::kMissing);
    EXPECT_NE(removal.how_to_get.find("root"), std::string::npos);
}

TEST_F(Probes, AMissingInterfaceIsAnInputError) {
    const SysfsTree tree;
    const auto list = probe_hardware({*route_, *generic_, tree.sysfs(), "none0", kRoot, {}, "/dev"});
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().kind(), ErrorKind::kInput);
}

TEST(ReadPrivileges, AreThoseOfThisThread) {
    const auto privileges = read_privileges();
    // Root's files need the initial namespace; the capability may stand alone.
    EXPECT_TRUE(!privileges.root_files || privileges.initial_user_namespace);
    // A user namespace can be left by nobody, so a child process enters it.
    const pid_t child = ::fork();
    if (child == 0) {
        if (::unshare(CLONE_NEWUSER) != 0) {
            ::_exit(2);
        }
        ::_exit(read_privileges() == Privileges{true, false, false} ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2) {
        GTEST_SKIP() << "user namespaces are not allowed here";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
} // namespace railbreak::injectors::hardware
