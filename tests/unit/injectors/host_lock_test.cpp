// The lock on a host, the halt file, and where both are kept.
#include "injectors/host_lock.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/state_folder.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;

constexpr NetnsIdentity kHere{4711, 12};

class HostLockTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "railbreak-lock-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static HostOwner owner(const std::string& run) {
        return {.run_id = run,
                .host_name = "h3",
                .user = current_user(),
                .since = std::chrono::seconds(1'700'000'000),
                .agent = current_process()};
    }
    std::string folder_;
};

TEST_F(HostLockTest, RefusesASecondOwnerAndNamesTheFirst) {
    auto first = HostLock::take(folder_, kHere, owner("run-1"));
    ASSERT_TRUE(first) << first.error().to_line();
    const auto second = HostLock::take(folder_, kHere, owner("run-2"));
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::kRefused);
    for (const std::string& part : {std::string("run-1"), "process " + std::to_string(::getpid()), current_user(),
                                    std::string("since 2023-11-14T22:13:20")}) {
        EXPECT_THAT(second.error().message(), HasSubstr(part));
    }
    EXPECT_TRUE(HostLock::take(folder_, {kHere.inode, kHere.cookie + 1}, owner("run-2"))) << "another namespace";
}

TEST_F(HostLockTest, IsFreeAfterItsOwnerHoweverThatEnds) {
    { const auto lock = HostLock::take(folder_, kHere, owner("run-1")).value(); }
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    const pid_t child = ::fork();
    if (child == 0) {
        auto lock = HostLock::take(folder_, kHere, owner("run-2"));
        ::_exit(lock ? 0 : 1); // no destructor
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    EXPECT_FALSE(std::filesystem::is_empty(folder_)) << "the file of a killed owner stays";
    EXPECT_TRUE(HostLock::take(folder_, kHere, owner("run-3")));
}

TEST_F(HostLockTest, TellsWhoLives) {
    auto lock = HostLock::take(folder_, kHere, owner("run-1")).value();
    ASSERT_TRUE(lock.note(::getppid(), "/run/x.journal"));
    HostOwner dead = owner("run-2");
    dead.agent.start_ticks += 1; // another process that once had this number
    std::ofstream(folder_ + "/host-1-1.lock") << to_text(dead);
    std::ofstream(folder_ + "/host-1-2.lock") << "not one of ours\n";
    const auto owners = list_owners(folder_);
    ASSERT_TRUE(owners);
    ASSERT_EQ(owners->size(), 1U);
    EXPECT_EQ(owners->front().run_id, "run-1");
    EXPECT_EQ(owners->front().guard.pid, ::getppid());
    EXPECT_EQ(owners->front().journal, "/run/x.journal");
    ASSERT_TRUE(list_owners(folder_, true));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/host-1-1.lock"));
    EXPECT_TRUE(std::filesystem::exists(lock.path()));
}

TEST_F(HostLockTest, ANoteExcludesNobodyAndIsListed) {
    const auto note = HostLock::note_presence(folder_, kHere, owner("measured"));
    ASSERT_TRUE(note) << note.error().to_line();
    const auto lock = HostLock::take(folder_, kHere, owner("broken"));
    ASSERT_TRUE(lock) << lock.error().to_line();
    EXPECT_EQ(list_owners(folder_, true)->size(), 2U);
}

TEST_F(HostLockTest, ADeadOwnerThatNobodyReapsHasNoHost) {
    const pid_t child = ::fork();
    if (child == 0) {
        const auto lock = HostLock::take(folder_, kHere, owner("run-1"));
        ::_exit(lock ? 0 : 1); // no destructor
    }
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0); // it stays a zombie
    EXPECT_EQ(list_owners(folder_, true)->size(), 0U);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(HostLockTest, OwnersSurviveTheirText) {
    HostOwner before = owner("a run\nwith=signs");
    before.guard = {4, 5, {}};
    const auto after = parse_owner(to_text(before));
    ASSERT_TRUE(after);
    EXPECT_EQ(after->run_id, "a run with=signs");
    EXPECT_EQ(after->since, before.since);
    EXPECT_EQ(after->agent.start_ticks, before.agent.start_ticks);
    EXPECT_EQ(after->guard.start_ticks, 5U);
    for (const char* none : {"", "agent=\n", "agent=-4\n", "agent=x\n", "\n\n=", "guard=3"}) {
        EXPECT_FALSE(parse_owner(none)) << none;
    }
}

TEST_F(HostLockTest, HaltFileIsThereUntilItIsRemoved) {
    EXPECT_FALSE(halted(folder_));
    EXPECT_FALSE(halted(folder_ + "/nowhere"));
    ASSERT_TRUE(make_halt_file(folder_, "first"));
    ASSERT_TRUE(make_halt_file(folder_, "second"));
    EXPECT_EQ(halted(folder_), "first");
    EXPECT_TRUE(remove_halt_file(folder_).value());
    EXPECT_FALSE(remove_halt_file(folder_).value());
    std::ofstream(halt_file(folder_)).flush(); // as touch(1) makes it
    EXPECT_EQ(halted(folder_), "no reason given");
}

TEST_F(HostLockTest, RootHasNoMoreRightsThanTheUserInWhoseFolderItWorks) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root works in folders of others";
    }
    constexpr uid_t kSomebody = 4242;
    std::filesystem::create_directory(folder_ + "/theirs");
    ASSERT_EQ(::chown((folder_ + "/theirs").c_str(), kSomebody, kSomebody), 0);
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    // The user has put a link to a folder of root's in the place of the own one.
    std::filesystem::create_directory(folder_ + "/roots");
    ASSERT_TRUE(make_halt_file(folder_ + "/roots", "root's own"));
    std::filesystem::create_directory_symlink(folder_ + "/roots", folder_ + "/link");
    {
        const InUsersName rights({folder_ + "/theirs", kSomebody, kSomebody});
        EXPECT_TRUE(make_halt_file(folder_ + "/theirs", "by root"));
        EXPECT_FALSE(remove_halt_file(folder_ + "/link"));
    }
    struct stat status {};
    ASSERT_EQ(::stat(halt_file(folder_ + "/theirs").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, kSomebody);
    EXPECT_TRUE(remove_halt_file(folder_ + "/link").value()) << "root has its rights again";
}

TEST(StateFolder, IsTheOneAroundTheJournals) {
    EXPECT_EQ(state_folder_of("/run/railbreak/journal"), "/run/railbreak");
    EXPECT_EQ(state_folder_of("/tmp/chosen"), "/tmp/chosen");
    EXPECT_EQ(state_folder_of("/tmp/myjournal"), "/tmp/myjournal");
}

} // namespace
} // namespace railbreak::injectors
