// The whole program, run as a user runs it: a scenario in the lab, its report, its refusals, and what is left when any
// of its processes is killed while a fault is in force.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/reader.hpp"
#include "tests/lab/support/namespaces.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

/// Short, with a cap in force for most of its time. The lease is the shortest there is.
constexpr const char* kScenario = R"(
railbreak: 1
name: killed
cluster: {hosts: 4, rate: 200Mbit/s}
workload:
  collective: allreduce
  bytes: 2MiB
  dtype: float32
  algorithms: [ring, optcc]
  iterations: {warmup: 1, steady: 2, degraded: 4, recovered: 2}
  iteration_timeout: 10s
lease: 2s
faults:
  - name: half
    kind: cap
    target: {host: 2, nic: 0}
    direction: both
    fraction: 1/2
    during: degraded
)";
/// The same with two ranks and two NICs on each host, and a limited port inside it.
constexpr const char* kTwoRanks = R"(
railbreak: 1
name: two-ranks
cluster: {hosts: 4, ranks_per_host: 2, nics_per_host: 2, rate: 200Mbit/s, local_rate: 2Gbit/s}
workload:
  collective: allreduce
  bytes: 2MiB
  dtype: float32
  algorithms: [ring, optcc, hierarchical]
  iterations: {warmup: 1, steady: 2, degraded: 4, recovered: 2}
  iteration_timeout: 10s
lease: 2s
faults:
  - {name: rail-0, kind: cap, target: {host: 2, nic: 0}, fraction: 1/2, during: degraded}
  - {name: rail-1, kind: cap, target: {host: 2, nic: 1}, fraction: 1/2, during: degraded}
)";
/// Two slow neighbours, one of them in one direction, with two ranks on one NIC; algorithms with options.
constexpr const char* kTwoStragglers = R"(
railbreak: 1
name: two-stragglers
cluster: {hosts: 5, ranks_per_host: 2, rate: 200Mbit/s}
workload:
  collective: allreduce
  bytes: 2MiB
  dtype: bfloat16
  algorithms: [ring, {name: optcc, as: best}, {name: optcc, plan: u, k: 3}]
  iterations: {warmup: 1, steady: 1, degraded: 2, recovered: 1}
  iteration_timeout: 10s
lease: 2s
faults:
  - {name: half, kind: cap, target: {host: 2}, fraction: 1/2, during: degraded}
  - {name: third, kind: cap, target: {host: 3}, fraction: 2/3, direction: send, during: degraded}
)";
/// A NIC that is dead for the whole phase, and a slow one on another host.
constexpr const char* kDeadNic = R"(
railbreak: 1
name: dead-nic
cluster: {hosts: 3, ranks_per_host: 2, nics_per_host: 2, rate: 200Mbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  algorithms: [iccl, r2ccl-balance]
  iterations: {warmup: 1, steady: 1, degraded: 2, recovered: 1}
  iteration_timeout: 10s
lease: 2s
faults:
  - {name: dead, kind: link_down, target: {host: 2, nic: 0}, during: degraded}
  - {name: slow, kind: cap, target: {host: 1, nic: 1}, fraction: 4/5, during: degraded}
)";
constexpr Nanoseconds kLease = std::chrono::seconds(2);
constexpr Nanoseconds kPatience = std::chrono::seconds(60);

/// Random moments at which each role is killed: RAILBREAK_KILL_ROUNDS, else enough for a daily test.
int kill_rounds() {
    const char* wanted = std::getenv("RAILBREAK_KILL_ROUNDS");
    return wanted != nullptr ? std::max(std::atoi(wanted), 1) : 2;
}

class Run : public ::testing::Test {
protected:
    void SetUp() override {
        const Finished probe = run_railbreak(home(), {"lab", "up", "probe", "--hosts", "2"});
        if (probe.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << probe.err;
        }
        ASSERT_EQ(probe.status.code, 0) << probe.err;
        ASSERT_EQ(run_railbreak(home(), {"lab", "down", "probe"}).status.code, 0);
        std::ofstream(scenario_path()) << kScenario;
    }

