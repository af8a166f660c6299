// Whole runs with faults beside caps and links: of ranks, of packets, of the recorder's disk; and runs that are
// expected to meet an error, which must be named and must not be the end of all.
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/reader.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Ne;

constexpr Nanoseconds kPatience = std::chrono::seconds(90);

/// A small cluster; `faults` and `expect` are YAML lists, one entry a line.
std::string scenario(std::string_view faults, std::string_view expect = "", std::string_view algorithms = "ring",
                     std::string_view cluster = "hosts: 3") {
    return fmt::format(R"(
railbreak: 1
name: faults
cluster: {{{}, rate: 200Mbit/s}}
workload:
  collective: allreduce
  bytes: 4MiB
  algorithms: [{}]
  iterations: {{warmup: 1, steady: 1, degraded: 2, recovered: 2}}
  iteration_timeout: 3s
lease: 3s
faults:
{}{}{}
)",
                       cluster, algorithms, faults, expect.empty() ? "" : "expect:\n", expect);
}

class FaultRun : public ::testing::Test {
protected:
    void SetUp() override {
        const Finished probe = run_railbreak(home(), {"lab", "up", "fault-probe", "--hosts", "2"});
        if (probe.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << probe.err;
        }
        ASSERT_EQ(probe.status.code, 0) << probe.err;
        ASSERT_EQ(run_railbreak(home(), {"lab", "down", "fault-probe"}).status.code, 0);
    }

    struct Ran {
        int code = -1;
        std::string err;
        record::RunData data;
    };

    /// Runs to the end; no process of the run may be left, and the database must hold it.
    Ran run(const std::string& text, const std::vector<std::string>& more = {}) {
        const std::string path = (home() / "scenario.yaml").string();
        std::ofstream(path) << text;
        std::vector<std::string> arguments{"run", path};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Finished finished = run_railbreak(home(), arguments, kPatience);
        Ran ran{.code = finished.status.code, .err = finished.err};
        EXPECT_THAT(wait_until_none(home(), std::chrono::seconds(9)), IsEmpty());
        Result<record::RunReader> reader = record::RunReader::open_readonly(database_);
        Result<record::RunData> data = reader ? reader->load_run("latest") : fail(Error(reader.error()));
        if (data) {
            ran.data = std::move(*data);
        } else {
            ADD_FAILURE() << data.error().to_line() << finished.err;
        }
        return ran;
    }

    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }

    TemporaryFolder folder_;
    std::filesystem::path database_ = folder_.path() / "runs.db";
};

/// What only root may do is refused to everybody else, in one sentence that the test then skips with.
bool refused_without_root(int code) {
    return code == 3 && ::getuid() != 0;
}

const record::VerdictRow& verdict(const record::RunData& data, std::string_view scope, std::string_view subject) {
    static const record::VerdictRow none;
    const auto found = std::find_if(data.verdicts.begin(), data.verdicts.end(),
                                    [&](const auto& row) { return row.scope == scope && row.subject == subject; });
    return found != data.verdicts.end() ? *found : none;
}

std::vector<record::IterationRow> iterations(const record::RunData& data, std::string_view algorithm,
                                             std::string_view phase) {
    std::vector<record::IterationRow> rows;
    std::copy_if(data.iterations.begin(), data.iterations.end(), std::back_inserter(rows),
                 [&](const auto& row) { return row.algorithm == algorithm && row.phase == phase; });
    return rows;
}

/// Every injection was seen, undone and verified, and nothing else moved meanwhile.
auto proven() {
    using record::InjectionRow;
    return AllOf(Field("observed_at", &InjectionRow::observed_at, Ne(0)),
                 Field("restored_at", &InjectionRow::restored_at, Ne(0)), Field(&InjectionRow::mechanism, Ne("")),
                 Field(&InjectionRow::realism, Ne("")), Field(&InjectionRow::data_path, Ne("")),
                 Field("collateral", &InjectionRow::collateral_json, "[]"), Field(&InjectionRow::error, ""));
}

