// PCI planning and speed control on trees of files laid out as sysfs; the real removal is a guest test.
#include "injectors/hardware/pci.hpp"

#include <cerrno>
#include <chrono>

#include <gtest/gtest.h>

#include "injectors/hardware/pcie_speed.hpp"
#include "injectors/netlink.hpp"
#include "tests/unit/injectors/hardware/sysfs_tree.hpp"

namespace railbreak::injectors::hardware {
namespace {

constexpr std::string_view kMac0 = "02:00:00:00:00:10";
constexpr std::string_view kMac1 = "02:00:00:00:00:11";

template <class T> testing::AssertionResult done(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

/// A port 00:01.0 above a NIC of two functions, another port above a NIC with a VF and a GPU, and a NIC on the root
/// bus.
class PciTree : public testing::Test {
protected:
    void SetUp() override {
        tree_.pci_function("0000:00:01.0", "0x060400", "pcieport");
        tree_.pci_function("0000:00:01.0/0000:01:00.0", "0x020000", "mlx5_core");
        tree_.pci_function("0000:00:01.0/0000:01:00.1", "0x020000", "mlx5_core");
        tree_.nic("0000:00:01.0/0000:01:00.0", "rail0", kMac0);
        tree_.nic("0000:00:01.0/0000:01:00.1", "rail1", kMac1);
        tree_.pci_function("0000:00:02.0", "0x060400", "pcieport");
        tree_.pci_function("0000:00:02.0/0000:02:00.0", "0x020700", "mlx5_core");
        tree_.nic("0000:00:02.0/0000:02:00.0", "rail2", "02:00:00:00:00:12");
        tree_.pci_function("0000:00:02.0/0000:02:00.2", "0x020700", "mlx5_core");
        tree_.nic("0000:00:02.0/0000:02:00.2", "vf0", "02:00:00:00:00:13");
        tree_.link("devices/pci0000:00/0000:00:02.0/0000:02:00.2/physfn",
                   "devices/pci0000:00/0000:00:02.0/0000:02:00.0");
        tree_.pci_function("0000:00:02.0/0000:02:01.0", "0x030200", "nvidia");
        tree_.pci_function("0000:00:03.0", "0x020000", "virtio-pci");
        tree_.file("devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/address", "02:00:00:00:00:01");
        tree_.link("class/net/eth0", "devices/pci0000:00/0000:00:03.0/virtio0/net/eth0");
        tree_.file("class/pci_bus/0000:00/rescan", "");
        tree_.file("devices/virtual/net/br0/address", "02:00:00:00:00:99");
        tree_.link("class/net/br0", "devices/virtual/net/br0");
    }
    PciFunction function(std::string_view nic) {
        const auto found = pci_function_of_nic(tree_.sysfs(), nic);
        EXPECT_TRUE(done(found));
        return found.value_or(PciFunction{});
    }
    std::string refusal(std::string_view nic, const std::vector<std::string>& protected_nics = {}) {
        const auto checked = check_removable(tree_.sysfs(), function(nic), protected_nics);
        EXPECT_TRUE(checked || checked.error().kind() == ErrorKind::kRefused);
        return checked ? "" : checked.error().message();
    }
    SysfsTree tree_;
};

TEST(PciAddress, HasOneForm) {
    EXPECT_TRUE(is_pci_address("0000:01:00.0"));
    EXPECT_TRUE(is_pci_address("ab12:ff:1f.7"));
    EXPECT_FALSE(is_pci_address("01:00.0"));
    EXPECT_FALSE(is_pci_address("0000:01:00.0x"));
    EXPECT_FALSE(is_pci_address("0000:01:00:0"));
    EXPECT_FALSE(is_pci_address("pci0000:00.0"));
    EXPECT_EQ(pci_device_of("0000:01:00.1"), "0000:01:00");
}

TEST_F(PciTree, TheFunctionOfANicIsRead) {
    const PciFunction expected{
        "0000:01:00.0", "0000:00:01.0", "mlx5_core", 0x020000, 0, "", {{"rail0", std::string(kMac0)}}};
    EXPECT_EQ(function("rail0"), expected);
    EXPECT_EQ(rescan_path(expected), "bus/pci/devices/0000:00:01.0/rescan");
}

TEST_F(PciTree, ANicMayHaveABusInBetween) {
    const auto found = function("eth0");
    EXPECT_EQ(found.address, "0000:00:03.0");
    EXPECT_EQ(found.upstream, "");
    EXPECT_EQ(found.nics, (std::vector<PciNic>{{"eth0", "02:00:00:00:00:01"}}));
    EXPECT_EQ(rescan_path(found), "class/pci_bus/0000:00/rescan");
    EXPECT_EQ(refusal("eth0"), "");
}

TEST_F(PciTree, WhatIsNoPciDeviceIsNamed) {
    const auto bridge = pci_function_of_nic(tree_.sysfs(), "br0");
    ASSERT_FALSE(bridge);
    EXPECT_EQ(bridge.error().kind(), ErrorKind::kRefused);
    const auto none = pci_function_of_nic(tree_.sysfs(), "none0");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::kInput);
    EXPECT_FALSE(read_pci_function(tree_.sysfs(), "0000:09:00.0"));
    EXPECT_FALSE(read_pci_function(tree_.sysfs(), ".."));
}

TEST_F(PciTree, ARemovalIsRefusedWithItsReason) {
    EXPECT_EQ(refusal("rail0"), "");
    EXPECT_EQ(refusal("rail0", {"eth0", "br0"}), "");
    EXPECT_NE(refusal("rail0", {"rail1"}).find("rail1 is on the same device"), std::string::npos);
    EXPECT_NE(refusal("rail2").find("GPU 0000:02:01.0"), std::string::npos);
    EXPECT_NE(refusal("rail2", {"vf0"}).find("vf0"), std::string::npos);
    tree_.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/sriov_numvfs", "4");
    EXPECT_NE(refusal("rail0").find("4 active VFs"), std::string::npos);
    tree_.remove("devices/pci0000:00/0000:00:01.0/rescan");
    EXPECT_NE(refusal("rail1").find("rescan"), std::string::npos);
    tree_.file("devices/pci0000:00/0000:00:03.0/class", "0x010000");
    EXPECT_NE(refusal("eth0").find("no network controller"), std::string::npos);
}

TEST_F(PciTree, AVfOnAnotherDeviceProtectsItsPhysicalFunction) {
    tree_.remove("devices/pci0000:00/0000:00:02.0/0000:02:01.0");
    tree_.pci_function("0000:00:02.0/0000:02:03.0", "0x020700", "mlx5_core");
    tree_.nic("0000:00:02.0/0000:02:03.0", "vf9", "02:00:00:00:00:14");
    tree_.link("devices/pci0000:00/0000:00:02.0/0000:02:03.0/physfn", "devices/pci0000:00/0000:00:02.0/0000:02:00.0");
    EXPECT_NE(refusal("rail2", {"vf9"}).find("vf9 is one of its VFs"), std::string::npos);
}

TEST_F(PciTree, AnotherDeviceAtTheAddressIsNotRemoved) {
    const auto former = function("rail0");
    tree_.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/rail0/address", "02:00:00:00:00:77");
    const auto removed = remove_pci_function(tree_.sysfs(), former);
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind(), ErrorKind::kRefused);
    EXPECT_EQ(tree_.sysfs().read("bus/pci/devices/0000:01:00.0/remove").value_or("?"), "");
}

TEST_F(PciTree, ARemovalThatDidNotHappenIsFound) {
    const auto removed = remove_pci_function(tree_.sysfs(), function("rail0"));
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().kind(), ErrorKind::kHarness);
    EXPECT_EQ(tree_.sysfs().read("bus/pci/devices/0000:01:00.0/remove").value_or("?"), "1");
}

