// The lab against the real kernel: real namespaces, real shapers, real flows, real deaths.
#include "base/user.hpp"
#include "harness/lab/lab.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/lab/fabric.hpp"
#include "harness/lab/keeper.hpp"
#include "harness/lab/privilege.hpp"
#include "harness/lab/processes.hpp"
#include "harness/lab/state.hpp"
#include "injectors/netlink.hpp"
#include "injectors/traffic_control.hpp"
#include "tests/lab/lab_flow.hpp"

namespace railbreak::lab {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uid_t kNobodyInParticular = 4242;
/// TCP payload over bytes that the shaper counts, MTU 1500 with timestamps: 1448 / 1514.
constexpr double kPayloadShare = 1448.0 / 1514.0;

BitRate mbit(std::uint64_t value) {
    return BitRate::bits_per_s(value * 1'000'000);
}

LabSpec spec_of(const std::string& name, unsigned hosts, unsigned nics, BitRate rate) {
    return {name, hosts, nics, rate, 1500};
}

template <class T> testing::AssertionResult ok(const Result<T>& result) {
    return result ? testing::AssertionSuccess() : testing::AssertionFailure() << result.error().to_line();
}

std::string slurp(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class LabTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "railbreak-lab-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        ::setenv("RAILBREAK_STATE_DIR", folder_.c_str(), 1);
        if (auto able = become_namespace_root(); !able) {
            GTEST_SKIP() << able.error().to_line();
        }
    }
    void TearDown() override {
        static_cast<void>(lab_down_all(Deadline::after(seconds(10))));
        ::rmdir(folder_.c_str());
    }
    /// All hosts' namespaces are gone: the switch namespace behind the descriptor has no port left.
    static testing::AssertionResult ports_gone(int switch_netns) {
        return ok(wait_until_ports_gone_in(switch_netns, Deadline::after(seconds(10))));
    }
    std::string folder_;
};

// ---- what is built -------------------------------------------------------------------------------------------------

