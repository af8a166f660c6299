#include "tests/unit/injectors/hardware/sysfs_tree.hpp"

#include <fstream>

#include <cstdlib>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace railbreak::injectors::hardware {
namespace {

std::filesystem::path make_root() {
    std::string pattern = testing::TempDir() + "railbreak-sysfs-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    return pattern;
}

} // namespace

SysfsTree::SysfsTree() : root_(make_root()), sysfs_(root_) {}

SysfsTree::~SysfsTree() {
    std::filesystem::remove_all(root_);
}

void SysfsTree::file(std::string_view path, std::string_view text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
}

void SysfsTree::link(std::string_view path, std::string_view target) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(root_ / target, root_ / path);
}

void SysfsTree::remove(std::string_view path) {
    std::filesystem::remove_all(root_ / path);
}

void SysfsTree::pci_function(std::string_view path, std::string_view class_code, std::string_view driver) {
    const std::string folder = fmt::format("devices/pci0000:00/{}", path);
    file(folder + "/class", class_code);
    file(folder + "/rescan", "");
    file(folder + "/remove", "");
    if (!driver.empty()) {
        file(fmt::format("bus/pci/drivers/{}/bind", driver), "");
        link(folder + "/driver", fmt::format("bus/pci/drivers/{}", driver));
    }
    link(fmt::format("bus/pci/devices/{}", last_part(path)), folder);
}

void SysfsTree::nic(std::string_view path, std::string_view name, std::string_view mac) {
    const std::string folder = fmt::format("devices/pci0000:00/{}/net/{}", path, name);
    file(folder + "/address", mac);
    link(fmt::format("class/net/{}", name), folder);
}

} // namespace railbreak::injectors::hardware