    void use(const char* scenario) { std::ofstream(scenario_path()) << scenario; }

    /// Runs the scenario and gives back what the database holds of it; every digest must be right.
    [[nodiscard]] record::RunData run_to_the_right_sums() {
        const Finished run = run_railbreak(home(), {"run", scenario_path()}, kPatience);
        EXPECT_EQ(run.status.code, 0) << run.err << run.out;
        Result<record::RunReader> reader = record::RunReader::open_readonly(home() / "runs.db");
        Result<record::RunData> data = reader ? reader->load_run("latest") : fail(Error(reader.error()));
        if (!data) {
            ADD_FAILURE() << data.error().to_line();
            return {};
        }
        for (const record::IterationRow& row : data->iterations) {
            EXPECT_TRUE(row.correct) << row.algorithm << " " << row.phase << " " << row.iteration;
        }
        expect_as_before({});
        return std::move(*data);
    }

    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }
    [[nodiscard]] std::string scenario_path() const { return (home() / "killed.yaml").string(); }

    /// Every process and every network namespace of the run is gone, and the database is whole.
    void expect_as_before(const std::set<NetworkNamespace>& namespaces_of_the_run) {
        const std::vector<RunProcess> left = wait_until_none(home(), 3 * kLease);
        for (const RunProcess& process : left) {
            ADD_FAILURE() << "left over: " << process.role << " pid " << process.pid;
        }
        for (const std::string& inhabitant : wait_until_uninhabited(namespaces_of_the_run, 3 * kLease)) {
            ADD_FAILURE() << "left over " << inhabitant;
        }
        Result<record::RunReader> reader = record::RunReader::open_readonly(home() / "runs.db");
        ASSERT_TRUE(reader) << reader.error().to_line();
        Result<record::RunData> data = reader->load_run("latest");
        ASSERT_TRUE(data) << data.error().to_line();
    }

    /// Names of the labs that have a record, which is to say that somebody must look after them.
    [[nodiscard]] std::vector<std::string> recorded_labs() const {
        constexpr std::string_view kSuffix = ".lab.json";
        std::vector<std::string> names;
        for (const auto& file : std::filesystem::directory_iterator(home() / "state")) {
            const std::string name = file.path().filename().string();
            if (const std::size_t suffix = name.find(kSuffix); suffix != std::string::npos) {
                names.push_back(name.substr(0, suffix));
            }
        }
        return names;
    }
    void expect_no_record() const { EXPECT_EQ(recorded_labs(), std::vector<std::string>()); }

    /// Iterations that the progress lines reported as finished are in the database.
    void expect_reported_iterations_stored(const std::string& progress) {
        Result<record::RunReader> reader = record::RunReader::open_readonly(home() / "runs.db");
        ASSERT_TRUE(reader) << reader.error().to_line();
        Result<record::RunData> data = reader->load_run("latest");
        ASSERT_TRUE(data) << data.error().to_line();
        for (const char* phase : {"steady", "degraded", "recovered"}) {
            for (const char* algorithm : {"ring", "optcc"}) {
                for (int i = 1; i <= 4; ++i) {
                    const std::string line = std::string(algorithm) + " " + phase + " " + std::to_string(i) + "/";
                    const bool reported = progress.find(line) != std::string::npos;
                    const bool stored = std::any_of(
                        data->iterations.begin(), data->iterations.end(), [&](const record::IterationRow& row) {
                            return row.algorithm == algorithm && row.phase == phase && row.iteration == i;
                        });
                    EXPECT_TRUE(!reported || stored) << line << " was reported and is not in the database";
                }
            }
        }
    }

    /// What the database says of why the latest run stopped. Its last line on stderr may name another thing that is
    /// wrong with it, such as an iteration that a busy machine has disturbed.
    [[nodiscard]] std::string reasons_to_stop() const {
        Result<record::RunReader> reader = record::RunReader::open_readonly(home() / "runs.db");
        Result<record::RunData> data = reader ? reader->load_run("latest") : fail(Error(reader.error()));
        std::string reasons;
        for (const record::EventRow& event : data ? data->events : std::vector<record::EventRow>()) {
            reasons += event.kind.starts_with("stopped_") ? event.text + "\n" : "";
        }
        return reasons;
    }

    /// Pid of the one process that plays a role; nothing when there is none or more than one.
    [[nodiscard]] std::optional<pid_t> only_process(const std::string& role) {
        std::vector<RunProcess> players = processes_of(home());
        std::erase_if(players, [&](const RunProcess& candidate) { return candidate.role != role; });
        return players.size() == 1 ? std::optional(players.front().pid) : std::nullopt;
    }

    /// Starts the scenario, waits until the cap is in force, then for a random moment of the degraded phase.
    [[nodiscard]] std::unique_ptr<RailbreakProcess> run_into_the_fault(std::mt19937& random) {
        auto process = std::make_unique<RailbreakProcess>(home(), std::vector<std::string>{"run", scenario_path()});
        EXPECT_TRUE(process->wait_for_stderr("ring degraded 1/", kPatience)) << process->err();
        (void)::poll(nullptr, 0, static_cast<int>(random() % 600)); // the random moment that the test is about
        return process;
    }

    void kill_role_in_the_fault(const std::string& role, unsigned seed);
    /// Kills every process that plays one of the roles, all at one time, and expects that nothing runs on.
    void kill_together_in_the_fault(const std::set<std::string>& roles, unsigned seed);

    TemporaryFolder folder_;
};

