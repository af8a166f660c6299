// A disk for SQLite that remembers every write since the last sync of each file, so that a test can ask: what if the
// power had failed just then? And one that fills up or breaks at a chosen write.
//
// It stands between SQLite and the real file system (an SQLite "VFS") while it lives, for every database that this
// process opens. After a power loss, a file has all that was written before its last sync, and of what was written
// since then any part, in pieces of a sector. A file that was never synced may be missing, and one that was deleted may
// be there again until its folder is synced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace railbreak::record {

/// What is left of the writes that were not synced.
enum class Unsynced : std::uint8_t {
    kLost, ///< none
    kKept, ///< all
    kTorn, ///< any of their sectors
};

/// How operations fail from a chosen one on.
enum class DiskFault : std::uint8_t { kNone, kFull, kBrokenWrite, kBrokenSync };

class FaultyDisk {
public:
    /// Becomes the disk of all databases that are opened from now on. `lies` about syncs: reports them as done.
    explicit FaultyDisk(bool lies = false);
    FaultyDisk(const FaultyDisk&) = delete;
    FaultyDisk& operator=(const FaultyDisk&) = delete;
    ~FaultyDisk();

    /// Operations so far: a place in time for power_loss().
    [[nodiscard]] std::size_t now() const;

    /// Time passes: all that was written so far is on the disk.
    void settle();

    /// Writes (or syncs) number `at` and later fail, counted over all files from now on, until mend().
    void fail_from(DiskFault fault, std::size_t at);
    void mend();
    /// Whether an operation has failed since fail_from().
    [[nodiscard]] bool has_failed() const;

    /// Puts into `folder` the files that a power loss after `operations` of them would leave, by their own names; what
    /// was there before is removed. The index of the log ("-shm") is left as garbage: it means nothing after a boot.
    void power_loss(std::size_t operations, Unsynced rest, std::mt19937& random,
                    const std::filesystem::path& folder) const;

private:
    struct State;
    friend struct DiskCalls;
    std::unique_ptr<State> state_;
};

} // namespace railbreak::record
