#include "injectors/journal.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "injectors/fault_keeper.hpp"
#include "injectors/preflight.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/recover.hpp"
#include "injectors/stepped_host_ops.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JournalTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "railbreak-journal-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        auto opened = open_host_ops();
        ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
        ops_ = std::move(*opened);
    }
    void TearDown() override { fs::remove_all(folder_); }

    static std::string bytes_of(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    std::string folder_;
    std::unique_ptr<HostOps> ops_;
};

JournalEntry entry_with(std::int32_t id) {
    JournalEntry entry;
    FaultRequest& request = entry.request;
    request.id = id;
    request.kind = FaultKind::kLoss;
    request.nic = "eth1";
    request.direction = Direction::kReceive;
    request.rate = BitRate::bits_per_s(400'000'000'000);
    request.packets = {
        std::chrono::milliseconds(3), std::chrono::milliseconds(1), 5, GilbertElliott{1, 2, 3, 4}, 6, 7, 8};
    request.peers = {"10.0.0.1", "fd00::1"};
    request.mtu_bytes = 1280;
    request.via_nic = "eth2";
    request.pid = 4711;
    request.cpu = 200'000;
    request.folder = "/srv";
    request.leave = ByteCount::bytes(65'536);
    entry.target.kind = TargetKind::kNic;
    entry.target.device = {"eth1", 7, "02:00:00:00:00:01", "02:00:00:00:00:02", 4'026'531'999, 4711, 1000};
    entry.target.pid_namespace = 4'026'531'836;
    entry.target.process = {4711, 99, "railbreak"};
    entry.target.folder = "/srv";
    entry.target.device_id = 77;
    entry.owner = "railbreak run";
    entry.boot_id = "boot";
    entry.lease_end_boottime = std::chrono::seconds(99);
    entry.former = {{FacetKind::kReceive, std::string("a\0b", 3)}, {FacetKind::kSendPackets, ""}};
    return entry;
}

TEST_F(JournalTest, GivesBackEveryFieldOfAnEntry) {
    const JournalEntry entry = entry_with(-5);
    const auto read = decode_entry(encode_entry(entry));
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(encode_entry(*read), encode_entry(entry));
    EXPECT_EQ(read->request, entry.request);
    EXPECT_EQ(read->target.kind, entry.target.kind);
    EXPECT_EQ(read->target.device, entry.target.device);
    EXPECT_EQ(read->target.process, entry.target.process);
    EXPECT_EQ(read->target.pid_namespace, entry.target.pid_namespace);
    EXPECT_EQ(read->target.folder, entry.target.folder);
    EXPECT_EQ(read->target.device_id, entry.target.device_id);
    EXPECT_EQ(read->owner, entry.owner);
    EXPECT_EQ(read->former, entry.former);
    EXPECT_EQ(read->lease_end_boottime, entry.lease_end_boottime);
}

TEST_F(JournalTest, RefusesAnEntryThatIsShorterOrLonger) {
    const std::string whole = encode_entry(entry_with(1));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_FALSE(decode_entry(std::string_view(whole).substr(0, size)).has_value()) << size;
    }
    EXPECT_FALSE(decode_entry(whole + "x").has_value());
}

TEST_F(JournalTest, TellsWhatIsOpen) {
    auto journal = Journal::create(*ops_, folder_, "run 1", "host/a");
    ASSERT_TRUE(journal.has_value()) << journal.error().to_line();
    ASSERT_TRUE(journal->intent(entry_with(1)));
    ASSERT_TRUE(journal->intent(entry_with(2)));
    ASSERT_TRUE(journal->mark(JournalMark::kApplied, 1));
    ASSERT_TRUE(journal->mark(JournalMark::kRestored, 1));
    ASSERT_TRUE(journal->intent(entry_with(3)));
    ASSERT_TRUE(journal->intent(entry_with(1))); // an id may be used again

    const auto contents = read_journal_file(journal->path());
    ASSERT_TRUE(contents.has_value());
    EXPECT_EQ(contents->run_id, "run 1");
    EXPECT_EQ(contents->host_name, "host/a");
    EXPECT_FALSE(contents->torn);
    ASSERT_EQ(contents->faults.size(), 4U);
    EXPECT_TRUE(contents->faults[0].applied && contents->faults[0].restored);
    std::vector<std::int32_t> open;
    for (const JournalEntry& entry : contents->open_entries()) {
        open.push_back(entry.request.id);
    }
    EXPECT_THAT(open, ElementsAre(1, 3, 2)); // newest first; without "applied" counts too
}

TEST_F(JournalTest, CountsEveryRecordBeforeATailTornAtAnyByte) {
    auto journal = Journal::create(*ops_, folder_, "run", "host");
    ASSERT_TRUE(journal.has_value());
    std::vector<std::size_t> ends{bytes_of(journal->path()).size()};
    for (const std::int32_t id : {1, 2, 3}) {
        ASSERT_TRUE(journal->intent(entry_with(id)));
        ends.push_back(bytes_of(journal->path()).size());
    }
    const std::string whole = bytes_of(journal->path());
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const JournalContents contents = parse_journal(std::string_view(whole).substr(0, size));
        std::size_t records = 0;
        while (records < ends.size() && ends[records] <= size) {
            ++records;
        }
        EXPECT_EQ(contents.faults.size(), records == 0 ? 0 : records - 1) << size;
        EXPECT_EQ(contents.valid_bytes, records == 0 ? 0 : ends[records - 1]) << size;
        EXPECT_EQ(contents.torn, size != contents.valid_bytes) << size;
    }
}

TEST_F(JournalTest, StopsAtAnyFlippedByte) {
    auto journal = Journal::create(*ops_, folder_, "run", "host");
    ASSERT_TRUE(journal.has_value());
    ASSERT_TRUE(journal->intent(entry_with(1)));
    const std::size_t start = bytes_of(journal->path()).size();
    ASSERT_TRUE(journal->intent(entry_with(2)));
    std::string whole = bytes_of(journal->path());
    for (std::size_t at = start; at < whole.size(); ++at) {
        whole[at] = static_cast<char>(whole[at] ^ 0x20);
        const JournalContents contents = parse_journal(whole);
        EXPECT_TRUE(contents.torn) << at;
        ASSERT_EQ(contents.faults.size(), 1U) << at;
        EXPECT_EQ(contents.faults[0].entry.request.id, 1) << at;
        whole[at] = static_cast<char>(whole[at] ^ 0x20);
    }
}

TEST_F(JournalTest, CutsATornTailBeforeItAppends) {
    std::string path;
    {
        auto journal = Journal::create(*ops_, folder_, "run", "host");
        ASSERT_TRUE(journal.has_value());
        ASSERT_TRUE(journal->intent(entry_with(1)));
        path = journal->path();
    }
    std::ofstream(path, std::ios::binary | std::ios::app) << "RBJ1 torn";
    {
        auto adopted = Journal::adopt(*ops_, path);
        ASSERT_TRUE(adopted.has_value()) << adopted.error().to_line();
        EXPECT_TRUE(adopted->contents().torn);
        ASSERT_TRUE(adopted->mark(JournalMark::kRestored, 1));
    }
    const auto contents = read_journal_file(path);
    ASSERT_TRUE(contents.has_value());
    EXPECT_FALSE(contents->torn);
    EXPECT_TRUE(contents->open_entries().empty());
}

/// A journal as another version would write it: same frames, another number in the first, another form behind it.
std::string journal_of_version(std::uint8_t version) {
    Encoder header;
    header.put(std::uint8_t{1});
    header.put(version);
    header.put_string("a run of another version");
    Encoder entry;
    entry.put(std::uint8_t{2});
    entry.put_string("an entry in another form");
    return make_frame(header.take()) + make_frame(entry.take());
}

TEST_F(JournalTest, NeverTouchesTheJournalOfAnotherVersion) {
    auto own = Journal::create(*ops_, folder_, "run", "host");
    ASSERT_TRUE(own.has_value());
    EXPECT_FALSE(read_journal_file(own->path())->other_version.has_value());
    const std::string path = folder_ + "/other.host.1-1.journal";
    for (const std::uint8_t version : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{255}}) {
        const std::string whole = journal_of_version(version);
        std::ofstream(path, std::ios::binary) << whole;
        const auto contents = read_journal_file(path);
        ASSERT_TRUE(contents.has_value());
        EXPECT_EQ(contents->other_version, version);
        EXPECT_FALSE(contents->torn);

        const auto adopted = Journal::adopt(*ops_, path);
        ASSERT_FALSE(adopted.has_value());
        EXPECT_EQ(adopted.error().kind(), ErrorKind::kTeardown);
        EXPECT_THAT(adopted.error().to_line(), HasSubstr(path));
        EXPECT_THAT(adopted.error().to_line(), HasSubstr("written by another version of railbreak"));

        const auto report = recover_folder(*ops_, folder_);
        ASSERT_TRUE(report.has_value());
        EXPECT_FALSE(report->complete()); // exit status 5
        ASSERT_EQ(report->faults.size(), 1U);
        EXPECT_THAT(report->faults[0].error, HasSubstr("railbreak recover"));
        EXPECT_EQ(bytes_of(path), whole);

        FaultTarget target;
        const auto other_run = check_other_runs(folder_, own->path(), target);
        ASSERT_FALSE(other_run.has_value());
        EXPECT_EQ(other_run.error().kind(), ErrorKind::kRefused);
    }
}

