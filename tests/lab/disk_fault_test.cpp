// File systems that are filled: a tmpfs with a limit, in a mount namespace of the test's own.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "injectors/ballast.hpp"
#include "injectors/journal.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/restore.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class DiskFault : public InjectorLab {
protected:
    void SetUp() override {
        if (geteuid() != 0) {
            GTEST_SKIP() << "only root can mount a file system";
        }
        prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards of killed agents
        std::string pattern = ::testing::TempDir() + "railbreak-disk-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        base_ = pattern;
        folder_ = base_ + "/journal";
        disk_ = base_ + "/disk";
        ASSERT_TRUE(fs::create_directory(disk_));
        mounts_.reset(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(unshare(CLONE_NEWNS), 0);
        ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
        mount_disk("size=16m");
        auto opened = open_host_ops();
        ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
        ops_ = std::move(*opened);
    }
    void TearDown() override {
        if (mounts_.valid()) {
            ASSERT_EQ(setns(mounts_.get(), CLONE_NEWNS), 0);
        }
        if (!base_.empty()) {
            fs::remove_all(base_);
        }
    }
    std::vector<std::string> snapshot() const override {
        std::vector<std::string> lines{fmt::format("available {}", available())};
        for (const auto& entry : fs::recursive_directory_iterator(disk_)) {
            lines.push_back(entry.path().string());
        }
        std::sort(lines.begin(), lines.end());
        return lines;
    }
    void mount_disk(const char* how) const {
        ASSERT_EQ(mount("railbreak-test", disk_.c_str(), "tmpfs", 0, how), 0) << errno;
    }
    std::uint64_t available() const { return ops_->file_system(disk_).value().available.bytes(); }
    FaultRequest fill(std::int32_t id, std::uint64_t leave) const {
        return {.id = id, .kind = FaultKind::kDiskFull, .folder = disk_, .leave = ByteCount::bytes(leave)};
    }
    void write_data(const std::string& name, std::size_t size) const {
        std::ofstream(disk_ + "/" + name) << std::string(size, 'x');
    }
    Error refusal(const FaultRequest& request) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        const auto before = snapshot();
        auto refused = keeper.apply(request);
        EXPECT_FALSE(refused.has_value());
        expect_as_before(before, 0);
        EXPECT_THAT(keeper.open_faults(), IsEmpty());
        EXPECT_TRUE(keeper.close().has_value());
        return refused ? Error(ErrorKind::kInternal, "not refused") : refused.error();
    }

    std::string base_;
    std::string disk_;
    UniqueFd mounts_;
};

