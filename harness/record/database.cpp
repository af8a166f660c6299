#include "harness/record/database.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "harness/record/schema.hpp"

namespace railbreak::record {

namespace fs = std::filesystem;

Error describe(const SQLite::Exception& exception, const fs::path& path, std::string_view what) {
    const int code = exception.getErrorCode();
    const auto error = [&](ErrorKind kind, std::string_view why) {
        return Error(kind, fmt::format("database {}: cannot {}: {}", path.string(), what, why))
            .with("sqlite", fmt::format("{} ({})", exception.what(), exception.getExtendedErrorCode()));
    };
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        return error(ErrorKind::kHarness, "another process keeps it locked").advise("wait for it or give another --db");
    }
    if (code == SQLITE_NOTADB) {
        return error(ErrorKind::kInput, "the file is not a database").advise("give another --db");
    }
    if (code == SQLITE_CORRUPT) {
        return error(ErrorKind::kInput, "the file is damaged").advise("move it away or give another --db");
    }
    if (code == SQLITE_READONLY) {
        return error(ErrorKind::kInput, "the file or its folder is read-only").advise("give another --db");
    }
    if (code == SQLITE_CANTOPEN) {
        return error(ErrorKind::kInput, "the file cannot be opened").advise("check the path and its permissions");
    }
    if (code == SQLITE_FULL || exception.getExtendedErrorCode() == SQLITE_IOERR_SHMSIZE) {
        return error(ErrorKind::kHarness, "the disk is full").advise("free some space or give another --db");
    }
    if (code == SQLITE_IOERR) {
        return error(ErrorKind::kHarness, "the disk does not work")
            .advise("see the kernel's log; what was recorded before is kept");
    }
    if (exception.getExtendedErrorCode() == SQLITE_CONSTRAINT_UNIQUE) {
        return error(ErrorKind::kHarness, "there is one of that name already");
    }
    return error(ErrorKind::kHarness, exception.what());
}

namespace {

// Makes the folders of `file` and brings their names to the disk, so that a power loss cannot take a whole database.
Result<void> make_folders(const fs::path& file) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    std::vector<fs::path> made;
    std::error_code error;
    for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
        made.push_back(at);
        if (at == at.parent_path()) {
            break;
        }
    }
    fs::create_directories(folder, error);
    if (error) {
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: cannot make the folder {}: {}", file.string(),
                                                         folder.string(), error.message()))
                        .advise("check the path and its permissions"));
    }
    for (const fs::path& folder_made : made) {
        const fs::path parent = folder_made.has_parent_path() ? folder_made.parent_path() : fs::path(".");
        const UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (fd.valid()) {
            static_cast<void>(::fsync(fd.get())); // some file systems cannot; the folder is there all the same
        }
    }
    return {};
}

// A database is a file. A device would get a journal beside it, in /dev, and a folder gives an error about the disk.
Result<void> check_kind(const fs::path& path, const struct stat& status) {
    if (S_ISREG(status.st_mode)) {
        return {};
    }
    return fail(Error(ErrorKind::kInput, fmt::format("database {}: it is {}", path.string(),
                                                     S_ISDIR(status.st_mode) ? "a folder" : "not a regular file"))
                    .advise("give the --db of a file"));
}

std::int32_t pragma(SQLite::Database& database, const char* sql) {
    return database.execAndGet(sql).getInt();
}

// The version of a database that is ours; 0 for an empty file; an Error for everything else. Called inside a
// transaction: read one by one, the three facts could be of different moments while another process makes the tables.
Result<std::int32_t> version_in_transaction(SQLite::Database& database, const fs::path& path) {
    const std::int32_t application = pragma(database, "PRAGMA application_id");
    const std::int32_t version = pragma(database, "PRAGMA user_version");
    const bool empty = pragma(database, "SELECT count(*) FROM sqlite_master") == 0;
    if (application == 0 && version == 0 && empty) {
        return 0;
    }
    if (application != kApplicationId || version < 1) {
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: this is a database of another program, not of "
                                                         "railbreak",
                                                         path.string()))
                        .advise("give another --db"));
    }
    if (version > kSchemaVersion) {
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: written by a newer railbreak (schema {}, this "
                                                         "one knows up to {})",
                                                         path.string(), version, kSchemaVersion))
                        .advise("use the newer railbreak or give another --db"));
    }
    return version;
}

Result<std::int32_t> version_of(SQLite::Database& database, const fs::path& path) {
    const SQLite::Transaction transaction(database);
    return version_in_transaction(database, path);
}

// Applies all missing migrations in one transaction. Several processes may open a new file at once: the version is
// read again under the lock.
Result<void> migrate(SQLite::Database& database, const fs::path& path) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    const Result<std::int32_t> found = version_in_transaction(database, path);
    if (!found) {
        return tl::unexpected(found.error());
    }
    for (std::int32_t version = *found + 1; version <= kSchemaVersion; ++version) {
        database.exec(std::string(migration_to(version)));
    }
    database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
    database.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
    transaction.commit();
    return {};
}

