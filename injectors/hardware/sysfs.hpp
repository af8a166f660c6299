// Small readings and writes below a sysfs mount point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

/// A tree of attribute files. Paths are relative to its root, without a leading slash.
class Sysfs {
public:
    /// `root` is the mount point; another folder of the same layout serves as well.
    explicit Sysfs(std::string root = "/sys") : root_(std::move(root)) {}

    [[nodiscard]] const std::string& root() const { return root_; }
    [[nodiscard]] bool exists(std::string_view path) const;
    /// The file's text without white space at its ends. The Error carries errno.
    [[nodiscard]] Result<std::string> read(std::string_view path) const;
    /// The text as a non-negative whole number; kHarness when it is none.
    [[nodiscard]] Result<std::uint64_t> read_number(std::string_view path) const;
    /// Writes the value in one write(2), which is when the kernel acts. EPERM and EACCES are kRefused. Never creates a
    /// file.
    [[nodiscard]] Result<void> write(std::string_view path, std::string_view value) const;
    /// Names in a folder, sorted; empty when the folder is missing.
    [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
    /// Where the path leads once every link is followed, as an absolute path; "" when it leads nowhere.
    [[nodiscard]] std::string real_path(std::string_view path) const;

private:
    std::string root_;
};

/// The part behind the last slash.
[[nodiscard]] std::string_view last_part(std::string_view path);

} // namespace railbreak::injectors::hardware
