#include "tests/lab/process_lab.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/real_host_ops.hpp"

namespace railbreak::injectors {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void count_for_ever(std::atomic<std::uint64_t>& counter, const std::atomic<bool>* hurry = nullptr) {
    // Counts at the pace of a timer, which leaves the processor to the machine's other work.
    const UniqueFd pace(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec every{{0, 20'000}, {0, 20'000}};
    const bool paced = pace.valid() && timerfd_settime(pace.get(), 0, &every, nullptr) == 0;
    for (;;) {
        counter.fetch_add(1);
        std::uint64_t ticks = 0;
        if (paced && (hurry == nullptr || !hurry->load())) {
            static_cast<void>(!read(pace.get(), &ticks, sizeof ticks));
        }
    }
}

std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_to(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    EXPECT_TRUE(file.good()) << path;
}

std::string name_of_tests_cgroup() {
    return fmt::format("rbtest-{}", getpid());
}

} // namespace

std::string_view to_string(Surroundings surroundings) {
    switch (surroundings) {
    case Surroundings::kUnified: return "unified";
    case Surroundings::kOld: return "old";
    case Surroundings::kNone: return "none";
    }
    return "?";
}

Worker::Worker() {
    void* memory = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::abort();
    }
    counters_ = new (memory) Counters{};
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
        child_ = fork();
        if (child_ == 0) {
            count_for_ever(counters_->child);
        }
        if (write(theirs.get(), &child_, sizeof child_) != static_cast<ssize_t>(sizeof child_)) {
            _exit(1);
        }
        const std::thread second([this] { count_for_ever(counters_->second); });
        count_for_ever(counters_->first, &counters_->hurry);
    }
    EXPECT_TRUE(readable(ours.get(), kPatience));
    EXPECT_EQ(read(ours.get(), &child_, sizeof child_), static_cast<ssize_t>(sizeof child_));
    EXPECT_TRUE(all_count());
}

void Worker::end() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        wait_ended(std::exchange(pid_, 0), kPatience);
    }
}

void Worker::hurry(bool on) {
    counters_->hurry = on;
}

Worker::~Worker() {
    end();
    if (child_ > 0) {
        kill(child_, SIGKILL);
        wait_ended(child_, kPatience); // this process is its reaper now
    }
    munmap(counters_, sizeof(Counters));
}

std::vector<std::uint64_t> Worker::counts() const {
    return {counters_->first.load(), counters_->second.load(), counters_->child.load()};
}

bool Worker::all_count(bool with_child) const {
    const auto before = counts();
    const std::size_t concerned = with_child ? 3 : 2;
    for (const Deadline deadline = Deadline::after(kPatience); !deadline.passed(); sched_yield()) {
        const auto now = counts();
        std::size_t more = 0;
        for (std::size_t i = 0; i < concerned; ++i) {
            more += now[i] > before[i] ? 1 : 0;
        }
        if (more == concerned) {
            return true;
        }
    }
    return false;
}

bool Worker::none_counts(bool with_child) const {
    constexpr int kRounds = 20;
    const Worker twin; // scheduled as this one would be
    auto before = counts();
    for (int i = 0; i < kRounds; ++i) {
        EXPECT_TRUE(twin.all_count());
    }
    auto now = counts();
    if (!with_child) {
        before.pop_back();
        now.pop_back();
    }
    return before == now;
}

Nanoseconds Worker::cpu_time() const {
    clockid_t clock{};
    timespec used{};
    EXPECT_EQ(clock_getcpuclockid(pid_, &clock), 0);
    EXPECT_EQ(clock_gettime(clock, &used), 0);
    return std::chrono::seconds(used.tv_sec) + Nanoseconds(used.tv_nsec);
}

std::vector<std::string> ProcessLab::trees() {
    std::vector<std::string> found;
    std::istringstream lines(text_of("/proc/self/mountinfo"));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id;
        std::string parent;
        std::string device;
        std::string root;
        std::string point;
        words >> id >> parent >> device >> root >> point;
        const bool unified = line.find(" - cgroup2 ") != std::string::npos;
        const bool useful = line.find(",freezer") != std::string::npos || line.ends_with(",cpu") ||
                            line.find(",cpu,cpuacct") != std::string::npos;
        if (unified || (line.find(" - cgroup ") != std::string::npos && useful)) {
            found.push_back((unified ? "2 " : "1 ") + point);
        }
    }
    return found;
}

std::string ProcessLab::pause_mechanism() {
    const auto seen = trees();
    const bool unified =
        std::any_of(seen.begin(), seen.end(), [](const std::string& tree) { return tree.starts_with("2 "); });
    return seen.empty() ? "SIGSTOP" : unified ? "cgroup v2 freezer" : "cgroup v1 freezer";
}

