// What cannot be looked at is not gone: network namespaces that a mount, a descriptor or a thread keeps, or that may
// not be entered, processes of other pid namespaces, and processes that /proc hides.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/find_netns.hpp"
#include "injectors/journal.hpp"
#include "injectors/link_state.hpp"
#include "injectors/process_control.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/recover_all.hpp"
#include "injectors/restore.hpp"
#include "tests/lab/injector_lab.hpp"

namespace railbreak::injectors {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uid_t kSomebody = 4242;

/// A child process that arranges something and keeps it until the end of the object's life.
class Holder {
public:
    /// `arrange` says what the test wants to know of it.
    explicit Holder(const std::function<std::string()>& arrange) {
        std::array<int, 2> out{};
        std::array<int, 2> in{};
        EXPECT_EQ(pipe2(out.data(), O_CLOEXEC) + pipe2(in.data(), O_CLOEXEC), 0);
        end_.reset(in[1]);
        const UniqueFd answer(out[0]);
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int answer_fd = fcntl(out[1], F_DUPFD, 1000);
            const int end_fd = fcntl(in[0], F_DUPFD, 1000);
            close_range(3, 999, 0); // what other holders wait for too
            const std::string said = arrange() + "\n";
            const ssize_t put = write(answer_fd, said.data(), said.size());
            char nothing = 0;
            _exit(read(end_fd, &nothing, put > 0 ? 1 : 0) == 0 ? 0 : 1);
        }
        close(out[1]);
        close(in[0]);
        for (char each = 0; readable(answer.get(), kPatience) && read(answer.get(), &each, 1) == 1 && each != '\n';) {
            said_.push_back(each);
        }
    }
    ~Holder() { end(); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    void end() {
        if (end_.valid()) {
            end_.reset();
            wait_ended(pid_, kPatience);
        }
    }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const std::string& said() const { return said_; }
    /// The network namespace that it has said it keeps: "INODE COOKIE".
    [[nodiscard]] NetnsIdentity netns() const {
        NetnsIdentity identity;
        std::istringstream(said_) >> identity.inode >> identity.cookie;
        return identity;
    }

private:
    UniqueFd end_;
    pid_t pid_ = -1;
    std::string said_;
};

std::string own_netns() {
    const auto ops = open_host_ops();
    const auto identity = ops ? (*ops)->netns() : Result<NetnsIdentity>();
    return identity ? fmt::format("{} {}", identity->inode, identity->cookie) : "";
}

/// Makes a network namespace in a process that keeps it in a way of its own, and is not in it itself.
std::string elsewhere(const std::function<void()>& keep) {
    const UniqueFd before(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) {
        return "";
    }
    std::string identity = own_netns();
    keep();
    return setns(before.get(), CLONE_NEWNET) == 0 ? identity : "";
}

void be(uid_t user) {
    if (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) {
        _exit(70);
    }
    prctl(PR_SET_DUMPABLE, 1);
}

class OutOfReach : public InjectorLab {
protected:
    void SetUp() override {
        if (geteuid() != 0) {
            GTEST_SKIP() << "only root can play several users";
        }
        InjectorLab::SetUp();
    }
    void TearDown() override {
        if (ops_) {
            InjectorLab::TearDown();
        }
    }
    /// Runs the body in a child process as that user, in a network namespace of its own. Failures there are failures
    /// here.
    void as_user(uid_t user, const std::function<void()>& body) {
        const pid_t child = fork();
        if (child == 0) {
            EXPECT_EQ(unshare(CLONE_NEWNET), 0);
            be(user);
            auto opened = open_host_ops();
            EXPECT_TRUE(opened.has_value());
            ops_ = opened ? std::move(*opened) : nullptr;
            if (ops_ != nullptr) {
                body();
            }
            std::fflush(stdout);
            _exit(HasFailure() ? 1 : 0);
        }
        EXPECT_EQ(wait_ended(child, kPatience), 0);
    }
    void give_journals_to(uid_t user) const {
        ASSERT_EQ(chown(folder_.c_str(), user, user), 0);
        for (const auto& file : std::filesystem::directory_iterator(folder_)) {
            ASSERT_EQ(chown(file.path().c_str(), user, user), 0);
        }
    }
};

/// Whether this process can tell that a namespace is gone: the question is put for one that never was.
bool can_tell(bool ask_kernel) {
    return find_netns({1, 1, {}}, {ask_kernel}).has_value();
}

/// The kernel itself takes a moment to let go of what nobody has any more.
void expect_soon(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(kPatience);
    while (!condition() && !deadline.passed()) {
        poll(nullptr, 0, 5);
    }
    EXPECT_TRUE(condition());
}

TEST_F(OutOfReach, ANamespaceIsFoundWhateverKeepsIt) {
    const std::filesystem::path point = std::filesystem::path(folder_) / "a namespace";
    std::ofstream(point.string()) << "";
    Holder process([] { return unshare(CLONE_NEWNET) == 0 ? own_netns() : ""; });
    Holder mount_of_its_own([&] {
        return elsewhere([&] {
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
            mount("/proc/self/ns/net", point.c_str(), nullptr, MS_BIND, nullptr);
        });
    });
    Holder descriptor([] { return elsewhere([] { EXPECT_GE(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), 0); }); });
    Holder thread([] {
        std::string identity;
        bool inside = false;
        std::thread([&] {
            inside = unshare(CLONE_NEWNET) == 0;
            identity = inside ? own_netns() : "";
            // The thread stays in it for as long as the process lives.
            std::thread([] { poll(nullptr, 0, -1); }).detach();
        }).join();
        return identity;
    });
    for (const bool ask_kernel : {true, false}) {
        for (Holder* holder : {&process, &mount_of_its_own, &descriptor, &thread}) {
            ASSERT_NE(holder->netns().inode, 0U);
            const auto found = find_netns(holder->netns(), {ask_kernel});
            ASSERT_TRUE(found.has_value()) << found.error().to_line();
            ASSERT_TRUE(found->valid()) << holder->said();
            const auto there = open_host_ops_in(found->get());
            ASSERT_TRUE(there.has_value());
            EXPECT_EQ((*there)->netns().value(), holder->netns());
        }
    }
}