void Run::kill_role_in_the_fault(const std::string& role, unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < kill_rounds(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        std::unique_ptr<RailbreakProcess> process = run_into_the_fault(random);
        const std::set<NetworkNamespace> namespaces = namespaces_of(home());
        EXPECT_EQ(namespaces.size(), 4U) << "one for each host";
        std::vector<RunProcess> victims = processes_of(home());
        std::erase_if(victims, [&](const RunProcess& candidate) { return candidate.role != role; });
        ASSERT_FALSE(victims.empty()) << "no process plays the role " << role;
        ASSERT_EQ(::kill(victims[random() % victims.size()].pid, SIGKILL), 0);
        const std::optional<Finished> finished = process->finish(kPatience);
        ASSERT_TRUE(finished) << "railbreak run hangs after the death of its " << role << ": " << process->err();
        if (role != "run") {
            EXPECT_NE(finished->status.code, 0) << finished->err;
            EXPECT_FALSE(finished->status.signalled) << finished->status.describe();
            EXPECT_NE(reasons_to_stop().find(role), std::string::npos)
                << "no reason tells of the " << role << ": " << reasons_to_stop() << "\n"
                << finished->err;
        }
        expect_as_before(namespaces);
        expect_no_record();
        expect_reported_iterations_stored(process->err());
    }
    const Finished next = run_railbreak(home(), {"run", scenario_path()}, kPatience);
    EXPECT_EQ(next.status.code, 0) << next.err << next.out;
    expect_as_before({});
}

void Run::kill_together_in_the_fault(const std::set<std::string>& roles, unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < kill_rounds(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        std::unique_ptr<RailbreakProcess> process = run_into_the_fault(random);
        const std::set<NetworkNamespace> namespaces = namespaces_of(home());
        EXPECT_EQ(namespaces.size(), 4U) << "one for each host";
        std::set<std::string> killed;
        for (const RunProcess& victim : processes_of(home())) {
            if (roles.contains(victim.role) && ::kill(victim.pid, SIGKILL) == 0) {
                killed.insert(victim.role);
            }
        }
        EXPECT_EQ(killed, roles);
        ASSERT_TRUE(process->finish(kPatience)) << process->err();
        expect_as_before(namespaces);
    }
}

