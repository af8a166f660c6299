// The host's on-disk undo record: one append-only file per agent run.
//
// An intent record with the full former state is on disk (file and folder synced) before the first change; marks
// follow as the fault goes on. The file is locked (flock) by whoever is responsible for it, agent or guard: a file
// whose lock is free belongs to a dead run, and anyone may undo what it left open. Undo is idempotent, so agent, guard,
// `railbreak recover` and the next agent may each do it. A torn or damaged tail is ignored; records before it count.
//
// The first record names the version of the format. A file of another version is never cut, written or deleted: only
// the railbreak that wrote it can undo what it says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Steps of a fault's life that the journal notes after the intent.
enum class JournalMark : std::uint8_t {
    kApplied,  ///< all changes acknowledged
    kReverted, ///< all undo steps acknowledged
    kRestored, ///< former state read back, or nothing left to undo: the entry is closed
};

/// One entry as read back.
struct JournalledFault {
    JournalEntry entry;
    bool applied = false;
    bool reverted = false;
    bool restored = false;
};

/// A journal file's content.
struct JournalContents {
    std::string run_id;
    std::string host_name;
    std::string boot_id;
    std::vector<JournalledFault> faults; ///< in order of intent
    std::size_t valid_bytes = 0;         ///< length of the part that counts
    bool torn = false;                   ///< bytes after valid_bytes are no record
    /// The format's version when it is another one than this build writes: nothing else of the file is known then.
    std::optional<std::uint8_t> other_version;
    /// Entries without the restored mark, newest first: the order of undo.
    [[nodiscard]] std::vector<JournalEntry> open_entries() const;
};

/// Reads journal bytes. Never fails: what is no record ends the reading.
[[nodiscard]] JournalContents parse_journal(std::string_view bytes);
/// Reads a journal file; an Error when it cannot be opened or read.
[[nodiscard]] Result<JournalContents> read_journal_file(const std::string& path);
/// kTeardown, with the path and what to do: another version of railbreak wrote the file.
[[nodiscard]] tl::unexpected<Error> other_version(const std::string& path, std::uint8_t version);

/// Where default_journal_folder() looks, in its order.
[[nodiscard]] std::vector<std::string> journal_folder_candidates();

/// $RAILBREAK_STATE_DIR; else /run/railbreak/journal for root; else $XDG_RUNTIME_DIR/railbreak/journal; else
/// /tmp/railbreak-UID/journal. Creates it. A folder that belongs to another user or that others may write is refused.
[[nodiscard]] Result<std::string> default_journal_folder(HostOps& ops);

/// The frame of one mark, for the guard, which holds only the descriptor.
[[nodiscard]] std::string mark_frame(JournalMark mark, std::int32_t id, Nanoseconds when);

/// Paths of the journal files in a folder, sorted by name. A missing folder has none.
[[nodiscard]] Result<std::vector<std::string>> list_journals(const std::string& folder);

/// A journal that belongs to this process.
class Journal {
public:
    /// Creates, locks and syncs a new file in `folder` (made when missing).
    [[nodiscard]] static Result<Journal> create(HostOps& ops, const std::string& folder, std::string_view run_id,
                                                std::string_view host_name);
    /// Takes over the file of a dead run and cuts a damaged tail. kRefused with the fact "busy" when its owner lives;
    /// kTeardown when another version of railbreak wrote it.
    [[nodiscard]] static Result<Journal> adopt(HostOps& ops, const std::string& path);

    /// Appends an intent; on return file and folder are synced.
    [[nodiscard]] Result<void> intent(const JournalEntry& entry);
    /// Appends a mark and syncs the file.
    [[nodiscard]] Result<void> mark(JournalMark mark, std::int32_t id);
    /// Deletes the file. Only for a journal without open entries.
    [[nodiscard]] Result<void> remove();

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const JournalContents& contents() const { return contents_; }

private:
    Journal(HostOps& ops, UniqueFd fd, std::string path) : ops_(&ops), fd_(std::move(fd)), path_(std::move(path)) {}
    [[nodiscard]] std::string folder() const;
    HostOps* ops_;
    UniqueFd fd_;
    std::string path_;
    JournalContents contents_; ///< as found by adopt
};

} // namespace railbreak::injectors
