// The record of a lab on disk, by which other commands find it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "harness/lab/lab.hpp"
#include "harness/lab/processes.hpp"

namespace railbreak::lab {

/// Everything that is known about a lab outside of the process that built it.
struct LabRecord {
    LabSpec spec;
    bool kept = false;
    ProcessId owner;                     ///< who built it; a kept lab no longer needs it
    ProcessId keeper;                    ///< pid 0 while the lab is being built
    Nanoseconds created_at{0};           ///< since the epoch
    std::string boot_id;                 ///< pids, start times and cookies are valid within one boot only
    std::vector<NamespaceId> namespaces; ///< the switch, then the hosts; empty while being built
};

/// The kernel's random id of this boot.
[[nodiscard]] std::string read_boot_id();
/// JSON text of a record, and back; nullopt when it is not one.
[[nodiscard]] std::string to_json(const LabRecord& record);
[[nodiscard]] std::optional<LabRecord> parse_record(std::string_view json);

/// The folder of the records: $RAILBREAK_STATE_DIR, else /run/railbreak for root, else $XDG_RUNTIME_DIR/railbreak, else
/// /tmp/railbreak-UID.
[[nodiscard]] std::string state_folder();

/// An open state folder. Records are replaced by rename, so that a reader never sees half of one.
class StateFolder {
public:
    /// Opens the folder, making it (mode 0700) when missing. kInput when $RAILBREAK_STATE_DIR names none that can be
    /// made and opened; kRefused when it belongs to another user or others may write to it.
    [[nodiscard]] static Result<StateFolder> open() { return open(state_folder()); }
    [[nodiscard]] static Result<StateFolder> open(const std::string& path);
    /// Takes the folder's lock until the StateFolder's end; kRefused at the deadline.
    [[nodiscard]] Result<void> lock(const Deadline& deadline);
    void unlock();
    /// Writes the lab's record (mode 0600).
    [[nodiscard]] Result<void> write(const LabRecord& record);
    /// The record of a lab; nullopt when there is none that can be read.
    [[nodiscard]] std::optional<LabRecord> read(std::string_view name) const;
    void remove(std::string_view name);
    /// Removes what a process that was killed in the middle of write() has left.
    void remove_abandoned_drafts();
    /// Names of all labs that have a record.
    [[nodiscard]] std::vector<std::string> names() const;

private:
    [[nodiscard]] std::vector<std::string> files() const;
    explicit StateFolder(UniqueFd folder) : folder_(std::move(folder)) {}
    UniqueFd folder_;
};

} // namespace railbreak::lab