TEST_F(JournalTest, NoAgentStartsOnTheJournalOfAnotherVersion) {
    const std::string path = folder_ + "/other.host.1-1.journal";
    const std::string whole = journal_of_version(1);
    std::ofstream(path, std::ios::binary) << whole;
    KeeperOptions options;
    options.run_id = "run";
    options.journal_folder = folder_;
    options.lease = std::chrono::seconds(10);
    const auto keeper = FaultKeeper::open(options, *ops_);
    ASSERT_FALSE(keeper.has_value());
    EXPECT_EQ(keeper.error().kind(), ErrorKind::kTeardown);
    EXPECT_THAT(keeper.error().to_line(), HasSubstr(path));
    EXPECT_EQ(bytes_of(path), whole);
}

TEST_F(JournalTest, SyncsFileThenFolderBeforeAnIntentCounts) {
    std::vector<std::string> steps;
    SteppedHostOps stepped(*ops_, [&](std::string_view effect) {
        steps.emplace_back(effect);
        return Result<void>();
    });
    auto journal = Journal::create(stepped, folder_, "run", "host");
    ASSERT_TRUE(journal.has_value());
    EXPECT_THAT(steps, ElementsAre("make_folder", "create_file", "append", "sync_file", "publish_file", "sync_folder"));
    steps.clear();
    ASSERT_TRUE(journal->intent(entry_with(1)));
    EXPECT_THAT(steps, ElementsAre("append", "sync_file", "sync_folder"));
    steps.clear();
    ASSERT_TRUE(journal->mark(JournalMark::kApplied, 1));
    EXPECT_THAT(steps, ElementsAre("append", "sync_file"));
}