TEST_F(PciTree, TheFunctionIsFoundAgainUnderAnotherName) {
    const auto former = function("rail0");
    tree_.remove("bus/pci/devices/0000:01:00.0");
    tree_.remove("class/net/rail0");
    int waits = 0;
    const auto wait = [&](Deadline) -> Result<bool> {
        EXPECT_EQ(tree_.sysfs().read("bus/pci/devices/0000:00:01.0/rescan").value_or("?"), "1");
        if (++waits == 1) { // the device is there, its driver not yet
            tree_.link("bus/pci/devices/0000:01:00.0", "devices/pci0000:00/0000:00:01.0/0000:01:00.0");
        } else {
            tree_.nic("0000:00:01.0/0000:01:00.0", "renamed0", kMac0);
        }
        return true;
    };
    const auto back = restore_pci_function(tree_.sysfs(), former, wait, Deadline::after(std::chrono::seconds(5)));
    ASSERT_TRUE(done(back));
    EXPECT_EQ(waits, 2);
    EXPECT_EQ(back->nics, (std::vector<PciNic>{{"renamed0", std::string(kMac0)}}));
    // Again: it is there, so nothing is written.
    tree_.file("devices/pci0000:00/0000:00:01.0/rescan", "untouched");
    EXPECT_TRUE(done(restore_pci_function(tree_.sysfs(), former, wait, Deadline::after(std::chrono::seconds(5)))));
    EXPECT_EQ(tree_.sysfs().read("bus/pci/devices/0000:00:01.0/rescan").value_or("?"), "untouched");
}