TEST_F(DiskFault, LeavesNoMoreRoomThanWantedAndGivesItBack) {
    const auto before = snapshot();
    FaultKeeper keeper = open_keeper(*ops_, options());
    const auto applied = keeper.apply(fill(1, kMiB));
    ASSERT_TRUE(applied.has_value()) << applied.error().to_line();
    EXPECT_EQ(applied->mechanism, "ballast file");
    EXPECT_EQ(available(), kMiB);
    const std::map<std::string, std::string> readback(applied->readback.begin(), applied->readback.end());
    EXPECT_EQ(readback.at("disk_available_bytes"), std::to_string(kMiB));
    EXPECT_EQ(readback.at("ballast_bytes"), std::to_string(15 * kMiB));
    // A writer gets what is left, and then ENOSPC.
    const UniqueFd file(open((disk_ + "/data").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(kMiB, 'x');
    EXPECT_EQ(write(file.get(), block.data(), block.size()), static_cast<ssize_t>(kMiB));
    EXPECT_EQ(write(file.get(), block.data(), block.size()), -1);
    EXPECT_EQ(errno, ENOSPC);
    ASSERT_TRUE(fs::remove(disk_ + "/data"));
    ASSERT_EQ(ftruncate(file.get(), 0), 0);
    ASSERT_TRUE(keeper.revert(1).has_value());
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(DiskFault, TheLeastRoomHoldsAndTheyEndInAnyOrder) {
    const auto before = snapshot();
    for (const std::int32_t ends_first : {1, 2}) {
        FaultKeeper keeper = open_keeper(*ops_, options());
        ASSERT_TRUE(keeper.apply(fill(1, 8 * kMiB)).has_value());
        ASSERT_TRUE(keeper.apply(fill(2, kMiB)).has_value());
        EXPECT_EQ(available(), kMiB);
        ASSERT_TRUE(keeper.revert(ends_first).has_value());
        EXPECT_EQ(available(), ends_first == 1 ? kMiB : 8 * kMiB);
        ASSERT_TRUE(keeper.revert(3 - ends_first).has_value());
        expect_as_before(before, ends_first);
        EXPECT_TRUE(keeper.close().has_value());
    }
}

TEST_F(DiskFault, FailsAtEveryEffect) {
    EXPECT_GT(fail_at_every_effect(apply_and_revert(fill(1, kMiB))), 5);
}

TEST_F(DiskFault, GuardEmptiesItWhenTheAgentIsKilledAtAnyEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(fill(1, kMiB)), false), 5);
}

TEST_F(DiskFault, RecoveryEmptiesItWhenAgentAndGuardAreKilledAtAnyEffect) {
    EXPECT_GT(kill_at_every_effect(apply_and_revert(fill(1, kMiB)), true), 5);
}

TEST_F(DiskFault, IsUndoneAfterARestartToo) {
    const auto before = snapshot();
    JournalEntry entry;
    {
        FaultKeeper keeper = open_keeper(*ops_, options());
        ASSERT_TRUE(keeper.apply(fill(1, kMiB)).has_value());
        const auto contents = read_journal_file(keeper.journal_path());
        ASSERT_TRUE(contents.has_value());
        entry = contents->open_entries().at(0);
        ASSERT_TRUE(keeper.close().has_value());
    }
    // The same once more, as an entry of another boot; device numbers are given anew then.
    const FacetContext context{entry.target, entry.owner, Nanoseconds(0)};
    WantedState wanted;
    wanted.disk_leave = ByteCount::bytes(kMiB);
    ASSERT_TRUE(facet(FacetKind::kDisk).go_to(*ops_, context, entry.former.at(0).state, wanted).has_value());
    EXPECT_EQ(available(), kMiB);
    entry.boot_id = "another boot";
    entry.target.device_id += 1;
    const auto restored = restore_entry(*ops_, entry);
    ASSERT_TRUE(restored.has_value()) << restored.error().to_line();
    expect_as_before(before, 0);
    EXPECT_TRUE(restore_entry(*ops_, entry).has_value()); // undo is idempotent
}

TEST_F(DiskFault, ABallastThatNoJournalKnowsIsFoundByItsName) {
    const auto before = snapshot();
    FaultRequest request = fill(1, kMiB);
    request.folder += "/a folder";
    ASSERT_TRUE(fs::create_directory(request.folder));
    const auto with_folder = snapshot();
    JournalEntry entry;
    {
        FaultKeeper keeper = open_keeper(*ops_, options());
        ASSERT_TRUE(keeper.apply(request).has_value());
        entry = read_journal_file(keeper.journal_path()).value().open_entries().at(0);
        ASSERT_TRUE(keeper.close().has_value());
    }
    const FacetContext context{entry.target, entry.owner, Nanoseconds(0)};
    WantedState wanted;
    wanted.disk_leave = ByteCount::bytes(kMiB);
    ASSERT_TRUE(facet(FacetKind::kDisk).go_to(*ops_, context, entry.former.at(0).state, wanted).has_value());
    // What only looks like one stays.
    fs::create_symlink("/dev/null", disk_ + "/.railbreak-ballast-link");
    ASSERT_TRUE(fs::create_directory(disk_ + "/.railbreak-ballast-folder"));
    std::ofstream(disk_ + "/.railbreak-ballast-mine").flush(); // everybody may read it
    std::string mine; // only this test's mount: other suites are at work on this machine
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        mine += line.find(disk_) != std::string::npos ? line + "\n" : "";
    }
    const auto found = find_ballast(mine);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].path(), request.folder + "/.railbreak-ballast-run");
    EXPECT_TRUE(remove_ballast(found[0]).has_value());
    EXPECT_FALSE(remove_ballast(found[0]).has_value());
    EXPECT_THAT(find_ballast(mine), IsEmpty());
    for (const char* other : {"link", "folder", "mine"}) {
        EXPECT_TRUE(fs::remove(disk_ + "/.railbreak-ballast-" + other)) << other;
    }
    EXPECT_EQ(snapshot(), with_folder);
    ASSERT_TRUE(fs::remove(request.folder));
    expect_as_before(before, 0);
}

TEST_F(DiskFault, RefusesWhatMustNotBeFilled) {
    const Error root = refusal({.id = 1, .kind = FaultKind::kDiskFull, .folder = "/", .leave = ByteCount::bytes(kMiB)});
    EXPECT_EQ(root.kind(), ErrorKind::kRefused);
    EXPECT_THAT(root.message(), HasSubstr("root file system"));
    EXPECT_THAT(refusal(fill(1, 16 * kMiB)).message(), HasSubstr("left already"));
    write_data(".railbreak-ballast-run", 10);
    EXPECT_THAT(refusal(fill(1, kMiB)).message(), HasSubstr("is there already"));
    ASSERT_TRUE(fs::remove(disk_ + "/.railbreak-ballast-run"));
    FaultRequest file = fill(1, kMiB);
    write_data("file", 10);
    file.folder += "/file";
    EXPECT_EQ(refusal(file).kind(), ErrorKind::kInput);
    FaultRequest proc = fill(1, 0);
    proc.folder = "/proc";
    EXPECT_THAT(refusal(proc).message(), HasSubstr("kind of file system"));
}

TEST_F(DiskFault, RefusesTooMuch) {
    mount_disk("size=200g");
    EXPECT_THAT(refusal(fill(1, kMiB)).message(), HasSubstr("the limit is"));
    mount_disk("size=63g");
    EXPECT_THAT(refusal(fill(1, kMiB)).message(), HasSubstr("it lies in memory"));
    mount_disk("size=0");
    EXPECT_THAT(refusal(fill(1, kMiB)).message(), HasSubstr("no limit"));
}

TEST_F(DiskFault, FollowsALinkToTheFolderThatIsMeant) {
    const auto before = snapshot();
    fs::create_directory_symlink(disk_, base_ + "/link");
    FaultKeeper keeper = open_keeper(*ops_, options());
    FaultRequest request = fill(1, kMiB);
    request.folder = base_ + "/link/.";
    const auto preview = keeper.preview(request);
    ASSERT_TRUE(preview.has_value()) << preview.error().to_line();
    EXPECT_EQ(preview->target.folder, disk_);
    EXPECT_THAT(preview->steps.undo, ::testing::ElementsAre(disk_ + "/.railbreak-ballast-run: deleted"));
    expect_as_before(before, 0);
    EXPECT_TRUE(keeper.close().has_value());
}

} // namespace
} // namespace railbreak::injectors