TEST_F(JournalTest, ReportsAFailureAtEveryStepOfCreationAndIntent) {
    constexpr int kSteps = 9; // six of create, three of intent
    for (int failing = 1; failing <= kSteps + 1; ++failing) {
        int step = 0;
        SteppedHostOps stepped(*ops_, [&](std::string_view) -> Result<void> {
            return ++step == failing ? fail(ErrorKind::kHarness, "no space") : Result<void>();
        });
        auto journal = Journal::create(stepped, folder_, "run", "host");
        const bool written = journal && journal->intent(entry_with(1));
        EXPECT_EQ(written, failing > kSteps) << failing;
    }
}

TEST_F(JournalTest, CannotBeFoundBeforeItBelongsToItsOwner) {
    SteppedHostOps stepped(*ops_, [&](std::string_view effect) {
        const auto visible = list_journals(folder_);
        EXPECT_TRUE(visible.has_value() && (visible->empty() || effect == "sync_folder")) << effect;
        return Result<void>();
    });
    auto journal = Journal::create(stepped, folder_, "run", "host");
    ASSERT_TRUE(journal.has_value());
    EXPECT_EQ(list_journals(folder_)->size(), 1U);
}

TEST_F(JournalTest, BelongsToItsOwnerWhileTheOwnerLives) {
    auto journal = Journal::create(*ops_, folder_, "run", "host");
    ASSERT_TRUE(journal.has_value());
    const auto refused = Journal::adopt(*ops_, journal->path());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind(), ErrorKind::kRefused);
    const std::string path = journal->path();
    { const Journal gone = std::move(*journal); }
    EXPECT_TRUE(Journal::adopt(*ops_, path).has_value());
}

TEST_F(JournalTest, TakesTheStateFolderFromTheEnvironment) {
    const std::string wanted = folder_ + "/a/b";
    ASSERT_EQ(setenv("RAILBREAK_STATE_DIR", wanted.c_str(), 1), 0);
    const auto folder = default_journal_folder(*ops_);
    ASSERT_TRUE(folder.has_value()) << folder.error().to_line();
    EXPECT_EQ(*folder, wanted);
    EXPECT_TRUE(fs::is_directory(wanted));
    ASSERT_EQ(chmod(wanted.c_str(), 0777), 0);
    const auto open_to_all = default_journal_folder(*ops_);
    ASSERT_EQ(unsetenv("RAILBREAK_STATE_DIR"), 0);
    ASSERT_FALSE(open_to_all.has_value());
    EXPECT_EQ(open_to_all.error().kind(), ErrorKind::kRefused);
}

TEST_F(JournalTest, FindsNoJournalInAMissingFolder) {
    const auto paths = list_journals(folder_ + "/none");
    ASSERT_TRUE(paths.has_value());
    EXPECT_TRUE(paths->empty());
}

} // namespace
} // namespace railbreak::injectors
