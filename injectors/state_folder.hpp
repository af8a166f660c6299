// Where railbreak keeps what must outlive its processes: journals, the host's lock, the halt file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.hpp"
#include "injectors/host_ops.hpp"
#include "injectors/in_child.hpp"

namespace railbreak::injectors {

/// What agents and guards are called in /proc/PID/comm, whoever they belong to.
inline constexpr const char* kAgentName = "rb-agent";
inline constexpr const char* kGuardName = "rb-guard";

/// A folder of journals.
struct JournalFolder {
    std::string path;
    uid_t owner = 0;
    gid_t group = 0;
};

/// While it lives, this process has no more rights to files than the owner of a folder has: what root does in a folder
/// of another user goes through links that the user may exchange at any moment. Does nothing for one's own folder. For
/// processes of one thread.
class InUsersName {
public:
    explicit InUsersName(const JournalFolder& folder);
    ~InUsersName();
    InUsersName(const InUsersName&) = delete;
    InUsersName& operator=(const InUsersName&) = delete;

private:
    bool changed_ = false;
    std::vector<gid_t> groups_; ///< to go back to
};

/// run_in_child() with no other rights than the owner of the folder has; by whoever is root, else in the own name.
[[nodiscard]] Result<std::string> run_as_owner(const JournalFolder& folder,
                                               const std::function<std::string(const Progress&)>& body,
                                               Nanoseconds patience);

/// The folder around the journals: "/run/railbreak" for "/run/railbreak/journal"; a folder of another name, as
/// $RAILBREAK_STATE_DIR may be, is its own. Lock and halt file are in it.
[[nodiscard]] std::string state_folder_of(const std::string& journal_folder);

/// Every folder that may hold journals of this host and that this user may read: the default one, and as root those of
/// all users too; besides, those that agents and guards which are alive have in their $RAILBREAK_STATE_DIR. Folders
/// that others than their owner may write are left out. With $RAILBREAK_STATE_DIR set for this process there is no
/// other.
[[nodiscard]] Result<std::vector<JournalFolder>> known_journal_folders(HostOps& ops);

/// Path of the file that stops all fault injection of the state folder, whoever made it.
[[nodiscard]] std::string halt_file(const std::string& state_folder);
/// What the halt file says ("by root since ..."), one line, or a sentence of its own when it is empty. Nothing when
/// there is none.
[[nodiscard]] std::optional<std::string> halted(const std::string& state_folder);
/// Makes the halt file; one that is there stays. `text`: one line for those who are refused.
[[nodiscard]] Result<void> make_halt_file(const std::string& state_folder, const std::string& text);
/// Removes it. False when there was none.
[[nodiscard]] Result<bool> remove_halt_file(const std::string& state_folder);

} // namespace railbreak::injectors
