// Site policies, the emergency stop and the signals of an impatient user, by the command line as a user has it.
#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "harness/record/reader.hpp"
#include "tests/lab/support/namespaces.hpp"
#include "tests/lab/support/railbreak_process.hpp"

namespace railbreak::tests {
namespace {

using ::testing::HasSubstr;

/// A cap that is in force for much longer than the controller has for its probe; a lease that no test waits for.
constexpr const char* kScenario = R"(railbreak: 1
name: safe
cluster: {hosts: 4, rate: 100Mbit/s}
workload:
  collective: allreduce
  bytes: 4MiB
  dtype: float32
  algorithms: [ring]
  iterations: {warmup: 1, steady: 1, degraded: 3, recovered: 1}
  iteration_timeout: 30s
lease: 60s
faults:
  - {name: half, kind: cap, target: {host: 2, nic: 0}, fraction: 1/2, during: degraded}
)";
constexpr Nanoseconds kPatience = std::chrono::seconds(120);

class Safety : public ::testing::Test {
protected:
    void SetUp() override {
        const Finished probe = run_railbreak(home(), {"lab", "up", "probe", "--hosts", "2"});
        if (probe.status.code == 3) {
            GTEST_SKIP() << "no lab here: " << probe.err;
        }
        ASSERT_EQ(run_railbreak(home(), {"lab", "down", "probe"}).status.code, 0) << probe.err;
        write("safe.yaml", kScenario);
    }

    [[nodiscard]] const std::filesystem::path& home() const { return folder_.path(); }
    std::string write(const std::string& name, const std::string& text) {
        const std::string path = (home() / name).string();
        std::ofstream(path) << text;
        return path;
    }
    [[nodiscard]] std::string scenario() const { return (home() / "safe.yaml").string(); }
    [[nodiscard]] Finished run_with_policy(const std::string& rules) {
        return run_railbreak(
            home(), {"run", scenario(), "--policy", write("policy.yaml", "railbreak_policy: 1\n" + rules)}, kPatience);
    }
    [[nodiscard]] std::unique_ptr<RailbreakProcess> run_into_the_fault() {
        auto process = std::make_unique<RailbreakProcess>(home(), std::vector<std::string>{"run", scenario()});
        EXPECT_TRUE(process->wait_for_stderr("ring degraded 1/", kPatience)) << process->err();
        return process;
    }
    void expect_nothing_left(const std::set<NetworkNamespace>& namespaces) {
        for (const RunProcess& process : wait_until_none(home(), kPatience)) {
            ADD_FAILURE() << "left over: " << process.role << " pid " << process.pid;
        }
        for (const std::string& inhabitant : wait_until_uninhabited(namespaces, kPatience)) {
            ADD_FAILURE() << "left over " << inhabitant;
        }
        for (const auto& file : std::filesystem::directory_iterator(home() / "state")) {
            const std::string name = file.path().filename().string();
            EXPECT_TRUE(name == "halt" || name == "lock") << name;
        }
    }