TEST_F(Run, PassesReportsItselfAgainAndLeavesNothing) {
    const Finished run = run_railbreak(home(), {"run", scenario_path()}, kPatience);
    ASSERT_EQ(run.status.code, 0) << run.err << run.out;
    EXPECT_NE(run.out.find("VERDICT"), std::string::npos);
    expect_as_before({});
    expect_no_record();
    expect_reported_iterations_stored(run.err);

    const Finished report = run_railbreak(home(), {"report", "latest"});
    EXPECT_EQ(report.out, run.out);
    const Finished json = run_railbreak(home(), {"report", "latest", "--json"});
    const nlohmann::json parsed = nlohmann::json::parse(json.out, nullptr, false);
    ASSERT_TRUE(parsed.is_object());
    EXPECT_EQ(parsed.at("schema"), "railbreak-run-report");
}

/// Schedules that an algorithm ran in a phase.
std::set<std::string> schedules_of(const record::RunData& data, std::string_view algorithm, std::string_view phase) {
    std::set<std::string> names;
    for (const record::IterationRow& row : data.iterations) {
        if (row.algorithm == algorithm && row.phase == phase) {
            names.insert(row.schedule);
        }
    }
    return names;
}

TEST_F(Run, TwoRanksOnAHostGiveTheRightSumsWithASlowHost) {
    use(kTwoRanks);
    const record::RunData data = run_to_the_right_sums();
    ASSERT_EQ(data.ranks.size(), 8U);
    for (const record::RankRow& rank : data.ranks) {
        EXPECT_EQ(rank.host, rank.rank / 2);
    }
    ASSERT_EQ(data.nics.size(), 8U);
    for (const record::NicRow& nic : data.nics) {
        EXPECT_EQ(nic.name, "rail" + std::to_string(nic.nic));
        EXPECT_GT(nic.send_goodput_bits_per_s, 0);
        EXPECT_GT(nic.receive_goodput_bits_per_s, 0);
    }
    const std::set<std::string> degraded = schedules_of(data, "optcc", "degraded");
    ASSERT_EQ(degraded.size(), 1U);
    EXPECT_NE(degraded.begin()->find("straggler=2,g=2"), std::string::npos) << *degraded.begin();
}

TEST_F(Run, TwoSlowHostsGiveTheRightSums) {
    use(kTwoStragglers);
    const record::RunData data = run_to_the_right_sums();
    EXPECT_EQ(schedules_of(data, "best", "degraded").size(), 1U);
    const std::set<std::string> forced = schedules_of(data, "optcc(plan=u,k=3)", "degraded");
    ASSERT_EQ(forced.size(), 1U);
    EXPECT_NE(forced.begin()->find("optcc-u(k=3,"), std::string::npos) << *forced.begin();
}

TEST_F(Run, AlgorithmsThatFailOverGoRoundADeadNic) {
    use(kDeadNic);
    const record::RunData data = run_to_the_right_sums();
    for (const char* algorithm : {"iccl", "r2ccl-balance"}) {
        EXPECT_EQ(schedules_of(data, algorithm, "degraded").size(), 1U) << algorithm;
    }
}

TEST_F(Run, KilledRankOfAHostWithTwoEndsTheRunAndLeavesNothing) {
    use(kTwoRanks);
    kill_role_in_the_fault("rank", 6);
}

TEST_F(Run, InterruptedRevertsAndExitsWithFour) {
    std::mt19937 random(11);
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault(random);
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    launch::send_signal(process->child(), SIGINT);
    const std::optional<Finished> finished = process->finish(kPatience);
    ASSERT_TRUE(finished) << process->err();
    EXPECT_EQ(finished->status.code, 4) << finished->err;
    EXPECT_NE(finished->out.find("aborted"), std::string::npos) << finished->out;
    expect_as_before(namespaces);
    Result<record::RunData> data = record::RunReader::open_readonly(home() / "runs.db")->load_run("latest");
    ASSERT_TRUE(data);
    for (const record::InjectionRow& injection : data->injections) {
        EXPECT_NE(injection.restored_at, 0) << injection.name;
    }
}

TEST_F(Run, KilledControllerLeavesNothing) {
    kill_role_in_the_fault("run", 1);
}