/// Every check has passed but, perhaps, that of the bound: a machine that is busy with other things while it measures
/// its ports finds them slower than they are, and a time below the bound that follows says nothing about faults.
void expect_passed(const record::RunData& data, int code, const std::string& err) {
    EXPECT_THAT(code, ::testing::AnyOf(0, 2)) << err;
    for (const record::VerdictRow& row : data.verdicts) {
        if (row.scope != "run" && row.scope != "bound") {
            EXPECT_EQ(row.verdict, "pass") << row.scope << " " << row.subject << ": " << row.reason;
        }
    }
}

auto right() {
    return AllOf(Field(&record::IterationRow::correct, true), Field(&record::IterationRow::error, ""));
}

TEST_F(FaultRun, EachTimeThatALinkFlapsIsProvenByItself) {
    const Ran ran = run(scenario("- {name: f, kind: flap, target: {host: 1}, period: 300ms, down: 60ms, count: 3, "
                                 "jitter: 1/4, at: {iteration: 1, offset: 20ms}}\n"));
    expect_passed(ran.data, ran.code, ran.err);
    ASSERT_EQ(ran.data.injections.size(), 3U);
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_EQ(ran.data.injections[2].name, "f#3");
    EXPECT_THAT(ran.data.iterations, Each(right()));
}

TEST_F(FaultRun, ALateRankMakesItsIterationsLonger) {
    const Ran ran = run(scenario("- {name: l, kind: late, target: {rank: 1}, by: 600ms, at: {iteration: 2}}\n"));
    expect_passed(ran.data, ran.code, ran.err);
    ASSERT_EQ(ran.data.injections.size(), 1U);
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_EQ(ran.data.injections[0].rank, 1);
    EXPECT_GE(iterations(ran.data, "ring", "degraded").at(1).duration_ns, 600'000'000);
    EXPECT_THAT(ran.data.iterations, Each(right()));
}

TEST_F(FaultRun, ARankThatStandsStillDelaysAndLosesNothing) {
    const Ran ran = run(scenario("- {name: p, kind: pause, target: {host: 2, rank: 0}, at: {iteration: 1, offset: "
                                 "50ms}, for: 500ms}\n"));
    expect_passed(ran.data, ran.code, ran.err);
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_GE(iterations(ran.data, "ring", "degraded").at(0).duration_ns, 500'000'000);
    EXPECT_THAT(ran.data.iterations, Each(right()));
}

constexpr std::string_view kKill = "- {name: k, kind: kill, target: {rank: 2}, at: {iteration: 1, offset: 50ms}}\n";

TEST_F(FaultRun, AKilledRankIsNamedAndFailsARunThatDoesNotExpectIt) {
    const Ran ran = run(scenario(kKill));
    EXPECT_EQ(ran.code, 1) << ran.err;
    const auto degraded = iterations(ran.data, "ring", "degraded");
    ASSERT_EQ(degraded.size(), 1U);
    EXPECT_THAT(degraded[0].error, HasSubstr("rank 2 ended: killed by signal 9"));
    EXPECT_THAT(degraded[0].error, HasSubstr("host=h2"));
    EXPECT_THAT(iterations(ran.data, "ring", "recovered"), IsEmpty());
    EXPECT_EQ(verdict(ran.data, "teardown", "").verdict, "pass");
    EXPECT_THAT(ran.data.injections, Each(proven()));
}

TEST_F(FaultRun, AnExpectedDeathEndsThePhaseAndTheNextAlgorithmHasItsRanks) {
    const Ran ran = run(scenario(kKill, "- {phase: degraded, outcome: error, within: 3s}\n", "ring, optcc"));
    expect_passed(ran.data, ran.code, ran.err);
    for (const char* algorithm : {"ring", "optcc"}) {
        const auto degraded = iterations(ran.data, algorithm, "degraded");
        ASSERT_EQ(degraded.size(), 1U) << algorithm;
        EXPECT_THAT(degraded[0].error, HasSubstr("rank 2 ended")) << algorithm;
        EXPECT_THAT(iterations(ran.data, algorithm, "recovered"), AllOf(::testing::SizeIs(2), Each(right())));
        EXPECT_EQ(verdict(ran.data, "correctness", algorithm).verdict, "pass");
        EXPECT_EQ(verdict(ran.data, "expectation", fmt::format("{}/degraded outcome", algorithm)).verdict, "pass");
    }
    EXPECT_THAT(ran.data.injections, Each(proven()));
}