TEST_F(PciTree, AFunctionThatStaysAwayIsATeardownError) {
    const auto former = function("rail0");
    tree_.remove("bus/pci/devices/0000:01:00.0");
    const auto back = restore_pci_function(
        tree_.sysfs(), former, [](Deadline) -> Result<bool> { return false; }, Deadline::after(Nanoseconds(0)));
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().kind(), ErrorKind::kTeardown);
}

class PcieSpeed : public PciTree {
protected:
    void SetUp() override {
        PciTree::SetUp();
        tree_.file("class/thermal/cooling_device0/type", "Processor");
        tree_.file("class/thermal/cooling_device1/type", "PCIe_Port_Link_Speed_0000:00:01.0");
        tree_.file("class/thermal/cooling_device1/cur_state", "1");
        tree_.file("class/thermal/cooling_device1/max_state", "4");
    }
};

TEST_F(PcieSpeed, TheControlOfThePortAboveIsFound) {
    const auto control = find_pcie_speed(tree_.sysfs(), function("rail0"));
    ASSERT_TRUE(done(control));
    EXPECT_EQ(*control, (PcieSpeedControl{"class/thermal/cooling_device1", "0000:00:01.0", 1, 4}));
    const auto none = find_pcie_speed(tree_.sysfs(), function("rail2"));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().kind(), ErrorKind::kRefused);
    EXPECT_FALSE(find_pcie_speed(tree_.sysfs(), function("eth0")));
}

TEST_F(PcieSpeed, AStateIsSetAndPutBack) {
    const auto control = find_pcie_speed(tree_.sysfs(), function("rail0"));
    ASSERT_TRUE(done(control));
    ASSERT_TRUE(done(set_pcie_speed(tree_.sysfs(), *control, 4)));
    EXPECT_EQ(tree_.sysfs().read_number("class/thermal/cooling_device1/cur_state").value_or(99), 4U);
    ASSERT_TRUE(done(restore_pcie_speed(tree_.sysfs(), *control)));
    EXPECT_EQ(tree_.sysfs().read_number("class/thermal/cooling_device1/cur_state").value_or(99), 1U);
    EXPECT_FALSE(set_pcie_speed(tree_.sysfs(), *control, 5));
}

TEST_F(PcieSpeed, ANumberThatMovedToAnotherDeviceIsNotWritten) {
    const auto control = find_pcie_speed(tree_.sysfs(), function("rail0"));
    ASSERT_TRUE(done(control));
    tree_.file("class/thermal/cooling_device1/type", "Fan");
    EXPECT_FALSE(set_pcie_speed(tree_.sysfs(), *control, 4));
    const auto restored = restore_pcie_speed(tree_.sysfs(), *control);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().kind(), ErrorKind::kTeardown);
    EXPECT_EQ(tree_.sysfs().read_number("class/thermal/cooling_device1/cur_state").value_or(99), 1U);
}

TEST_F(PcieSpeed, AProtectedNicBelowThePortIsFound) {
    const auto control = find_pcie_speed(tree_.sysfs(), function("rail0"));
    ASSERT_TRUE(done(control));
    EXPECT_TRUE(done(check_pcie_speed_target(tree_.sysfs(), *control, {"eth0", "br0", "rail2"})));
    EXPECT_FALSE(check_pcie_speed_target(tree_.sysfs(), *control, {"eth0", "rail1"}));
}

TEST_F(PcieSpeed, TheLinkIsTold) {
    EXPECT_FALSE(read_pcie_link(tree_.sysfs(), function("rail0")));
    tree_.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_speed", "32.0 GT/s PCIe");
    tree_.file("devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_width", "16");
    const auto link = read_pcie_link(tree_.sysfs(), function("rail0"));
    ASSERT_TRUE(done(link));
    EXPECT_EQ(*link, (PcieLink{"32.0 GT/s PCIe", "16"}));
}

TEST(Sysfs, WhatIsNotThereIsAnErrorWithErrno) {
    SysfsTree tree;
    const auto read = tree.sysfs().read("none");
    ASSERT_FALSE(read);
    EXPECT_EQ(kernel_errno(read.error()), ENOENT);
    const auto written = tree.sysfs().write("none", "1");
    ASSERT_FALSE(written);
    EXPECT_EQ(kernel_errno(written.error()), ENOENT);
    EXPECT_FALSE(tree.sysfs().exists("none"));
    EXPECT_TRUE(tree.sysfs().list("none").empty());
    EXPECT_EQ(tree.sysfs().real_path("none"), "");
    tree.file("text", " 12 GT/s ");
    EXPECT_EQ(tree.sysfs().read("text").value_or(""), "12 GT/s");
    EXPECT_FALSE(tree.sysfs().read_number("text"));
}

} // namespace
} // namespace railbreak::injectors::hardware
