#include "tests/unit/record/faulty_disk.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <set>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace railbreak::record {

namespace {

constexpr std::size_t kSector = 512;

enum class Kind : std::uint8_t { kWrite, kTruncate, kSync, kDelete };

struct Operation {
    Kind kind;
    std::string file;    // name without folder
    std::int64_t at = 0; // offset of a write, size of a truncation; of a sync 1: the folder's names, too
    std::string bytes;   // of a write
};

void apply(const Operation& operation, std::string& content) {
    if (operation.kind == Kind::kTruncate) {
        content.resize(static_cast<std::size_t>(operation.at));
        return;
    }
    const auto at = static_cast<std::size_t>(operation.at);
    content.resize(std::max(content.size(), at + operation.bytes.size()));
    std::memcpy(content.data() + at, operation.bytes.data(), operation.bytes.size());
}

// A write without some of its sectors.
void apply_torn(const Operation& operation, std::mt19937& random, std::string& content) {
    if (operation.kind == Kind::kTruncate) {
        if (random() % 2 == 0) {
            apply(operation, content);
        }
        return;
    }
    for (std::size_t from = 0; from < operation.bytes.size(); from += kSector) {
        if (random() % 2 == 0) {
            apply({Kind::kWrite, operation.file, operation.at + static_cast<std::int64_t>(from),
                   operation.bytes.substr(from, kSector)},
                  content);
        }
    }
}

} // namespace

struct FaultyDisk::State {
    sqlite3_vfs vfs{};
    sqlite3_vfs* real = nullptr;
    bool lies = false;
    std::vector<Operation> operations;
    DiskFault fault = DiskFault::kNone;
    std::size_t until_failure = 0;
    bool failed = false;

    // Whether this write (or sync) has to fail.
    bool fails(bool is_write) {
        if (fault == DiskFault::kNone || is_write == (fault == DiskFault::kBrokenSync)) {
            return false;
        }
        if (until_failure > 0) {
            --until_failure;
            return false;
        }
        failed = true;
        return true;
    }
};

// The calls that SQLite makes. Those that are not of interest go straight to the real file.
struct DiskCalls {
    struct File {
        sqlite3_file base;
        FaultyDisk::State* disk;
        std::string* name; // nullptr: a temporary file, which no power loss leaves
        bool new_name;     // SQLite syncs the folder with the first sync of a log or journal
        sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    };

    static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
    static FaultyDisk::State& of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk::State*>(vfs->pAppData); }

    static int close(sqlite3_file* file) {
        File& mine = of(file);
        delete mine.name;
        return mine.real()->pMethods->xClose(mine.real());
    }
    static int read(sqlite3_file* file, void* into, int size, sqlite3_int64 at) {
        return of(file).real()->pMethods->xRead(of(file).real(), into, size, at);
    }
    static int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
        File& mine = of(file);
        if (mine.disk->fails(true)) {
            return mine.disk->fault == DiskFault::kFull ? SQLITE_FULL : SQLITE_IOERR_WRITE;
        }
        if (mine.name != nullptr) {
            mine.disk->operations.push_back(
                {Kind::kWrite, *mine.name, at,
                 std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size))});
        }
        return mine.real()->pMethods->xWrite(mine.real(), bytes, size, at);
    }
    static int truncate(sqlite3_file* file, sqlite3_int64 size) {
        File& mine = of(file);
        if (mine.name != nullptr) {
            mine.disk->operations.push_back({Kind::kTruncate, *mine.name, size, {}});
        }
        return mine.real()->pMethods->xTruncate(mine.real(), size);
    }
    static int sync(sqlite3_file* file, int flags) {
        File& mine = of(file);
        if (mine.disk->fails(false)) {
            return SQLITE_IOERR_FSYNC;
        }
        if (mine.name != nullptr && !mine.disk->lies) {
            mine.disk->operations.push_back({Kind::kSync, *mine.name, mine.new_name ? 1 : 0, {}});
            mine.new_name = false;
        }
        return mine.real()->pMethods->xSync(mine.real(), flags);
    }
    static int file_size(sqlite3_file* file, sqlite3_int64* size) {
        return of(file).real()->pMethods->xFileSize(of(file).real(), size);
    }
    static int lock(sqlite3_file* file, int level) { return of(file).real()->pMethods->xLock(of(file).real(), level); }
    static int unlock(sqlite3_file* file, int level) {
        return of(file).real()->pMethods->xUnlock(of(file).real(), level);
    }
    static int check_lock(sqlite3_file* file, int* result) {
        return of(file).real()->pMethods->xCheckReservedLock(of(file).real(), result);
    }
    static int control(sqlite3_file* file, int what, void* argument) {
        return of(file).real()->pMethods->xFileControl(of(file).real(), what, argument);
    }
    static int sector_size(sqlite3_file* file) { return of(file).real()->pMethods->xSectorSize(of(file).real()); }
    static int characteristics(sqlite3_file* file) {
        return of(file).real()->pMethods->xDeviceCharacteristics(of(file).real());
    }
    static int shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** at) {
        return of(file).real()->pMethods->xShmMap(of(file).real(), page, size, extend, at);
    }
    static int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
        return of(file).real()->pMethods->xShmLock(of(file).real(), offset, count, flags);
    }
    static void shm_barrier(sqlite3_file* file) { of(file).real()->pMethods->xShmBarrier(of(file).real()); }
    static int shm_unmap(sqlite3_file* file, int remove) {
        return of(file).real()->pMethods->xShmUnmap(of(file).real(), remove);
    }

    static const sqlite3_io_methods& methods() {
        static const sqlite3_io_methods kMethods{
            2,         close,      read,    write,       truncate,        sync,    file_size, lock,
            unlock,    check_lock, control, sector_size, characteristics, shm_map, shm_lock,  shm_barrier,
            shm_unmap, nullptr,    nullptr};
        return kMethods;
    }

    static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
        FaultyDisk::State& disk = of(vfs);
        File& mine = *new (file) File{};
        const int result = disk.real->xOpen(disk.real, name, mine.real(), flags, out_flags);
        mine.disk = &disk;
        mine.base.pMethods = mine.real()->pMethods != nullptr ? &methods() : nullptr;
        if (result == SQLITE_OK && name != nullptr) {
            mine.name = new std::string(std::filesystem::path(name).filename());
            mine.new_name = (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL)) != 0;
        }
        return result;
    }
    static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
        FaultyDisk::State& disk = of(vfs);
        disk.operations.push_back({Kind::kDelete, std::filesystem::path(name).filename(), sync_folder, {}});
        return disk.real->xDelete(disk.real, name, sync_folder);
    }
};

