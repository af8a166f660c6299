// Waiting for another process to write to a database, without asking the file again and again.
#pragma once

#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace railbreak::record {

/// The kernel tells of writes to the file and to its write-ahead log (inotify on their folder). Where it cannot, a wait
/// just ends with its deadline: on a network file system others' writes are not seen.
class DatabaseWatch {
public:
    /// From now on; writes before wait() are not lost. kHarness when there are no inotify instances left.
    [[nodiscard]] static Result<DatabaseWatch> open(const std::filesystem::path& path);

    /// Returns when somebody has written since the last call, or at the deadline.
    void wait(Deadline deadline);

private:
    DatabaseWatch(UniqueFd inotify, std::string name) : inotify_(std::move(inotify)), name_(std::move(name)) {}
    /// Takes all that the kernel has told; true: something of it was about the database.
    [[nodiscard]] bool take_written();

    UniqueFd inotify_;
    std::string name_; ///< of the file in its folder
};

} // namespace railbreak::record
