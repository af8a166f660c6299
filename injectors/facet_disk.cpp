// A file system has no room left: a file of ours takes it. The file lies on a disk and outlives a restart, and so does
// the duty to remove it.
//
// Only kinds of file system are filled where a file's room is its own and is there at once: not those that other hosts
// write to as well, whose subvolumes share their room, or that lie on another file system.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <linux/magic.h>

#include "injectors/ballast.hpp"
#include "injectors/facet_of.hpp"
#include "injectors/facets.hpp"
#include "injectors/netlink.hpp"
#include "injectors/wire.hpp"

#include <cerrno>

namespace railbreak::injectors {

namespace {

constexpr ByteCount kLargest = ByteCount::bytes(std::uint64_t{64} << 30);
constexpr ByteCount kRoundUp = ByteCount::bytes(4096);
constexpr int kTries = 5; ///< while others write and delete
/// Less room than wanted, by so much, is as good: a file system keeps books in whole blocks.
constexpr ByteCount kSlack = ByteCount::bytes(std::uint64_t{1} << 20);

struct Former {
    std::string path;       ///< of the ballast
    std::uint64_t type = 0; ///< with the size: knows the file system again after a restart
    ByteCount total;
    ByteCount available;
};

std::string folder_of(const Former& former) {
    const std::size_t slash = former.path.rfind('/');
    return slash == 0 ? "/" : former.path.substr(0, slash);
}

tl::unexpected<Error> refuse_folder(const FaultTarget& target, std::string_view why) {
    return fail(Error(ErrorKind::kRefused, fmt::format("{} may not be filled: {}", target.folder, why))
                    .with("folder", target.folder));
}

ByteCount less(ByteCount a, ByteCount b) {
    return ByteCount::bytes(a.bytes() - std::min(a, b).bytes());
}

/// A file system in memory takes what it holds from the host's memory.
Result<void> check_memory(HostOps& ops, const FaultTarget& target, ByteCount ballast) {
    const auto text = ops.read_file("/proc/meminfo");
    if (!text) {
        return tl::unexpected(text.error());
    }
    constexpr std::string_view kName = "MemAvailable:";
    std::uint64_t kibibytes = 0;
    const std::size_t name = text->find(kName);
    const std::size_t number = name == std::string::npos ? name : text->find_first_of("0123456789", name);
    if (number == std::string::npos ||
        std::from_chars(text->data() + number, text->data() + text->size(), kibibytes).ec != std::errc()) {
        return fail(ErrorKind::kHarness, "/proc/meminfo does not tell how much memory is available");
    }
    return ballast.bytes() / 1024 > kibibytes / 2
               ? refuse_folder(target, "it lies in memory, and more than half of what the host has left would be taken")
               : Result<void>();
}

class Disk final : public FacetOf<Former> {
public:
    FacetKind kind() const override { return FacetKind::kDisk; }

protected:
    bool concerned(const WantedState& wanted) const override { return wanted.disk_leave.has_value(); }

    Result<Former> look(HostOps& ops, const FacetContext& context, const FaultRequest& request) const override {
        const FaultTarget& target = context.target;
        const auto system = ops.file_system(target.folder);
        if (!system) {
            return tl::unexpected(system.error());
        }
        const std::uint64_t type = system->type;
        if (type != EXT4_SUPER_MAGIC && type != XFS_SUPER_MAGIC && type != TMPFS_MAGIC && type != F2FS_SUPER_MAGIC) {
            return refuse_folder(target, fmt::format("its kind of file system (0x{:x}) is none of ext4, xfs, f2fs and "
                                                     "tmpfs, of which it is known what a file takes",
                                                     type));
        }
        if (system->total.bytes() == 0) {
            return refuse_folder(target, "its file system has no limit");
        }
        if (system->available <= request.leave) {
            return refuse_folder(target,
                                 fmt::format("there are only {} bytes left already", system->available.bytes()));
        }
        const ByteCount ballast = less(system->available, request.leave);
        if (ballast > kLargest) {
            return refuse_folder(
                target, fmt::format("it would take {} bytes, and the limit is {}", ballast.bytes(), kLargest.bytes()));
        }
        Former former{ballast_path(context), type, system->total, system->available};
        const auto there = ops.allocated(former.path);
        if (!there || *there) {
            return there ? refuse_folder(target, former.path + " is there already") : tl::unexpected(there.error());
        }
        if (auto able = ops.may_allocate(target.folder); !able) {
            return refuse_folder(target, able.error().message());
        }
        auto fits = type == TMPFS_MAGIC ? check_memory(ops, target, ballast) : Result<void>();
        return fits ? Result<Former>(std::move(former)) : tl::unexpected(fits.error());
    }