FaultyDisk::FaultyDisk(bool lies) : state_(std::make_unique<State>()) {
    state_->lies = lies;
    state_->real = sqlite3_vfs_find(nullptr);
    state_->vfs = *state_->real;
    state_->vfs.pNext = nullptr;
    state_->vfs.zName = "faulty-disk";
    state_->vfs.pAppData = state_.get();
    state_->vfs.szOsFile += static_cast<int>(sizeof(DiskCalls::File));
    state_->vfs.xOpen = DiskCalls::open;
    state_->vfs.xDelete = DiskCalls::remove;
    EXPECT_EQ(sqlite3_vfs_register(&state_->vfs, 1), SQLITE_OK);
}

FaultyDisk::~FaultyDisk() {
    sqlite3_vfs_unregister(&state_->vfs);
    sqlite3_vfs_register(state_->real, 1);
}

std::size_t FaultyDisk::now() const {
    return state_->operations.size();
}

void FaultyDisk::settle() {
    std::set<std::string> files;
    for (const Operation& operation : state_->operations) {
        files.insert(operation.file);
    }
    for (const std::string& file : files) {
        state_->operations.push_back({Kind::kSync, file, 1, {}});
    }
}

void FaultyDisk::fail_from(DiskFault fault, std::size_t at) {
    state_->fault = fault;
    state_->until_failure = at;
    state_->failed = false;
}

void FaultyDisk::mend() {
    state_->fault = DiskFault::kNone;
}

bool FaultyDisk::has_failed() const {
    return state_->failed;
}

void FaultyDisk::power_loss(std::size_t operations, Unsynced rest, std::mt19937& random,
                            const std::filesystem::path& folder) const {
    struct Content {
        bool exists = false;
        std::string bytes;
    };
    std::map<std::string, Content> files;
    std::map<std::string, std::size_t> synced; // what came before is on the disk
    std::size_t folder_synced = 0;
    for (std::size_t i = 0; i < operations; ++i) {
        const Operation& operation = state_->operations[i];
        if (operation.kind == Kind::kSync) {
            synced[operation.file] = i + 1;
        }
        if ((operation.kind == Kind::kSync || operation.kind == Kind::kDelete) && operation.at == 1) {
            folder_synced = i + 1;
        }
    }
    for (std::size_t i = 0; i < operations; ++i) {
        const Operation& operation = state_->operations[i];
        Content& file = files[operation.file];
        const bool durable = i < (operation.kind == Kind::kDelete ? folder_synced : synced[operation.file]);
        const bool happened = durable || rest == Unsynced::kKept ||
                              (rest == Unsynced::kTorn && (operation.kind != Kind::kDelete || random() % 2 == 0));
        if (!happened || operation.kind == Kind::kSync) {
            continue;
        }
        if (operation.kind == Kind::kDelete) {
            file = {};
            continue;
        }
        file.exists = true;
        if (durable || rest == Unsynced::kKept) {
            apply(operation, file.bytes);
        } else {
            apply_torn(operation, random, file.bytes);
        }
    }
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    for (const auto& [name, file] : files) {
        if (file.exists) {
            std::ofstream(folder / name, std::ios::binary) << file.bytes;
            if (name.ends_with("-wal")) {
                std::ofstream(folder / (name.substr(0, name.size() - 4) + "-shm"), std::ios::binary)
                    << std::string(32768, static_cast<char>(random()));
            }
        }
    }
}

} // namespace railbreak::record