    TemporaryFolder folder_;
};

std::ptrdiff_t lines_of(const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
}

TEST_F(Safety, FaultsThatLastAreConfirmedAndPass) {
    const Finished run = run_with_policy("blast_radius: {hosts: 1, ranks: 1}\nkinds: [cap]\nmax_lease: 60s\n");
    EXPECT_EQ(run.status.code, 0) << run.err << run.out;
    expect_nothing_left({});
}

TEST_F(Safety, APolicyRefusesAPlanBeforeAnythingIsStarted) {
    for (const char* rules :
         {"blast_radius: {hosts: 0}\n", "blast_radius: {hosts_percent: 24}\n", "kinds: [delay]\n", "hours: []\n",
          "max_lease: 59s\n", "never: {hosts: [h2]}\n", "never: {nics: [rail0]}\n"}) {
        const Finished run = run_with_policy(rules);
        EXPECT_EQ(run.status.code, 3) << rules << run.err;
        EXPECT_THAT(run.err, HasSubstr("policy.yaml:2: the site policy ")) << rules;
        EXPECT_EQ(lines_of(run.err), 1) << run.err;
        EXPECT_EQ(run.out, "");
    }
    EXPECT_FALSE(std::filesystem::exists(home() / "runs.db")) << "a run was recorded";
    EXPECT_EQ(run_with_policy("kinds: []\nhours: []\nblast_radius: {hosts: 0}\n").status.code, 3);
    const Finished measured = run_railbreak(
        home(),
        {"run", scenario(), "--no-faults", "--policy", write("policy.yaml", "railbreak_policy: 1\nkinds: []\n")},
        kPatience);
    EXPECT_EQ(measured.status.code, 0) << measured.err;
}

TEST_F(Safety, APolicyThatIsNoneIsBadInput) {
    const Finished run = run_with_policy("kinds: [cap]\nblast_radius: {hosts: two}\n");
    EXPECT_EQ(run.status.code, 64) << run.err;
    EXPECT_THAT(run.err, HasSubstr("policy.yaml:3:23: blast_radius.hosts: \"two\" is not a whole number"));
    EXPECT_EQ(run_railbreak(home(), {"run", scenario(), "--policy", "/nonexistent"}).status.code, 64);
}

TEST_F(Safety, ANicThatTheClusterLacksIsBadInput) {
    std::string text = kScenario;
    text.replace(text.find("nic: 0"), 6, "nic: 5");
    write("safe.yaml", text);
    EXPECT_EQ(run_railbreak(home(), {"run", scenario()}).status.code, 64);
}

TEST_F(Safety, HaltEndsARunRevertsAndAllowsNoOtherUntilReleased) {
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault();
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    const Finished halt = run_railbreak(home(), {"halt"}, kPatience);
    EXPECT_EQ(halt.status.code, 0) << halt.err << halt.out;
    EXPECT_THAT(halt.out, HasSubstr("on host h2"));
    EXPECT_THAT(halt.out, HasSubstr("its agent has undone its faults and ended"));
    std::printf("%s", halt.out.c_str());
    const std::optional<Finished> run = process->finish(kPatience);
    ASSERT_TRUE(run) << process->err();
    EXPECT_EQ(run->status.code, 4) << run->err;
    expect_nothing_left(namespaces);

    const Finished refused = run_railbreak(home(), {"run", scenario()}, kPatience);
    EXPECT_EQ(refused.status.code, 3) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("halted"));
    const Finished again = run_railbreak(home(), {"halt", "--json"}, kPatience);
    const nlohmann::json report = nlohmann::json::parse(again.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << again.out;
    EXPECT_EQ(report.at("runs").size(), 0U);
    EXPECT_EQ(report.at("complete"), true);
    EXPECT_EQ(run_railbreak(home(), {"halt", "--release"}).status.code, 0);
    EXPECT_FALSE(std::filesystem::exists(home() / "state" / "halt"));
    EXPECT_EQ(run_railbreak(home(), {"run", scenario()}, kPatience).status.code, 0);
}

TEST_F(Safety, HaltEndsARunWithoutFaultsToo) {
    RailbreakProcess process(home(), {"run", "--repeat", "3", "--no-faults", scenario()});
    ASSERT_TRUE(process.wait_for_stderr("ring warmup 1/", kPatience)) << process.err();
    const Finished halt = run_railbreak(home(), {"halt", "--json"}, kPatience);
    EXPECT_EQ(halt.status.code, 0) << halt.err << halt.out;
    const nlohmann::json report = nlohmann::json::parse(halt.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << halt.out;
    EXPECT_EQ(report.at("runs").size(), 4U) << halt.out;
    const std::optional<Finished> run = process.finish(kPatience);
    ASSERT_TRUE(run) << process.err();
    EXPECT_EQ(run->status.code, 4) << run->err;
    EXPECT_THAT(run->err, HasSubstr("the agent has ended: ")); // and why: a signal, or the halt file
    expect_nothing_left({});
    const Finished refused = run_railbreak(home(), {"run", "--no-faults", scenario()}, kPatience);
    EXPECT_EQ(refused.status.code, 3) << refused.err;
    EXPECT_EQ(run_railbreak(home(), {"halt", "--release"}).status.code, 0);
}

TEST_F(Safety, WhatIsNoJournalAndNoLabKeepsNoCommandWaiting) {
    ASSERT_EQ(::mkfifo((home() / "state" / "x.journal").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((home() / "state" / "x.lab.json").c_str(), 0600), 0);
    std::filesystem::create_symlink("/dev/zero", home() / "state" / "y.journal");
    EXPECT_EQ(run_railbreak(home(), {"lab", "list"}).status.code, 0);
    EXPECT_EQ(run_railbreak(home(), {"recover"}).status.code, 0);
    EXPECT_EQ(run_railbreak(home(), {"halt"}).status.code, 0);
    EXPECT_EQ(run_railbreak(home(), {"halt", "--release"}).status.code, 0);
}

TEST_F(Safety, HaltTurnsToTheGuardOfAnAgentThatStandsStill) {
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault();
    std::vector<pid_t> stopped;
    for (const RunProcess& each : processes_of(home())) {
        if (each.role == "agent") {
            ASSERT_EQ(::kill(each.pid, SIGSTOP), 0);
            ASSERT_TRUE(wait_until_stopped(each.pid, kPatience));
            stopped.push_back(each.pid);
        }
    }
    ASSERT_EQ(stopped.size(), 4U);
    const Finished halt = run_railbreak(home(), {"halt"}, kPatience);
    EXPECT_EQ(halt.status.code, 0) << halt.err << halt.out;
    EXPECT_THAT(halt.out, HasSubstr("its guard has undone its faults and ended"));
    for (const pid_t pid : stopped) {
        ::kill(pid, SIGCONT);
    }
    EXPECT_TRUE(process->finish(kPatience)) << process->err();
    expect_nothing_left({});
}

TEST_F(Safety, TheThirdCtrlCLeavesAHangingHostToItself) {
    std::unique_ptr<RailbreakProcess> process = run_into_the_fault();
    const std::set<NetworkNamespace> namespaces = namespaces_of(home());
    std::vector<RunProcess> agents = processes_of(home());
    std::erase_if(agents, [](const RunProcess& each) { return each.role != "agent"; });
    ASSERT_EQ(agents.size(), 4U);
    ASSERT_EQ(::kill(agents.front().pid, SIGSTOP), 0);
    launch::send_signal(process->child(), SIGINT);
    ASSERT_TRUE(process->wait_for_stderr("SIGINT: reverting every fault, then ending", kPatience));
    launch::send_signal(process->child(), SIGINT);
    ASSERT_TRUE(process->wait_for_stderr("signal 2: still reverting", kPatience)) << process->err();
    launch::send_signal(process->child(), SIGINT);
    ASSERT_TRUE(process->wait_for_stderr("signal 3: ending", kPatience)) << process->err();
    const std::optional<Finished> run = process->finish(kPatience);
    ::kill(agents.front().pid, SIGCONT);
    ASSERT_TRUE(run) << process->err();
    EXPECT_EQ(run->status.code, 5) << run->err;
    EXPECT_THAT(run->err + run->out, HasSubstr("was left without confirming"));
    expect_nothing_left(namespaces);
}

TEST_F(Safety, RecoverAllFindsNothingOnACleanHost) {
    // Inside of a lab: whatever it finds, it may touch nothing of the machine's own network.
    const std::string lab = "clean-" + std::to_string(::getpid());
    ASSERT_EQ(run_railbreak(home(), {"lab", "up", lab, "--hosts", "2"}).status.code, 0);
    const Finished json = run_railbreak(
        home(), {"lab", "exec", lab, "h1", "--", RAILBREAK_BINARY, "recover", "--all", "--json"}, kPatience);
    EXPECT_EQ(json.status.code, 0) << json.err;
    const nlohmann::json report = nlohmann::json::parse(json.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << json.out;
    EXPECT_EQ(report.at("schema"), "railbreak-recover-all");
    EXPECT_EQ(report.at("complete"), true);
    EXPECT_TRUE(report.at("tagged_objects").empty());
    EXPECT_EQ(run_railbreak(home(), {"lab", "down", lab}).status.code, 0);
}

/// A machine in small, with processes, a network and state folders of its own: what root does there to all users and
/// all processes, it does to this test's alone. A user runs a scenario in a lab without privileges, and everything of
/// that user is killed in the middle of the fault. Prints what the user's state folder holds then, what it holds after
/// root's recovery, and its report. While a guard is alive nobody looks for cgroups and files that carry railbreak's
/// tags: those are not the test's alone, so something is called a guard.
constexpr const char* kOtherUsersRun = R"(set -eu
[ $$ = 1 ] # or "all processes" below were not this test's
mount -t tmpfs none /run
touch /run/program
mount --bind "$1" /run/program
cp /usr/bin/sleep /run/rb-guard
mount -t tmpfs -o mode=1777 none /tmp
mkdir -p /run/user/4242
chown 4242:4242 /run/user/4242
printf %s "$2" >/tmp/safe.yaml
mkfifo -m 666 /tmp/errors
unset RAILBREAK_STATE_DIR
user="setpriv --reuid=4242 --regid=4242 --clear-groups"
export XDG_RUNTIME_DIR=/run/user/4242 RAILBREAK_DB=/tmp/runs.db
$user /run/program run /tmp/safe.yaml >/dev/null 2>/tmp/errors &
exec 3</tmp/errors
sed '/ring degraded 1\//q' <&3 >/tmp/seen
grep -q 'ring degraded 1/' /tmp/seen || { cat /tmp/seen >&2; exit 1; }
$user sh -c 'kill -9 -1'
state=/run/user/4242/railbreak
for journal in "$state"/journal/*; do
    flock "$journal" true # until its agent has really gone
done
/run/rb-guard 600 &
until grep -q rb-guard "/proc/$!/comm"; do :; done
ls $state $state/journal | tr '\n' ' '
echo
other=/run/user/4343/railbreak # of a user who was killed before the first journal
mkdir -p $other
cp $state/*.lab.json $other
chown -R 4343:4343 /run/user/4343
unset XDG_RUNTIME_DIR
/run/program recover --all --json >/tmp/report
ls $state $state/journal $other | grep -vx -e journal -e lock -e '.*:' -e '' | tr '\n' ' '
echo
cat /tmp/report
)";

TEST_F(Safety, RootRecoversWhatAnotherUserHasLeft) {
    if (::geteuid() != 0) {
        GTEST_SKIP() << "only root works in other users' names";
    }
    Result<launch::Child> machine = launch::spawn(
        {.argv = {"/usr/bin/timeout", "120", "/usr/bin/unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
                  "--mount-proc", "/bin/sh", "-c", kOtherUsersRun, "sh", RAILBREAK_BINARY, kScenario},
         .inherit_stderr = true});
    ASSERT_TRUE(machine.has_value()) << machine.error().to_line();
    std::string out;
    std::array<char, 4096> part{};
    for (ssize_t size = 1; size > 0;) {
        size = ::read(machine->stdout_fd.get(), part.data(), part.size());
        out.append(part.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    }
    const std::optional<launch::ExitStatus> status = launch::wait_for(*machine, Deadline::after(kPatience));
    ASSERT_TRUE(status.has_value());
    ASSERT_EQ(status->code, 0) << out;
    std::istringstream lines(out);
    std::string before;
    std::string after;
    std::getline(lines, before);
    std::getline(lines, after);
    EXPECT_THAT(before, AllOf(HasSubstr(".journal"), HasSubstr(".lab.json"), HasSubstr(".lock")));
    EXPECT_EQ(after, ""); // neither journals, nor locks, nor records of labs
    const nlohmann::json report = nlohmann::json::parse(lines, nullptr, false);
    ASSERT_TRUE(report.is_object()) << out;
    EXPECT_EQ(report.at("complete"), true);
    std::size_t undone = 0;
    for (const nlohmann::json& folder : report.at("folders")) {
        if (folder.at("user") == 4242) {
            EXPECT_EQ(folder.at("folder"), "/run/user/4242/railbreak/journal");
            undone += folder.at("faults").size();
        }
    }
    EXPECT_EQ(undone, 1U) << out;
}

} // namespace
} // namespace railbreak::tests
