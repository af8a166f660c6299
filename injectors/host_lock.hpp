// One controller at a time breaks a host: a lock per network namespace, with the name of whoever has it.
//
// The lock is a file beside the journals, "host-INODE-COOKIE.lock", flocked by the agent for as long as it lives. What
// the file says is for people and for `railbreak halt`; only the lock tells whether it still holds. In a lab every host
// is a namespace of its own, so each has its own lock; a real host has one. An agent without faults excludes nobody; it
// leaves a note of the same form, "host-INODE-COOKIE-PID.lock", so that an emergency stop finds it too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Who has a host.
struct HostOwner {
    std::string run_id;
    std::string host_name;
    std::string user;      ///< "root (0)"
    Nanoseconds since{0};  ///< since the epoch
    ProcessIdentity agent; ///< holds the lock
    ProcessIdentity guard; ///< pid 0: not yet
    std::string journal;   ///< path; empty: not yet
    /// "the run R (agent process 4711, user root (0), since 2026-...)".
    [[nodiscard]] std::string describe() const;
};

/// The file's text and back; nothing when it is none.
[[nodiscard]] std::string to_text(const HostOwner& owner);
[[nodiscard]] std::optional<HostOwner> parse_owner(std::string_view text);

/// Name and number of the user who runs this process, seen from outside of a user namespace.
[[nodiscard]] std::string current_user();
/// This process.
[[nodiscard]] ProcessIdentity current_process();
/// A process by its number; pid 0 when there is none.
[[nodiscard]] ProcessIdentity identify(std::int32_t pid);

/// The lock, held until the end of the object's life or of the process.
class HostLock {
public:
    /// Takes the lock of a namespace in the state folder. kRefused, with the owner's run, process, user and since when,
    /// when another process has it.
    [[nodiscard]] static Result<HostLock> take(const std::string& state_folder, const NetnsIdentity& netns,
                                               HostOwner owner);
    /// The note of an agent that works in the namespace and breaks nothing: beside every lock and every other note.
    [[nodiscard]] static Result<HostLock> note_presence(const std::string& state_folder, const NetnsIdentity& netns,
                                                        HostOwner owner);
    HostLock(HostLock&&) noexcept = default;
    HostLock& operator=(HostLock&&) noexcept = default;
    ~HostLock();

    /// Adds what is known only after the keeper was opened.
    [[nodiscard]] Result<void> note(std::int32_t guard_pid, const std::string& journal);
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    HostLock(UniqueFd fd, std::string path, HostOwner owner)
        : fd_(std::move(fd)), path_(std::move(path)), owner_(std::move(owner)) {}
    [[nodiscard]] static Result<HostLock> take_file(const std::string& path, HostOwner owner);
    [[nodiscard]] Result<void> write_down();
    UniqueFd fd_;
    std::string path_;
    HostOwner owner_;
};

/// Owners of locks in a state folder whose agents live. Files without a holder are removed when `tidy`.
[[nodiscard]] Result<std::vector<HostOwner>> list_owners(const std::string& state_folder, bool tidy = false);

} // namespace railbreak::injectors