TEST_F(LabTest, EveryShaperKeepsWhatWasAsked) {
    const auto spec = spec_of("shapers", 8, 2, mbit(200));
    auto lab = Lab::up(spec);
    ASSERT_TRUE(ok(lab));
    const auto wanted = injectors::make_htb_class(spec.rate, lab_burst(), kLabQuantum);
    const auto check = [&](int netns, const std::string& name, int ifindex) {
        auto channel = injectors::NetlinkChannel::open_in(netns);
        ASSERT_TRUE(ok(channel));
        const auto index = injectors::interface_index(*channel, name);
        ASSERT_TRUE(ok(index));
        EXPECT_EQ(*index, ifindex);
        const auto kept = injectors::read_htb_class(*channel, ifindex, injectors::kLabHtbClass);
        ASSERT_TRUE(ok(kept)) << name;
        EXPECT_EQ(*kept, wanted) << name;
        const auto qdiscs = injectors::list_qdiscs(*channel, ifindex);
        ASSERT_TRUE(ok(qdiscs));
        ASSERT_EQ(qdiscs->size(), 2U);
        EXPECT_EQ(qdiscs->at(0).kind, "htb");
        EXPECT_EQ(qdiscs->at(0).htb_default, 1U);
        EXPECT_EQ(qdiscs->at(1).fifo_limit, ByteCount::bytes(500'000)); // 20 ms of 200 Mbit/s
    };
    for (const auto& host : lab->hosts()) {
        for (const auto& nic : host.nics) {
            check(lab->host_netns_fd(host.index), nic.name, nic.ifindex);
            check(lab->switch_netns_fd(), nic.switch_port, nic.switch_ifindex);
        }
    }
    EXPECT_TRUE(ok(lab->down(Deadline::after(seconds(10)))));
}

TEST_F(LabTest, EveryRailConnectsEveryPair) {
    auto lab = Lab::up(spec_of("pairs", 3, 2, mbit(100)));
    ASSERT_TRUE(ok(lab));
    const bool has_cubic =
        slurp("/proc/sys/net/ipv4/tcp_available_congestion_control").find("cubic") != std::string::npos;
    for (unsigned from = 0; from < 3; ++from) {
        for (unsigned to = 0; to < 3; ++to) {
            for (unsigned rail = 0; rail < 2 && from != to; ++rail) {
                const auto flow =
                    connect_flow(lab->host_netns_fd(from), lab->host_netns_fd(to), lab->hosts()[to].nics[rail].address);
                ASSERT_TRUE(flow) << from << " to " << to << " on rail " << rail;
                if (has_cubic) {
                    EXPECT_EQ(congestion_control_of(flow->sender.get()), "cubic");
                }
            }
        }
    }
}

/// Goodput out of h0 (to h1) and into h0 (from h2), both at once; {0, 0} when a flow cannot be set up.
std::pair<double, double> measure_both_ways(const Lab& lab) {
    const auto out = connect_flow(lab.host_netns_fd(0), lab.host_netns_fd(1), lab.hosts()[1].nics[0].address);
    const auto in = connect_flow(lab.host_netns_fd(2), lab.host_netns_fd(0), lab.hosts()[0].nics[0].address);
    if (!out || !in) {
        return {0, 0};
    }
    double sent = 0;
    std::thread sending([&] { sent = measure_goodput(*out, milliseconds(300), milliseconds(1800)); });
    const double received = measure_goodput(*in, milliseconds(300), milliseconds(1800));
    sending.join();
    return {sent, received};
}

TEST_F(LabTest, ARateChangedInPlaceHoldsInBothDirections) {
    auto lab = Lab::up(spec_of("rates", 8, 1, mbit(200)));
    ASSERT_TRUE(ok(lab));
    const auto& capped = lab->hosts()[0].nics[0];
    auto host = injectors::NetlinkChannel::open_in(lab->host_netns_fd(0));
    auto fabric_switch = injectors::NetlinkChannel::open_in(lab->switch_netns_fd());
    ASSERT_TRUE(ok(host));
    ASSERT_TRUE(ok(fabric_switch));
    for (const std::uint64_t rate : {200U, 100U}) {
        const auto wanted = injectors::make_htb_class(mbit(rate), lab_burst(), kLabQuantum);
        ASSERT_TRUE(ok(injectors::change_htb_class(*host, capped.ifindex, injectors::kLabHtbClass, wanted)));
        ASSERT_TRUE(
            ok(injectors::change_htb_class(*fabric_switch, capped.switch_ifindex, injectors::kLabHtbClass, wanted)));
        EXPECT_EQ(injectors::read_htb_class(*host, capped.ifindex, injectors::kLabHtbClass), wanted);
        EXPECT_EQ(injectors::read_htb_class(*fabric_switch, capped.switch_ifindex, injectors::kLabHtbClass), wanted);
        const double expected = static_cast<double>(rate) * 1e6 * kPayloadShare;
        double sent = 0;
        double received = 0;
        // A busy machine can only lower the goodput: no attempt may be above the cap, and the best one must reach it.
        constexpr int kAttempts = 6;
        for (int attempt = 0; attempt < kAttempts && std::min(sent, received) < 0.98 * expected; ++attempt) {
            const auto measured = measure_both_ways(*lab);
            EXPECT_LT(measured.first, 1.02 * expected);
            EXPECT_LT(measured.second, 1.02 * expected);
            sent = std::max(sent, measured.first);
            received = std::max(received, measured.second);
        }
        EXPECT_GT(sent, 0.98 * expected);
        EXPECT_GT(received, 0.98 * expected);
        RecordProperty("sent_at_" + std::to_string(rate), std::to_string(sent / expected));
        RecordProperty("received_at_" + std::to_string(rate), std::to_string(received / expected));
    }
}

TEST_F(LabTest, ALargeLabComesUpAndGoes) {
    auto lab = Lab::up(spec_of("large", 33, 2, mbit(10)));
    ASSERT_TRUE(ok(lab));
    EXPECT_TRUE(connect_flow(lab->host_netns_fd(0), lab->host_netns_fd(32), "10.77.1.33"));
    EXPECT_TRUE(ok(lab->down(Deadline::after(seconds(20)))));
}

// ---- ownership -----------------------------------------------------------------------------------------------------

TEST_F(LabTest, ANameThatIsUpIsRefusedAndFreeAgainAfterwards) {
    const auto spec = spec_of("twice", 2, 1, mbit(100));
    auto first = Lab::up(spec);
    ASSERT_TRUE(ok(first));
    const auto second = Lab::up(spec);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind(), ErrorKind::kRefused);
    EXPECT_NE(second.error().to_line().find("owner=" + std::to_string(::getpid())), std::string::npos);
    // Nobody else takes it from its owner.
    const auto taken = lab_down("twice", Deadline::after(seconds(5)));
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().kind(), ErrorKind::kRefused);
    ASSERT_TRUE(ok(first->down(Deadline::after(seconds(10)))));
    EXPECT_TRUE(lab_list()->empty());
    EXPECT_TRUE(ok(Lab::up(spec)));
}

