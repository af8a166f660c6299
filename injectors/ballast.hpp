// Ballast files of disk_full faults that no journal knows any more, found by their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors {

/// How the name of every ballast file begins. The rest names the run.
inline constexpr std::string_view kBallastName = ".railbreak-ballast-";

/// A ballast file.
struct BallastFile {
    std::string mount; ///< where its file system is mounted
    std::string below; ///< its path from there, without a leading slash
    [[nodiscard]] std::string path() const;
};

/// Ballast files on the file systems that this process sees and that can have one: ext4, xfs, f2fs and tmpfs, but not
/// the root file system. Looks six folders deep and at no more than 200 000 names of a file system, the nearest to its
/// root first, and follows no links. `mountinfo`: text of /proc/self/mountinfo.
[[nodiscard]] std::vector<BallastFile> find_ballast(std::string_view mountinfo);

/// Deletes it, and nothing else that has come into its place or into that of a folder above it.
[[nodiscard]] Result<void> remove_ballast(const BallastFile& file);

} // namespace railbreak::injectors