TEST_F(Run, KilledAgentEndsTheRunAndLeavesNothing) {
    kill_role_in_the_fault("agent", 2);
}

TEST_F(Run, KilledRankEndsTheRunAndLeavesNothing) {
    kill_role_in_the_fault("rank", 3);
}

TEST_F(Run, KilledGuardEndsTheRunAndLeavesNothing) {
    kill_role_in_the_fault("guard", 4);
}

TEST_F(Run, ControllerAndAgentKilledTogetherLeaveNothing) {
    kill_together_in_the_fault({"run", "agent"}, 5);
    expect_no_record();
}

TEST_F(Run, ControllerAgentAndKeeperKilledTogetherLeaveWhatTheNextCommandClears) {
    kill_together_in_the_fault({"run", "agent", "keeper"}, 6);
    const Finished recover = run_railbreak(home(), {"recover"});
    EXPECT_EQ(recover.status.code, 0) << recover.err << recover.out;
    for (const auto& file : std::filesystem::directory_iterator(home() / "state")) {
        ADD_FAILURE() << "left over " << file.path().filename();
    }
}

TEST_F(Run, ControllerAndKeeperKilledTogetherAreClearedByAListOfLabs) {
    kill_together_in_the_fault({"run", "keeper"}, 9);
    EXPECT_EQ(run_railbreak(home(), {"lab", "list"}).status.code, 0);
    expect_no_record();
}

TEST_F(Run, NamespaceOfTheSameNumberButAnotherCookieIsAStrangers) {
    const std::string lab = "held-" + std::to_string(::getpid());
    ASSERT_EQ(run_railbreak(home(), {"lab", "up", lab, "--hosts", "2"}).status.code, 0);
    RailbreakProcess inside(home(), {"lab", "exec", lab, "h1", "--", "sh", "-c", "echo ready >&2; exec sleep 60"});
    ASSERT_TRUE(inside.wait_for_stderr("ready", kPatience)) << inside.err();
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    ASSERT_EQ(namespaces.size(), 1U);
    ASSERT_NE(namespaces.begin()->cookie, 0U);
    EXPECT_FALSE(wait_until_uninhabited(namespaces, Nanoseconds::zero()).empty());
    const NetworkNamespace later{namespaces.begin()->link, namespaces.begin()->cookie + 1};
    EXPECT_EQ(wait_until_uninhabited({later}, Nanoseconds::zero()), std::vector<std::string>());
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", lab}).status.code, 0);
    expect_no_record();
    EXPECT_EQ(wait_until_uninhabited(namespaces, kPatience), std::vector<std::string>());
}

TEST_F(Run, KilledKeeperIsNotMissed) {
    std::mt19937 random(7);
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault(random);
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    const std::optional<pid_t> keeper = only_process("keeper");
    ASSERT_TRUE(keeper);
    ASSERT_EQ(::kill(*keeper, SIGKILL), 0);
    const std::optional<Finished> finished = process->finish(kPatience);
    ASSERT_TRUE(finished) << process->err();
    EXPECT_EQ(finished->status.code, 0) << finished->err << finished->out;
    expect_as_before(namespaces);
    expect_no_record();
}

TEST_F(Run, StoppedKeeperOfAKilledControllerWakesUpAndLeavesNothing) {
    std::mt19937 random(8);
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault(random);
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    const std::optional<pid_t> keeper = only_process("keeper");
    const std::optional<pid_t> controller = only_process("run");
    ASSERT_TRUE(keeper && controller);
    ASSERT_EQ(::kill(*keeper, SIGSTOP), 0);
    ASSERT_TRUE(wait_until_stopped(*keeper, kPatience));
    ASSERT_EQ(::kill(*controller, SIGKILL), 0);
    ASSERT_TRUE(process->finish(kPatience)) << process->err();
    expect_as_before(namespaces);
    expect_no_record();
    ::kill(*keeper, SIGCONT); // not to leave it to the machine if this test has failed
}

} // namespace
} // namespace railbreak::tests
