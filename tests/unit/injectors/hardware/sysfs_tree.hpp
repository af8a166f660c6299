// A folder laid out as sysfs, for hardware that is not here.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "injectors/hardware/sysfs.hpp"

namespace railbreak::injectors::hardware {

/// A sysfs of files in a temporary folder; removed at the end of its life.
class SysfsTree {
public:
    SysfsTree();
    SysfsTree(const SysfsTree&) = delete;
    SysfsTree& operator=(const SysfsTree&) = delete;
    ~SysfsTree();
    [[nodiscard]] const Sysfs& sysfs() const { return sysfs_; }
    /// Writes a file and the folders above it.
    void file(std::string_view path, std::string_view text);
    /// Makes a link at `path` to `target`, both below the root.
    void link(std::string_view path, std::string_view target);
    void remove(std::string_view path);
    /// A PCI function at the end of a path of addresses ("0000:00:01.0/0000:01:00.0") with class and driver.
    void pci_function(std::string_view path, std::string_view class_code, std::string_view driver);
    /// An interface of the function at that path.
    void nic(std::string_view path, std::string_view name, std::string_view mac);

private:
    std::filesystem::path root_;
    Sysfs sysfs_;
};

} // namespace railbreak::injectors::hardware