std::string ProcessLab::cpu_mechanism() {
    const auto seen = trees();
    const auto quota = [](const std::string& tree) {
        return tree.starts_with("2 ") ? text_of(tree.substr(2) + "/cgroup.controllers").find("cpu") != std::string::npos
                                      : fs::exists(tree.substr(2) + "/cpu.cfs_quota_us");
    };
    const auto found = std::find_if(seen.begin(), seen.end(), quota);
    return found == seen.end() ? "" : found->starts_with("2 ") ? "cgroup v2 cpu.max" : "cgroup v1 CPU quota";
}

void ProcessLab::SetUp() {
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can make cgroups and hide them";
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1); // of guards of killed agents, and of workers' children
    std::string pattern = ::testing::TempDir() + "railbreak-process-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    mounts_.reset(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    for (const std::string& tree : trees()) {
        const bool unified = tree.starts_with("2 ");
        if (GetParam() == Surroundings::kNone || (GetParam() == Surroundings::kOld && unified)) {
            ASSERT_EQ(umount2(tree.c_str() + 2, MNT_DETACH), 0) << tree << strerror(errno);
        }
    }
    if (GetParam() != Surroundings::kNone && trees().empty()) {
        GTEST_SKIP() << "no cgroups of this kind are mounted here";
    }
    for (const std::string& tree : trees()) {
        own_.push_back(tree.substr(2) + "/" + name_of_tests_cgroup());
        ASSERT_TRUE(fs::create_directory(own_.back())) << own_.back();
    }
    auto opened = open_host_ops();
    ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
    ops_ = std::move(*opened);
    worker_ = std::make_unique<Worker>();
    settle(*worker_);
}

void ProcessLab::TearDown() {
    worker_.reset();
    for (const std::string& cgroup : own_) {
        std::error_code code;
        for (const Deadline deadline = Deadline::after(kPatience); !deadline.passed(); sched_yield()) {
            if (fs::remove(cgroup, code) || code.value() != EBUSY) {
                break; // the last process leaves a moment after its end
            }
        }
        EXPECT_FALSE(fs::exists(cgroup)) << cgroup << ": " << code.message();
    }
    if (mounts_.valid()) {
        ASSERT_EQ(setns(mounts_.get(), CLONE_NEWNS), 0);
    }
    InjectorLab::TearDown();
}

void ProcessLab::settle(const Worker& worker) {
    for (const std::string& cgroup : own_) {
        write_to(cgroup + "/cgroup.procs", std::to_string(worker.pid()));
        write_to(cgroup + "/cgroup.procs", std::to_string(worker.child_pid()));
    }
}

std::vector<std::string> ProcessLab::snapshot() const {
    std::vector<std::string> lines;
    for (const std::string& cgroup : own_) {
        for (const auto& entry : fs::recursive_directory_iterator(cgroup)) {
            if (entry.is_directory()) {
                lines.push_back("cgroup " + entry.path().string());
            }
        }
        // Beside it: other runs of the machine have theirs there too.
        for (const auto& entry : fs::directory_iterator(fs::path(cgroup).parent_path())) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("railbreak-") && name.ends_with(fmt::format("-{}", worker_->pid()))) {
                lines.push_back("cgroup " + entry.path().string());
            }
        }
        for (const char* file : {"cgroup.subtree_control", "cgroup.freeze", "cgroup.type"}) {
            lines.push_back(fmt::format("{} of {}: {}", file, cgroup, text_of(cgroup + "/" + file)));
        }
        lines.push_back("controllers: " + text_of(cgroup + "/../cgroup.subtree_control"));
    }
    for (const pid_t pid : {worker_->pid(), worker_->child_pid()}) {
        const std::string status = text_of(fmt::format("/proc/{}/status", pid));
        const bool stopped = status.find("State:\tT") != std::string::npos;
        lines.push_back(fmt::format("process {}: {} {}", pid, stopped ? "stopped" : "running",
                                    text_of(fmt::format("/proc/{}/cgroup", pid))));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

FaultRequest ProcessLab::pause(std::int32_t id) const {
    return {.id = id, .kind = FaultKind::kPause, .pid = worker_->pid()};
}
FaultRequest ProcessLab::kill_it(std::int32_t id) const {
    return {.id = id, .kind = FaultKind::kKill, .pid = worker_->pid()};
}
FaultRequest ProcessLab::slow_down(std::int32_t id, Millionths cpu) const {
    return {.id = id, .kind = FaultKind::kCpu, .pid = worker_->pid(), .cpu = cpu};
}

} // namespace railbreak::injectors