TEST_F(OutOfReach, ANamespaceThatNothingKeepsIsProvenGone) {
    Holder holder([] { return unshare(CLONE_NEWNET) == 0 ? own_netns() : ""; });
    const NetnsIdentity identity = holder.netns();
    holder.end();
    for (const bool ask_kernel : {true, false}) {
        if (!can_tell(ask_kernel)) {
            std::printf("nobody here can tell what is gone %s\n", ask_kernel ? "at all" : "by looking");
            continue;
        }
        expect_soon([&] {
            const auto found = find_netns(identity, {ask_kernel});
            return found.has_value() && !found->valid();
        });
    }
}

TEST_F(OutOfReach, ANamespaceIsNotGoneForWhoMayNotLookForIt) {
    Holder holder([] { return unshare(CLONE_NEWNET) == 0 ? own_netns() : ""; });
    Holder of_the_user([] {
        be(kSomebody);
        return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? own_netns() : "no user namespaces";
    });
    NetnsIdentity of_others = holder.netns();
    NetnsIdentity own = of_the_user.netns();
    own.user = kSomebody;
    for (const bool there : {true, false}) {
        as_user(kSomebody, [&] {
            for (const bool ask_kernel : {true, false}) {
                const auto found = find_netns(of_others, {ask_kernel});
                ASSERT_FALSE(found.has_value()) << "there: " << there << ", kernel: " << ask_kernel;
                EXPECT_EQ(found.error().kind(), ErrorKind::kTeardown);
                EXPECT_THAT(found.error().to_line(), HasSubstr(fmt::format("net:[{}]", of_others.inode)));
                EXPECT_THAT(found.error().advice(), HasSubstr("as root"));
            }
            auto found = find_netns(own);
            if (own.inode != 0 && there) {
                EXPECT_TRUE(found.has_value() && found->valid());
            } else if (own.inode != 0 && found.has_value()) { // by a kernel that tells
                found->reset();
                expect_soon([&] { return !find_netns(own)->valid(); });
            }
        });
        holder.end();
        of_the_user.end();
    }
}