    /// A ballast of another size is made anew; the room between is free for a moment.
    Result<void> make(HostOps& ops, const FacetContext& context, const Former& former,
                      const WantedState& wanted) const override {
        for (int attempt = 0; attempt < kTries; ++attempt) {
            const auto system = ops.file_system(context.target.folder);
            const auto held = ops.allocated(former.path);
            if (!system || !held) {
                return tl::unexpected(system ? held.error() : system.error());
            }
            if (fits(*system, *wanted.disk_leave, *held)) {
                return {};
            }
            if (auto removed = ops.remove_file(former.path); !removed) {
                return removed;
            }
            const auto empty = ops.file_system(context.target.folder);
            if (!empty) {
                return tl::unexpected(empty.error());
            }
            const ByteCount room = less(empty->available, *wanted.disk_leave);
            const ByteCount size =
                ByteCount::bytes((room.bytes() + kRoundUp.bytes() - 1) / kRoundUp.bytes() * kRoundUp.bytes());
            if (size.bytes() == 0) {
                return {}; // others have taken it meanwhile
            }
            if (size > kLargest) {
                return refuse_folder(context.target, "others have freed more room than may be taken");
            }
            auto made = ops.make_ballast(former.path, size);
            const int code = made ? 0 : kernel_errno(made.error());
            if (code == EOPNOTSUPP || code == EDQUOT || code == EFBIG) {
                return refuse_folder(context.target, made.error().message());
            }
            if (!made && code != ENOSPC) {
                return made;
            }
        }
        return {}; // what is wrong is seen when it is read back
    }

    Result<void> undo(HostOps& ops, const FacetContext&, const Former& former) const override {
        const auto held = ops.allocated(former.path);
        const int code = held ? 0 : kernel_errno(held.error());
        if (!held || !*held) {
            return held || code == ENOTDIR ? Result<void>() : tl::unexpected(held.error());
        }
        // On disk before the entry is closed: or a crash right now would bring the file back, and nobody would know it.
        return ops.remove_file(former.path).and_then([&] { return ops.sync_folder(folder_of(former)); });
    }

    Result<Readback> read_back(HostOps& ops, const FacetContext& context, const Former& former,
                               const WantedState& wanted) const override {
        if (!wanted.disk_leave) {
            return Readback();
        }
        const auto system = ops.file_system(context.target.folder);
        const auto held = ops.allocated(former.path);
        if (!system || !held) {
            return tl::unexpected(system ? held.error() : system.error());
        }
        if (system->available > *wanted.disk_leave) {
            return fail(ErrorKind::kHarness,
                        fmt::format("{} has {} bytes left, more than the wanted {}", context.target.folder,
                                    system->available.bytes(), wanted.disk_leave->bytes()));
        }
        return Readback{{"disk_available_bytes", std::to_string(system->available.bytes())},
                        {"ballast_bytes", std::to_string(held->value_or(ByteCount()).bytes())}};
    }

    Result<Notes> verify_former(HostOps& ops, const FacetContext& context, const Former& former) const override {
        const auto held = ops.allocated(former.path);
        if (held && *held) {
            return fail(ErrorKind::kTeardown, fmt::format("{} is still there", former.path));
        }
        const auto system = ops.file_system(folder_of(former));
        const bool same = system && (system->device_id == context.target.device_id ||
                                     (system->type == former.type && system->total == former.total));
        // What a file system in memory held is gone with it.
        if (!same && former.type != TMPFS_MAGIC) {
            return fail(Error(ErrorKind::kTeardown,
                              fmt::format("the file system that was filled is not mounted at {}; {} may be on it",
                                          folder_of(former), former.path))
                            .advise("Mount it and run: railbreak recover"));
        }
        return Notes();
    }

    Result<void> clean_up(HostOps& ops, const FacetContext& context, const Former& former) const override {
        return undo(ops, context, former);
    }

    Steps steps(const FacetContext& context, const Former& former, const WantedState& wanted) const override {
        return {{fmt::format("{}: a file of {} bytes, so that {} bytes stay available on {}", former.path,
                             less(former.available, *wanted.disk_leave).bytes(), wanted.disk_leave->bytes(),
                             context.target.folder)},
                {fmt::format("{}: deleted", former.path)}};
    }

    std::string words(const Former&) const override { return "ballast file"; }

    std::string encode(const Former& former) const override {
        Encoder out;
        out.put_string(former.path);
        out.put(former.type);
        out.put(former.total.bytes());
        out.put(former.available.bytes());
        return out.take();
    }

    Result<Former> decode(std::string_view bytes) const override {
        Decoder in(bytes);
        Former former;
        former.path = in.get_string();
        former.type = in.get<std::uint64_t>();
        former.total = ByteCount::bytes(in.get<std::uint64_t>());
        former.available = ByteCount::bytes(in.get<std::uint64_t>());
        if (!in.finished() || former.path.find(fmt::format("/{}", kBallastName)) == std::string::npos ||
            !former.path.starts_with('/')) {
            return fail(ErrorKind::kInput, "the former state of a filled file system is damaged");
        }
        return former;
    }

private:
    /// "FOLDER/.railbreak-ballast-RUN".
    static std::string ballast_path(const FacetContext& context) {
        constexpr std::size_t kLongestRun = 64;
        std::string run = context.owner.substr(context.owner.find(' ') + 1).substr(0, kLongestRun);
        std::replace_if(
            run.begin(), run.end(), [](char c) { return c == '/' || static_cast<unsigned char>(c) <= ' '; }, '_');
        const std::string& folder = context.target.folder;
        return fmt::format("{}/{}{}", folder == "/" ? "" : folder, kBallastName, run);
    }

    /// True when there is no more room than wanted, and not much less because of our own file.
    static bool fits(const FileSystemRecord& system, ByteCount leave, const std::optional<ByteCount>& held) {
        return system.available <= leave && (!held || less(leave, system.available) <= kSlack);
    }
};

} // namespace

const Facet& disk_facet() {
    static const Disk facet;
    return facet;
}

} // namespace railbreak::injectors