TEST_F(LabTest, DownEndsWhatStillRunsInside) {
    auto lab = Lab::up(spec_of("busy", 2, 1, mbit(100)));
    ASSERT_TRUE(ok(lab));
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t inside = start_child(0, [&] {
        ::signal(SIGTERM, SIG_IGN); // only SIGKILL ends this one
        if (!enter_host(lab->host_netns_fd(0)) || ::write(ends[1], "x", 1) != 1) {
            return 1;
        }
        while (true) {
            ::pause();
        }
    });
    ::close(ends[1]); // so that a child that fails ends the read
    char started = 0;
    ASSERT_EQ(::read(ends[0], &started, 1), 1);
    EXPECT_TRUE(ok(lab->down(Deadline::after(seconds(4)))));
    int status = 0;
    ASSERT_EQ(::waitpid(inside, &status, 0), inside);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ::close(ends[0]);
}

TEST_F(LabTest, DownReportsANamespaceThatIsStillHeld) {
    auto lab = Lab::up(spec_of("held", 2, 1, mbit(100)));
    ASSERT_TRUE(ok(lab));
    UniqueFd held(::fcntl(lab->host_netns_fd(1), F_DUPFD_CLOEXEC, 0));
    const UniqueFd fabric_switch(::fcntl(lab->switch_netns_fd(), F_DUPFD_CLOEXEC, 0));
    const auto down = lab->down(Deadline::after(milliseconds(600)));
    ASSERT_FALSE(down);
    EXPECT_EQ(down.error().kind(), ErrorKind::kTeardown);
    EXPECT_NE(down.error().to_line().find("ports=1"), std::string::npos) << down.error().to_line();
    EXPECT_EQ(lab_list()->size(), 1U); // its record stays, so that somebody looks after it
    held.reset();
    EXPECT_TRUE(ports_gone(fabric_switch.get()));
    EXPECT_TRUE(ok(lab_down("held", Deadline::after(seconds(5)))));
    EXPECT_TRUE(lab_list()->empty());
}

TEST_F(LabTest, AConnectionWhosePeerIsOutOfReachDoesNotHoldItsHost) {
    auto lab = Lab::up(spec_of("orphaned-socket", 2, 1, mbit(100)));
    ASSERT_TRUE(ok(lab));
    auto flow = connect_flow(lab->host_netns_fd(0), lab->host_netns_fd(1), lab->hosts()[1].nics[0].address);
    ASSERT_TRUE(flow);
    auto fabric_switch = injectors::NetlinkChannel::open_in(lab->switch_netns_fd());
    ASSERT_TRUE(ok(fabric_switch));
    ifinfomsg down{};
    down.ifi_index = lab->hosts()[1].nics[0].switch_ifindex;
    down.ifi_change = IFF_UP;
    injectors::NetlinkMessage message(RTM_NEWLINK, 0);
    message.append_header(down);
    ASSERT_TRUE(ok(fabric_switch->request(message, "take the port down")));
    flow.reset(); // nobody acknowledges the end of either direction
    EXPECT_TRUE(ok(lab->down(Deadline::after(seconds(20)))));
}

TEST_F(LabTest, TheDeathOfTheOwnerRemovesEverything) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t owner = start_child(0, [&] {
        auto lab = Lab::up(spec_of("orphan", 4, 1, mbit(100)));
        const pid_t keeper = lab ? lab->keeper_pid() : 0;
        if (!lab) {
            return 1;
        }
        // Somebody inside who does not notice that the owner is gone. He is inside before the owner's death is due.
        std::array<int, 2> entered{};
        static_cast<void>(!::pipe2(entered.data(), O_CLOEXEC));
        if (::fork() == 0) {
            static_cast<void>(enter_host(lab->host_netns_fd(2)));
            static_cast<void>(!::write(entered[1], "", 1));
            ::close_range(3, ~0U, 0);
            while (true) {
                ::pause();
            }
        }
        char inside = 0;
        static_cast<void>(!::read(entered[0], &inside, sizeof inside));
        static_cast<void>(!::write(ends[1], &keeper, sizeof keeper));
        while (true) {
            ::pause();
        }
    });
    ::close(ends[1]);
    pid_t keeper = 0;
    ASSERT_EQ(::read(ends[0], &keeper, sizeof keeper), static_cast<ssize_t>(sizeof keeper));
    const auto record = read_keeper(keeper);
    ASSERT_TRUE(record);
    const UniqueFd keeper_pidfd = open_process(record->keeper);
    const auto fabric_switch = open_keeper_fd(record->keeper, kKeeperSwitchFd);
    ASSERT_TRUE(ok(fabric_switch));
    ::kill(owner, SIGKILL);
    EXPECT_TRUE(wait_for_end(keeper_pidfd.get(), Deadline::after(seconds(15))));
    EXPECT_TRUE(ports_gone(fabric_switch->get()));
    EXPECT_TRUE(processes_inside(record->namespaces, NamespaceProof::kCookie).empty());
    EXPECT_TRUE(lab_list()->empty());
    EXPECT_EQ(finish_child(owner), -1);
    ::close(ends[0]);
}