TEST_F(OutOfReach, AFaultThereStaysInItsJournalAndKeepsNobodyFromStarting) {
    const auto before = snapshot();
    const auto hold = [](FaultKeeper& keeper) {
        if (keeper.apply({.id = 1, .kind = FaultKind::kLinkDown, .nic = "nic0"})) {
            ::kill(keeper.guard_pid(), SIGKILL);
            ::raise(SIGKILL);
        }
        return false;
    };
    ASSERT_FALSE(run_agent(hold, -1, false));
    const auto during = snapshot();
    ASSERT_NE(during, before);
    give_journals_to(kSomebody); // as if this were the namespace of a user who has less rights now
    as_user(kSomebody, [&] {
        const auto report = FaultKeeper::recover(*ops_, folder_);
        ASSERT_TRUE(report.has_value()) << report.error().to_line();
        EXPECT_FALSE(report->complete());
        ASSERT_THAT(report->faults, SizeIs(1));
        EXPECT_TRUE(report->faults[0].out_of_reach.has_value());
        EXPECT_THAT(report->faults[0].error, HasSubstr("network namespace net:["));
        std::printf("%s\n", report->faults[0].error.c_str());
        FaultKeeper keeper = open_keeper(*ops_, options("next"));
        EXPECT_THAT(keeper.leftovers().faults, SizeIs(1));
        EXPECT_TRUE(keeper.close().has_value());
    });
    expect_as_before(during, 0);
    ASSERT_THAT(list_journals(folder_).value(), SizeIs(1));
    const auto report = FaultKeeper::recover(*ops_, folder_);
    ASSERT_TRUE(report.has_value()) << report.error().to_line();
    EXPECT_TRUE(report->complete());
    expect_as_before(before, 0);
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

/// Becomes root of a user namespace with a network of one NIC, "nic0", of MTU 1500. Empty on success, else the reason.
std::string make_a_network() {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return fmt::format("no user namespace: {}", strerrordesc_np(errno));
    }
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << fmt::format("0 {} 1", kSomebody);
    std::ofstream("/proc/self/gid_map") << fmt::format("0 {} 1", kSomebody);
    auto channel = NetlinkChannel::open();
    auto ops = open_host_ops();
    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, "nic0");
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "veth"); // its peer is made with it
    message.end_nest(info);
    auto made = channel->request(message, "make nic0");
    const auto links = (*ops)->links().value();
    for (const LinkRecord& link : links) {
        made = made.and_then([&] { return (*ops)->set_link_flags(link.ifindex, IFF_UP, IFF_UP); });
    }
    const auto nic = std::ranges::find(links, "nic0", &LinkRecord::name);
    if (made && nic != links.end() && wait_running(**ops, nic->ifindex, Deadline::after(kPatience)).value_or(false)) {
        return "";
    }
    return made ? "nic0 has no carrier" : made.error().to_line();
}