// Turns on write-ahead logging and gives the mode that is then in force. Two processes that turn it on in a new file at
// once stand in each other's way, and SQLite then tells one of them "busy" without waiting. That one waits here, for
// the write lock, and looks again.
std::string enter_wal(SQLite::Database& database, std::chrono::milliseconds lock_wait) {
    const Deadline deadline = Deadline::after(lock_wait);
    for (;;) {
        try {
            return database.execAndGet("PRAGMA journal_mode = WAL").getString();
        } catch (const SQLite::Exception& exception) {
            if (exception.getErrorCode() != SQLITE_BUSY || deadline.passed()) {
                throw;
            }
            const SQLite::Transaction wait(database, SQLite::TransactionBehavior::IMMEDIATE);
        }
    }
}

} // namespace

Result<std::unique_ptr<SQLite::Database>> open_for_writing(const fs::path& path, std::chrono::milliseconds lock_wait) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
        if (const Result<void> kind = check_kind(path, status); !kind) {
            return tl::unexpected(kind.error());
        }
    }
    if (const Result<void> made = make_folders(path); !made) {
        return tl::unexpected(made.error());
    }
    using Opened = Result<std::unique_ptr<SQLite::Database>>;
    return flatten(guarded(path, "open it", [&]() -> Opened {
        auto database = std::make_unique<SQLite::Database>(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                                                           static_cast<int>(lock_wait.count()));
        const Result<std::int32_t> version = version_of(*database, path);
        if (!version) {
            return tl::unexpected(version.error());
        }
        if (sqlite3_db_readonly(database->getHandle(), "main") == 1) {
            return fail(Error(ErrorKind::kInput, fmt::format("database {}: the file is read-only", path.string()))
                            .advise("give another --db"));
        }
        if (const std::string mode = enter_wal(*database, lock_wait); mode != "wal") {
            return fail(Error(ErrorKind::kInput,
                              fmt::format("database {}: write-ahead logging does not work there", path.string()))
                            .with("journal_mode", mode)
                            .advise("put the database on a local disk"));
        }
        database->exec("PRAGMA synchronous = FULL");
        database->exec("PRAGMA foreign_keys = ON");
        if (*version < kSchemaVersion) {
            if (const Result<void> migrated = migrate(*database, path); !migrated) {
                return tl::unexpected(migrated.error());
            }
        }
        return database;
    }));
}

namespace {

using Opened = Result<std::unique_ptr<SQLite::Database>>;

Opened open_checked(const fs::path& path, const std::string& name, int flags) {
    auto database =
        std::make_unique<SQLite::Database>(name, SQLite::OPEN_READONLY | flags, static_cast<int>(kLockWait.count()));
    const Result<std::int32_t> version = version_of(*database, path);
    if (!version) {
        return tl::unexpected(version.error());
    }
    if (*version == 0) {
        return fail(ErrorKind::kInput, fmt::format("database {}: it is empty", path.string()));
    }
    return database;
}

// The file as a URI that tells SQLite that nobody changes it.
std::string immutable_uri(const fs::path& path) {
    std::string uri = "file:";
    for (const char c : fs::absolute(path).string()) {
        uri += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02X}", static_cast<unsigned char>(c))
                                                : std::string(1, c);
    }
    return uri + "?immutable=1";
}

} // namespace

Result<std::unique_ptr<SQLite::Database>> open_for_reading(const fs::path& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        const int reason = errno;
        return fail(Error(ErrorKind::kInput, fmt::format("database {}: {}", path.string(), ::strerrordesc_np(reason)))
                        .advise("give the --db that the runs were recorded to"));
    }
    if (const Result<void> kind = check_kind(path, status); !kind) {
        return tl::unexpected(kind.error());
    }
    return flatten(guarded(path, "read it", [&]() -> Opened {
        try {
            return open_checked(path, path.string(), 0);
        } catch (const SQLite::Exception& exception) {
            // A reader of a write-ahead database wants to make files beside it. Where it may not (somebody else's
            // folder, a read-only disk) and no log is there, the file alone is the whole database.
            const bool wants_files =
                exception.getErrorCode() == SQLITE_CANTOPEN || exception.getErrorCode() == SQLITE_READONLY;
            std::error_code error;
            if (!wants_files || fs::exists(path.string() + "-wal", error) || ::access(path.c_str(), R_OK) != 0) {
                throw;
            }
            return open_checked(path, immutable_uri(path), SQLite::OPEN_URI);
        }
    }));
}

bool is_misplaced(SQLite::Database& database) {
    int moved = 0;
    sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0;
}

} // namespace railbreak::record