TEST_F(LabTest, ALabWhoseKeeperWasKilledIsCleanedUp) {
    auto up = lab_up_kept(spec_of("headless", 3, 1, mbit(100)));
    ASSERT_TRUE(ok(up));
    const auto record = read_keeper(up->keeper_pid);
    ASSERT_TRUE(record);
    auto netns = open_keeper_fd(record->keeper, kKeeperFirstHostFd + 1);
    ASSERT_TRUE(ok(netns));
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t inside = start_child(0, [&] {
        if (!enter_host(netns->get()) || ::write(ends[1], "x", 1) != 1) {
            return 1;
        }
        while (true) {
            ::pause();
        }
    });
    ::close(ends[1]); // so that a child that fails ends the read
    char started = 0;
    ASSERT_EQ(::read(ends[0], &started, 1), 1);
    netns->reset();
    auto fabric_switch = open_keeper_fd(record->keeper, kKeeperSwitchFd);
    ASSERT_TRUE(ok(fabric_switch));
    const UniqueFd pidfd = open_process(record->keeper);
    ASSERT_EQ(::kill(up->keeper_pid, SIGKILL), 0);
    ASSERT_TRUE(wait_for_end(pidfd.get(), Deadline::after(seconds(5))));

    const auto list = lab_list();
    ASSERT_TRUE(ok(list));
    ASSERT_EQ(list->size(), 1U);
    EXPECT_FALSE(list->front().alive);
    EXPECT_FALSE(processes_inside(record->namespaces, NamespaceProof::kCookie).empty());
    const auto outcomes = lab_down_all(Deadline::after(seconds(5)));
    ASSERT_TRUE(ok(outcomes));
    ASSERT_EQ(outcomes->size(), 1U);
    EXPECT_TRUE(ok(outcomes->front().result));
    EXPECT_EQ(finish_child(inside), -1);
    EXPECT_TRUE(ports_gone(fabric_switch->get()));
    EXPECT_TRUE(lab_list()->empty());
    ::close(ends[0]);
}

TEST_F(LabTest, AKeptLabWithoutItsRecordIsStillFound) {
    const auto spec = spec_of("unrecorded-with-a-long-name", 2, 1, mbit(100));
    auto up = lab_up_kept(spec);
    ASSERT_TRUE(ok(up));
    ASSERT_EQ(::unlink((folder_ + "/" + spec.name + ".lab.json").c_str()), 0);
    const auto list = lab_list();
    ASSERT_EQ(list->size(), 1U);
    EXPECT_EQ(list->front().spec, spec);
    EXPECT_TRUE(list->front().alive);
    EXPECT_FALSE(list->front().has_record);
    const auto again = lab_up_kept(spec);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().kind(), ErrorKind::kRefused);
    const auto outcomes = lab_down_all(Deadline::after(seconds(10)));
    ASSERT_EQ(outcomes->size(), 1U);
    EXPECT_EQ(outcomes->front().name, spec.name);
    EXPECT_TRUE(ok(outcomes->front().result));
    EXPECT_FALSE(is_alive(identify_process(up->keeper_pid)));
}

TEST_F(LabTest, DownOfAnUnknownLabIsAnInputError) {
    const auto down = lab_down("nobody", Deadline::after(seconds(1)));
    ASSERT_FALSE(down);
    EXPECT_EQ(down.error().kind(), ErrorKind::kInput);
}

// ---- kept labs, as root and as a normal user -----------------------------------------------------------------------

/// What `command` prints when run in a lab host; "exit N" when it fails.
std::string output_of(uid_t user, const std::string& lab, const std::string& host,
                      const std::vector<std::string>& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return "no pipe";
    }
    const pid_t child = start_child(user, [&] {
        ::dup2(ends[1], STDOUT_FILENO);
        const auto failed = lab_exec(lab, host, command);
        std::fprintf(stderr, "%s\n", failed.error().to_line().c_str());
        return 3;
    });
    ::close(ends[1]);
    std::string text;
    std::array<char, 512> part{};
    ssize_t size = 0;
    while ((size = ::read(ends[0], part.data(), part.size())) > 0) {
        text.append(part.data(), static_cast<std::size_t>(size));
    }
    ::close(ends[0]);
    const int code = finish_child(child);
    return code == 0 ? text : "exit " + std::to_string(code);
}