TEST_F(OutOfReach, AUsersFaultInTheUsersOwnNamespaceIsUndoneFromOutside) {
    give_journals_to(kSomebody);
    Holder network([&]() -> std::string {
        be(kSomebody);
        if (const std::string why = make_a_network(); !why.empty()) {
            return why;
        }
        const pid_t agent = fork();
        if (agent == 0) {
            auto ops = open_host_ops();
            auto keeper = ops ? FaultKeeper::open(options(), **ops) : fail(ErrorKind::kHarness, "");
            if (keeper && keeper->apply({.id = 1, .kind = FaultKind::kMtu, .nic = "nic0", .mtu_bytes = 1400})) {
                ::kill(keeper->guard_pid(), SIGKILL);
                wait_ended(keeper->guard_pid(), kPatience); // it has the journal's lock, too
                ::raise(SIGKILL);
            }
            _exit(1);
        }
        return WIFSIGNALED(wait_ended(agent, kPatience)) ? "under fault" : "the fault could not be applied";
    });
    if (network.said().starts_with("no user namespace")) {
        GTEST_SKIP() << network.said();
    }
    ASSERT_EQ(network.said(), "under fault");
    const UniqueFd netns(open(fmt::format("/proc/{}/ns/net", network.pid()).c_str(), O_RDONLY | O_CLOEXEC));
    const auto there = open_host_ops_in(netns.get());
    ASSERT_TRUE(there.has_value()) << there.error().to_line();
    const auto mtu = [&] {
        const auto links = (*there)->links().value();
        return std::ranges::find(links, "nic0", &LinkRecord::name)->mtu;
    };
    ASSERT_EQ(mtu(), 1400U);
    as_user(kSomebody, [&] {
        const auto report = FaultKeeper::recover(*ops_, folder_);
        ASSERT_TRUE(report.has_value()) << report.error().to_line();
        ASSERT_THAT(report->faults, SizeIs(1));
        EXPECT_EQ(report->faults[0].error, "");
        EXPECT_THAT(report->faults[0].notes, IsEmpty());
    });
    EXPECT_EQ(mtu(), 1500U);
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

/// Starts a process in a pid namespace of its own, whose number it gives.
std::string enclose_a_process() {
    if (unshare(CLONE_NEWPID) != 0) {
        return "0";
    }
    const pid_t inside = fork();
    if (inside == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        poll(nullptr, 0, -1);
    }
    struct stat space {};
    stat(fmt::format("/proc/{}/ns/pid", inside).c_str(), &space);
    return std::to_string(space.st_ino);
}

TEST_F(OutOfReach, AProcessOfAnotherPidNamespaceIsNotGone) {
    Holder outside(enclose_a_process);
    JournalEntry entry;
    entry.request.kind = FaultKind::kPause;
    entry.target.kind = TargetKind::kProcess;
    entry.target.process = {1, 1, "worker"};
    entry.boot_id = ops_->boot_id().value();
    entry.target.pid_namespace = std::stoull(outside.said());
    ASSERT_NE(entry.target.pid_namespace, own_pid_namespace());
    const auto kept = restore_entry(*ops_, entry);
    ASSERT_FALSE(kept.has_value());
    EXPECT_THAT(kept.error().to_line(), HasSubstr(fmt::format("another pid namespace (pid:[{}])", outside.said())));
    outside.end();
    if (can_tell(false)) {
        expect_soon([&] {
            waitpid(-1, nullptr, WNOHANG); // a dead one is one as long as nobody has looked; it is ours by now
            return restore_entry(*ops_, entry).has_value();
        });
    } else {
        EXPECT_FALSE(restore_entry(*ops_, entry).has_value());
    }
    entry.target.pid_namespace = own_pid_namespace();
    EXPECT_TRUE(restore_entry(*ops_, entry).has_value()) << "another process has the pid";
}

TEST_F(OutOfReach, AUsersFaultInADeadPidNamespaceKeepsNobodyFromStartingAndIsClosedByRoot) {
    Holder outside(enclose_a_process);
    JournalEntry entry;
    entry.request.id = 1;
    entry.request.kind = FaultKind::kPause;
    entry.target.kind = TargetKind::kProcess;
    entry.target.process = {1, 1, "worker"};
    entry.target.pid_namespace = std::stoull(outside.said());
    entry.boot_id = ops_->boot_id().value();
    const FaultNamespace space = PidNamespace{entry.target.pid_namespace};
    ASSERT_NE(entry.target.pid_namespace, 0U);
    {
        auto journal = Journal::create(*ops_, folder_, "run", "host");
        ASSERT_TRUE(journal.has_value() && journal->intent(entry).has_value());
    }
    give_journals_to(kSomebody);
    const auto expect_out_of_reach = [&](const Result<RecoverReport>& report) {
        ASSERT_TRUE(report.has_value()) << report.error().to_line();
        ASSERT_THAT(report->faults, SizeIs(1));
        EXPECT_EQ(report->faults[0].out_of_reach, std::optional(space));
        EXPECT_THAT(report->faults[0].error, HasSubstr(fmt::format("pid:[{}]", outside.said())));
    };
    const JournalFolder folder{folder_, kSomebody, kSomebody};
    for (const bool there : {true, false}) {
        as_user(kSomebody, [&] {
            expect_out_of_reach(FaultKeeper::recover(*ops_, folder_));
            EXPECT_FALSE(is_proven_gone(space)) << "a user cannot look everywhere";
            FaultKeeper keeper = open_keeper(*ops_, options("next"));
            expect_out_of_reach(keeper.leftovers());
            EXPECT_TRUE(keeper.close().has_value());
        });
        if (there) {
            expect_out_of_reach(recover_foreign(folder));
            outside.end();
        }
    }
    const auto expect_closed = [&](const Result<RecoverReport>& report) {
        ASSERT_TRUE(report.has_value()) << report.error().to_line();
        ASSERT_THAT(report->faults, SizeIs(1));
        EXPECT_EQ(report->faults[0].error, "");
        EXPECT_THAT(report->faults[0].notes, ::testing::ElementsAre(HasSubstr("is gone")));
    };
    if (can_tell(false)) {
        expect_soon([&] {
            waitpid(-1, nullptr, WNOHANG); // as above
            return is_proven_gone(space);
        });
        expect_closed(recover_foreign(folder));
    } else {
        std::printf("nobody here can tell what is gone by looking\n");
        expect_out_of_reach(recover_foreign(folder));
        as_user(kSomebody, [&] { expect_closed(recover_folder(*ops_, folder_, {{space}, {}})); }); // as if told
    }
    EXPECT_THAT(list_journals(folder_).value(), IsEmpty());
}

TEST_F(OutOfReach, ANumberThatWasGivenAgainIsNoNamespaceOfBefore) {
    Holder holder([] { return unshare(CLONE_NEWNET) == 0 ? own_netns() : ""; });
    const NetnsIdentity now = holder.netns();
    ASSERT_NE(now.cookie, 0U);
    EXPECT_FALSE(is_proven_gone(now));
    EXPECT_TRUE(is_proven_gone(NetnsIdentity{now.inode, now.cookie + 1'000'000, {}}));
}

TEST_F(OutOfReach, AProcessThatProcHidesIsNotGone) {
    Holder holder([] { return "here"; });
    const pid_t child = fork();
    if (child == 0) {
        const bool hidden = unshare(CLONE_NEWNS) == 0 &&
                            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            mount("proc", "/proc", "proc", 0, "hidepid=invisible") == 0;
        be(kSomebody);
        const auto found = read_process(holder.pid());
        EXPECT_FALSE(hidden && found.has_value());
        EXPECT_EQ(read_process(0x7ffffff0).value().has_value(), false);
        std::fflush(stdout);
        _exit(HasFailure() ? 1 : hidden ? 0 : 77);
    }
    const int status = wait_ended(child, kPatience);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        GTEST_SKIP() << "no /proc that hides processes can be mounted here";
    }
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace railbreak::injectors