TEST_F(FaultRun, AnExpectedErrorThatDoesNotComeIsAFailure) {
    const Ran ran =
        run(scenario("- {name: p, kind: pause, target: {rank: 0}, at: {iteration: 1, offset: 10ms}, for: 50ms}\n",
                     "- {phase: degraded, outcome: error}\n"));
    EXPECT_EQ(ran.code, 1) << ran.err;
    EXPECT_THAT(verdict(ran.data, "expectation", "ring/degraded outcome").reason, HasSubstr("ended well"));
}

/// A fault of a NIC that an AllReduce lives through.
struct Survivable {
    const char* name;
    const char* fault;
};

void PrintTo(const Survivable& survivable, std::ostream* out) {
    *out << survivable.name;
}

class SurvivingRun : public FaultRun, public ::testing::WithParamInterface<Survivable> {};

TEST_P(SurvivingRun, GivesTheRightSumsAndTheEvidence) {
    const Ran ran = run(scenario(std::string("- {name: f, target: {host: 1}, ") + GetParam().fault + "}\n"));
    if (refused_without_root(ran.code)) {
        GTEST_SKIP() << ran.err;
    }
    expect_passed(ran.data, ran.code, ran.err);
    ASSERT_EQ(ran.data.injections.size(), 1U);
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_THAT(ran.data.iterations, Each(right()));
    EXPECT_EQ(ran.data.iterations.size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(
    Faults, SurvivingRun,
    ::testing::Values(
        Survivable{"Blackhole", "kind: blackhole, direction: send, at: {iteration: 1, offset: 20ms}, for: 200ms"},
        Survivable{"OneWayPartition",
                   "kind: partition, peers: [0], direction: receive, at: {iteration: 1, offset: 20ms}, for: 200ms"},
        Survivable{"Loss", "kind: loss, probability: 0.5%, direction: send, during: degraded"},
        Survivable{"Corrupt", "kind: corrupt, probability: 0.2%, during: degraded"},
        Survivable{"Duplicate", "kind: duplicate, probability: 1%, direction: receive, during: degraded"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(FaultRun, FaultsOfOneNicAndItsRankCompose) {
    const Ran ran =
        run(scenario("- {name: cap, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n"
                     "- {name: loss, kind: loss, target: {host: 1}, probability: 0.1%, during: degraded}\n"
                     "- {name: part, kind: partition, target: {host: 1}, peers: [2], at: {iteration: 1, "
                     "offset: 50ms}, for: 100ms}\n"
                     "- {name: rank, kind: pause, target: {rank: 1}, at: {iteration: 1, offset: 80ms}, for: "
                     "100ms}\n"
                     "- {name: down, kind: link_down, target: {host: 1}, at: {iteration: 2, offset: 50ms}, "
                     "for: 60ms}\n"
                     "- {name: off, kind: loss, target: {host: 2}, probability: 0, during: degraded}\n"));
    if (refused_without_root(ran.code)) {
        GTEST_SKIP() << ran.err;
    }
    expect_passed(ran.data, ran.code, ran.err);
    ASSERT_EQ(ran.data.injections.size(), 5U) << "what is off is not made";
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_THAT(ran.data.iterations, Each(right()));
    EXPECT_EQ(verdict(ran.data, "fault", "off/ring").verdict, "pass");
    EXPECT_EQ(verdict(ran.data, "teardown", "").verdict, "pass");
}

/// An iteration that a fault blocks until its time-out.
struct Blocking {
    const char* name;
    const char* fault;
    const char* names; ///< what the error must say
    bool stalls;       ///< nobody answers: a rank that stands still has a kernel that does
};

void PrintTo(const Blocking& blocking, std::ostream* out) {
    *out << blocking.name;
}

class BlockedRun : public FaultRun, public ::testing::WithParamInterface<Blocking> {};

TEST_P(BlockedRun, EndsWithAnErrorThatNamesRankHostNicAndStep) {
    const Ran ran = run(scenario(std::string("- ") + GetParam().fault + "\n",
                                 fmt::format("- {{phase: degraded, outcome: error, within: 6s}}\n{}",
                                             GetParam().stalls ? "- {metric: detection_time, max: 1500ms}\n" : "")));
    expect_passed(ran.data, ran.code, ran.err);
    const auto stall = std::ranges::find(ran.data.events, "path_stalled", &record::EventRow::kind);
    ASSERT_EQ(stall != ran.data.events.end(), GetParam().stalls);
    if (GetParam().stalls) { // and not with the time-out of the iteration, which is 3 s
        EXPECT_THAT(stall->text, HasSubstr("is not answered any more, although TCP has resent"));
        EXPECT_THAT(verdict(ran.data, "expectation", "d/ring detection_time").reason, HasSubstr("said path_stalled"));
    }
    const auto degraded = iterations(ran.data, "ring", "degraded");
    ASSERT_EQ(degraded.size(), 1U);
    EXPECT_THAT(degraded[0].error, AllOf(HasSubstr("stalled in ring"), HasSubstr("rank="), HasSubstr("host=h"),
                                         HasSubstr("port=NIC 0"), HasSubstr("step="), HasSubstr(GetParam().names)));
    EXPECT_THAT(iterations(ran.data, "ring", "recovered"), AllOf(::testing::SizeIs(2), Each(right())));
    EXPECT_THAT(ran.data.injections, Each(proven()));
    EXPECT_EQ(verdict(ran.data, "teardown", "").verdict, "pass");
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BlockedRun,
    ::testing::Values(
        Blocking{"LinkDown",
                 "{name: d, kind: link_down, target: {host: 1}, at: {iteration: 1, offset: 30ms}, for: 20s}", "waits",
                 true},
        Blocking{"Partition",
                 "{name: d, kind: partition, target: {host: 1}, peers: [0, 2], at: {iteration: 1, offset: 30ms}, for: "
                 "20s}",
                 "waits", true},
        Blocking{"Pause", "{name: p, kind: pause, target: {rank: 1}, at: {iteration: 1, offset: 30ms}, for: 20s}",
                 "no_answer_from=h1", false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(FaultRun, ReroutedTrafficSharesTheOtherNicAndTheBoundKnows) {
    const Ran ran = run(scenario("- {name: r, kind: reroute, target: {host: 1}, via: 1, during: degraded}\n", "",
                                 "ring", "hosts: 3, ranks_per_host: 2, nics_per_host: 2"));
    expect_passed(ran.data, ran.code, ran.err);
    EXPECT_THAT(ran.data.injections, AllOf(::testing::SizeIs(1), Each(proven())));
    EXPECT_THAT(ran.data.iterations, Each(right()));
    const auto bound = [&](std::string_view phase) {
        const auto found = std::find_if(ran.data.bounds.begin(), ran.data.bounds.end(),
                                        [&](const auto& row) { return row.phase == phase && row.model == "fluid"; });
        return found != ran.data.bounds.end() ? found->time_over_n : 0.0;
    };
    EXPECT_GT(bound("degraded"), bound("steady"));
    // The counters at the borders of the phases tell who carried what; each phase has a first and a last reading.
    const auto sent = [&](std::int32_t nic, std::size_t phase) {
        std::vector<std::int64_t> readings;
        for (const record::CounterRow& row : ran.data.counters) {
            if (row.host == 1 && row.nic == nic && row.name == "tx_bytes") {
                readings.push_back(row.value);
            }
        }
        return readings.size() == 8 ? readings[2 * phase + 1] - readings[2 * phase] : -1;
    };
    EXPECT_GT(sent(0, 1), 0);
    EXPECT_LT(sent(0, 2), sent(0, 1) / 2) << "acknowledgements at most";
    EXPECT_GT(sent(1, 2), sent(1, 1)) << "its own and the other's";
}

TEST_F(FaultRun, ARankWithAPartOfACpuIsSlowerAndRight) {
    const Ran ran = run(scenario("- {name: c, kind: cpu, target: {rank: 1}, share: 1/5, during: degraded}\n"));
    if (refused_without_root(ran.code)) {
        GTEST_SKIP() << ran.err;
    }
    expect_passed(ran.data, ran.code, ran.err);
    EXPECT_THAT(ran.data.injections, AllOf(::testing::SizeIs(1), Each(proven())));
    EXPECT_THAT(ran.data.iterations, Each(right()));
}

TEST_F(FaultRun, ASmallerMtuEndsWellOrByName) {
    const Ran ran = run(scenario("- {name: m, kind: mtu, target: {host: 1}, mtu: 1400B, during: degraded}\n"));
    EXPECT_THAT(ran.code, ::testing::AnyOf(0, 1)) << ran.err;
    EXPECT_THAT(ran.data.injections, AllOf(::testing::SizeIs(1), Each(proven())));
    for (const record::IterationRow& row : ran.data.iterations) {
        EXPECT_TRUE(row.correct || row.error.find("stalled in ring") != std::string::npos) << row.error;
    }
}

TEST_F(FaultRun, AFullDiskEndsTheRunByNameAndKeepsWhatIsStored) {
    const std::filesystem::path disk = home() / "disk";
    std::filesystem::create_directory(disk);
    // A mount that nobody else sees, and that goes with this process.
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", disk.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, "size=16m,mode=0700") != 0) {
        GTEST_SKIP() << "no file system of its own here: " << ::strerrordesc_np(errno);
    }
    database_ = disk / "runs.db";
    const Ran ran = run(scenario("- {name: full, kind: disk_full, target: recorder, leave: 0B, during: degraded}\n"),
                        {"--db", database_.string()});
    EXPECT_EQ(ran.code, 4) << ran.err;
    EXPECT_THAT(ran.err, ContainsRegex("cannot add an? [a-z]+: the disk is full"));
    EXPECT_THAT(iterations(ran.data, "ring", "steady"), AllOf(::testing::SizeIs(1), Each(right())));
    EXPECT_THAT(iterations(ran.data, "ring", "degraded"), IsEmpty());
    EXPECT_THAT(ran.data.injections, AllOf(::testing::SizeIs(1), Each(proven())));
    EXPECT_EQ(verdict(ran.data, "teardown", "").verdict, "pass");
    EXPECT_EQ(verdict(ran.data, "run", "").verdict, "aborted");
    EXPECT_EQ(::umount(disk.c_str()), 0);
}

TEST_F(FaultRun, ADiskThatStaysFullEndsTheRunByNameAndTheFaultsToo) {
    const std::filesystem::path disk = home() / "disk";
    std::filesystem::create_directory(disk);
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", disk.c_str(), "tmpfs", MS_NODEV | MS_NOSUID, "size=2m,mode=0700") != 0) {
        GTEST_SKIP() << "no file system of its own here: " << ::strerrordesc_np(errno);
    }
    database_ = disk / "runs.db";
    std::string text = scenario("- {name: c, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n");
    text.replace(text.find("degraded: 2"), 11, "degraded: 50");
    const std::string path = (home() / "scenario.yaml").string();
    std::ofstream(path) << text;
    RailbreakProcess process(home(), {"run", "--db", database_.string(), path});
    ASSERT_TRUE(process.wait_for_stderr("ring degraded 1/", kPatience)) << process.err();
    std::ofstream(disk / "filler") << std::string(std::size_t{4} << 20, 'x');
    const std::optional<Finished> finished = process.finish(kPatience);
    ASSERT_TRUE(finished) << process.err();
    EXPECT_EQ(finished->status.code, 4) << finished->err;
    EXPECT_THAT(finished->err, ContainsRegex("database [^ ]*/runs.db: cannot [a-z ]+: the disk is full"));
    EXPECT_THAT(wait_until_none(home(), kPatience), IsEmpty()) << "with all that the fault changed";
    std::filesystem::remove(disk / "filler");
    // What was told as done is there; the run has no verdict, and the check says so.
    const auto data = record::RunReader::open_readonly(database_)->load_run("latest");
    ASSERT_TRUE(data) << data.error().to_line();
    EXPECT_FALSE(iterations(*data, "ring", "degraded").empty());
    EXPECT_EQ(data->run.finished_realtime_ns, 0);
    const Finished check = run_railbreak(home(), {"--db", database_.string(), "db", "check"});
    EXPECT_EQ(check.status.code, 1) << check.out << check.err;
    EXPECT_THAT(check.err, ContainsRegex("never ended and its controller is gone"));
    EXPECT_EQ(::umount(disk.c_str()), 0);
}

/// Sets the MTU of an interface in the network namespace of a process; the errno of what failed, 0 when nothing did.
int set_mtu_beside(pid_t process, const char* interface, int mtu) {
    const std::string path = fmt::format("/proc/{}/ns/net", process);
    const pid_t child = ::fork();
    if (child == 0) {
        const int ns = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        ifreq request{};
        std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
        request.ifr_mtu = mtu;
        const bool entered = ns >= 0 && ::setns(ns, CLONE_NEWNET) == 0;
        const int socket = entered ? ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
        ::_exit(socket >= 0 && ::ioctl(socket, SIOCSIFMTU, &request) == 0 ? 0 : errno);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

TEST_F(FaultRun, WhatElseChangesOnTheHostIsADoubt) {
    std::string text = scenario("- {name: c, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}\n", "",
                                "ring", "hosts: 3, nics_per_host: 2");
    text.replace(text.find("degraded: 2"), 11, "degraded: 8");
    const std::string path = (home() / "scenario.yaml").string();
    std::ofstream(path) << text;
    RailbreakProcess process(home(), {"run", path});
    ASSERT_TRUE(process.wait_for_stderr("ring degraded 1/", kPatience)) << process.err();
    for (const RunProcess& candidate : processes_of(home())) {
        if (candidate.role != "agent") {
            continue;
        }
        const int failed = set_mtu_beside(candidate.pid, "rail1", 1400); // no rank uses the second NIC
        if (failed == EPERM) {
            GTEST_SKIP() << "the lab's namespaces belong to a user namespace that only it is in";
        }
        ASSERT_EQ(failed, 0) << ::strerrordesc_np(failed);
    }
    const std::optional<Finished> finished = process.finish(kPatience);
    ASSERT_TRUE(finished) << process.err();
    EXPECT_EQ(finished->status.code, 2) << finished->err;
    const auto data = record::RunReader::open_readonly(database_)->load_run("latest");
    ASSERT_TRUE(data);
    EXPECT_EQ(verdict(*data, "fault", "c/ring collateral").verdict, "inconclusive");
    EXPECT_THAT(verdict(*data, "fault", "c/ring collateral").reason,
                HasSubstr("MTU of rail1 went from \"1500\" to \"1400\""));
    EXPECT_EQ(verdict(*data, "teardown", "").verdict, "pass");
}

TEST_F(FaultRun, WithoutFaultsOnlyTheSteadyPhaseIsMeasuredAndJudged) {
    const Ran ran = run(scenario(kKill, "- {phase: degraded, outcome: error}\n"
                                        "- {phase: recovered, metric: vs_steady, max: 0.1}\n"
                                        "- {phase: steady, metric: overhead_fluid, max: 100}\n"),
                        {"--no-faults"});
    expect_passed(ran.data, ran.code, ran.err);
    EXPECT_THAT(ran.data.injections, IsEmpty());
    EXPECT_THAT(iterations(ran.data, "ring", "steady"), AllOf(::testing::SizeIs(1), Each(right())));
    EXPECT_THAT(iterations(ran.data, "ring", "degraded"), IsEmpty());
    EXPECT_EQ(verdict(ran.data, "expectation", "ring/steady overhead_fluid").verdict, "pass");
}

} // namespace
} // namespace railbreak::tests