void use_a_kept_lab(uid_t user) {
    const auto spec = spec_of("kept", 4, 2, mbit(100));
    constexpr int kNotAllowed = 77;
    const int built = run_in_child(user, [&] {
        if (auto able = become_namespace_root(); !able) {
            std::printf("%s\n", able.error().to_line().c_str());
            std::fflush(stdout);
            return able.error().kind() == ErrorKind::kRefused ? kNotAllowed : 1;
        }
        auto up = lab_up_kept(spec);
        if (!up) {
            std::fprintf(stderr, "%s\n", up.error().to_line().c_str());
        }
        return up ? 0 : 2;
    });
    if (built == kNotAllowed) {
        GTEST_SKIP() << "user namespaces are not allowed here (reason above)";
    }
    ASSERT_EQ(built, 0);
    // Its builder has ended; the lab is there and can be entered.
    EXPECT_EQ(output_of(user, "kept", "h3", {"sh", "-c", "cat /proc/net/fib_trie | grep -o '10.77.1.4' | sort -u"}),
              "10.77.1.4\n");
    EXPECT_EQ(output_of(user, "kept", "2", {"sh", "-c", "cd /sys/class/net && echo rail*"}), "rail0 rail1\n");
    EXPECT_EQ(output_of(user, "kept", "h4", {"true"}), "exit 3");
    EXPECT_EQ(output_of(user, "kept", "h0", {"no-such-program"}), "exit 3");
    EXPECT_EQ(run_in_child(user,
                           [&] {
                               const auto list = lab_list();
                               return list && list->size() == 1 && list->front().alive && list->front().kept &&
                                              list->front().spec == spec && list->front().has_record
                                          ? 0
                                          : 1;
                           }),
              0);
    EXPECT_EQ(run_in_child(user,
                           [&] {
                               const auto down = lab_down("kept", Deadline::after(seconds(10)));
                               if (!down) {
                                   std::fprintf(stderr, "%s\n", down.error().to_line().c_str());
                               }
                               return down && lab_list()->empty() ? 0 : 1;
                           }),
              0);
}

TEST_F(LabTest, AKeptLabOutlivesItsBuilder) {
    use_a_kept_lab(0);
}

TEST_F(LabTest, AKeptLabOfANormalUserNeedsNoRoot) {
    if (outer_uid() != 0 || ::geteuid() != 0) {
        GTEST_SKIP() << "already a normal user: the other tests show the same";
    }
    ASSERT_EQ(::chown(folder_.c_str(), kNobodyInParticular, kNobodyInParticular), 0);
    use_a_kept_lab(kNobodyInParticular);
    ASSERT_EQ(::chown(folder_.c_str(), 0, 0), 0);
}

TEST_F(LabTest, AnOwnedLabOfANormalUserCarriesTraffic) {
    if (outer_uid() != 0 || ::geteuid() != 0) {
        GTEST_SKIP() << "already a normal user: the other tests show the same";
    }
    ASSERT_EQ(::chown(folder_.c_str(), kNobodyInParticular, kNobodyInParticular), 0);
    constexpr int kNotAllowed = 77;
    const int result = run_in_child(kNobodyInParticular, [] {
        if (auto able = become_namespace_root(); !able) {
            return able.error().kind() == ErrorKind::kRefused ? kNotAllowed : 1;
        }
        auto lab = Lab::up(spec_of("rootless", 2, 1, mbit(100)));
        if (!lab) {
            std::fprintf(stderr, "%s\n", lab.error().to_line().c_str());
            return 2;
        }
        auto flow = connect_flow(lab->host_netns_fd(0), lab->host_netns_fd(1), "10.77.0.2");
        if (!flow || measure_goodput(*flow, milliseconds(100), milliseconds(300)) <= 0) {
            return 3;
        }
        flow.reset();
        const auto down = lab->down(Deadline::after(seconds(10)));
        if (!down) {
            std::fprintf(stderr, "%s\n", down.error().to_line().c_str());
        }
        return down ? 0 : 4;
    });
    ASSERT_EQ(::chown(folder_.c_str(), 0, 0), 0);
    if (result == kNotAllowed) {
        GTEST_SKIP() << "user namespaces are not allowed here";
    }
    EXPECT_EQ(result, 0);
}

} // namespace
} // namespace railbreak::lab
