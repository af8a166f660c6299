#include "tests/lab/conformance_targets.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

namespace railbreak::injectors {

namespace {

constexpr const char* kDiskSize = "size=4m";

FaultForm on_nic(const char* name, FaultKind kind, Direction direction) {
    return {name, {.id = 1, .kind = kind, .nic = "nic0", .direction = direction}};
}

FaultForm with_packets(const char* name, FaultKind kind, Direction direction, const PacketTreatment& packets) {
    FaultForm form = on_nic(name, kind, direction);
    form.request.packets = packets;
    return form;
}

/// Mount points of cgroup hierarchies.
std::vector<std::string> cgroup_mounts() {
    std::vector<std::string> points;
    std::ifstream mounts("/proc/self/mounts");
    std::string device;
    std::string point;
    std::string type;
    std::string rest;
    while (mounts >> device >> point >> type && std::getline(mounts, rest)) {
        if (type == "cgroup" || type == "cgroup2") {
            points.push_back(point);
        }
    }
    return points;
}

/// Every cgroup that railbreak made for one of these processes; other tests may have theirs at the same time.
std::vector<std::string> own_cgroups(const std::vector<pid_t>& victims) {
    const auto is_own = [&](const std::string& name) {
        return name.starts_with("railbreak") && std::any_of(victims.begin(), victims.end(), [&](pid_t pid) {
                   return name.ends_with("-" + std::to_string(pid));
               });
    };
    std::set<std::string> found;
    for (const std::string& point : cgroup_mounts()) {
        std::error_code ignored;
        for (auto entry = std::filesystem::recursive_directory_iterator(point, ignored);
             entry != std::filesystem::recursive_directory_iterator(); entry.increment(ignored)) {
            if (entry->is_directory(ignored) && is_own(entry->path().filename().string())) {
                found.insert(std::filesystem::canonical(entry->path(), ignored).string());
            }
        }
    }
    return {found.begin(), found.end()};
}

std::string first_lines(const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

} // namespace

void PrintTo(const FaultForm& form, std::ostream* out) {
    *out << form.name;
}

std::vector<FaultForm> all_fault_forms() {
    using std::chrono::milliseconds;
    std::vector<FaultForm> forms;
    for (const auto& [name, direction] :
         {std::pair{"cap_send", Direction::kSend}, std::pair{"cap_receive", Direction::kReceive},
          std::pair{"cap_both", Direction::kBoth}}) {
        FaultForm form = on_nic(name, FaultKind::kCap, direction);
        form.request.rate = BitRate::bits_per_s(80'000'000);
        forms.push_back(form);
    }
    forms.push_back(on_nic("link_down", FaultKind::kLinkDown, Direction::kBoth));
    forms.push_back(with_packets("delay_both", FaultKind::kDelay, Direction::kBoth,
                                 {.delay = milliseconds(5), .jitter = milliseconds(1)}));
    forms.push_back(with_packets("loss_send", FaultKind::kLoss, Direction::kSend, {.loss = 10'000}));
    forms.push_back(with_packets("loss_receive", FaultKind::kLoss, Direction::kReceive, {.loss = 10'000}));
    forms.push_back(with_packets("bursts_both", FaultKind::kLoss, Direction::kBoth,
                                 {.bursts = GilbertElliott{10'000, 300'000, 800'000, 1'000}}));
    forms.push_back(with_packets("corrupt_both", FaultKind::kCorrupt, Direction::kBoth, {.corrupt = 1'000}));
    forms.push_back(with_packets("duplicate_both", FaultKind::kDuplicate, Direction::kBoth, {.duplicate = 1'000}));
    forms.push_back(with_packets("reorder_send", FaultKind::kReorder, Direction::kSend,
                                 {.delay = milliseconds(2), .reorder = 250'000}));
    forms.push_back(on_nic("blackhole_both", FaultKind::kBlackhole, Direction::kBoth));
    forms.push_back(on_nic("blackhole_receive", FaultKind::kBlackhole, Direction::kReceive));
    FaultForm partition = on_nic("partition_both", FaultKind::kPartition, Direction::kBoth);
    partition.request.peers = {"10.9.0.2", "fd09::2"};
    forms.push_back(partition);
    partition.name = "partition_send";
    partition.request.direction = Direction::kSend;
    forms.push_back(partition);
    FaultForm mtu = on_nic("mtu", FaultKind::kMtu, Direction::kBoth);
    mtu.request.mtu_bytes = 1000; // below what IPv6 needs: its addresses go
    forms.push_back(mtu);
    FaultForm reroute = on_nic("reroute", FaultKind::kReroute, Direction::kBoth);
    reroute.request.via_nic = "nic1";
    forms.push_back(reroute);
    FaultForm speed = on_nic("port_speed", FaultKind::kPortSpeed, Direction::kBoth);
    speed.request.rate = BitRate::bits_per_s(100'000'000);
    forms.push_back(speed);
    forms.push_back({"pause", {.id = 1, .kind = FaultKind::kPause}});
    forms.push_back({"kill", {.id = 1, .kind = FaultKind::kKill}});
    forms.push_back({"cpu", {.id = 1, .kind = FaultKind::kCpu, .cpu = 200'000}});
    forms.push_back({"disk_full", {.id = 1, .kind = FaultKind::kDiskFull, .leave = ByteCount::bytes(65'536)}});
    return forms;
}

void ConformanceTargets::SetUp() {
    InjectorLab::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
        return;
    }
    mount_small_disk();
}

void ConformanceTargets::make_more_nics() {
    make_pair_of_nics("nic2", "peer2", 11);
}

void ConformanceTargets::TearDown() {
    end_victim();
    if (!disk_.empty()) {
        if (no_disk_.empty()) {
            umount2(disk_.c_str(), MNT_DETACH);
        }
        std::filesystem::remove(disk_);
    }
    InjectorLab::TearDown();
}

void ConformanceTargets::mount_small_disk() {
    disk_ = folder_ + "-disk";
    std::filesystem::create_directory(disk_);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", disk_.c_str(), "tmpfs", 0, kDiskSize) != 0) {
        no_disk_ = fmt::format("no private mount here: {}", strerrordesc_np(errno));
    }
}

void ConformanceTargets::start_victim() {
    const pid_t parent = getpid();
    victim_ = fork();
    if (victim_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent) {
            pause();
        }
        _exit(0);
    }
    ASSERT_GT(victim_, 0);
    victims_.push_back(victim_);
}

void ConformanceTargets::end_victim() {
    if (victim_ > 0) {
        kill(victim_, SIGKILL);
        waitpid(victim_, nullptr, 0);
        victim_ = 0;
    }
}

FaultRequest ConformanceTargets::aimed(FaultRequest request) {
    switch (target_kind(request.kind)) {
    case TargetKind::kNic: break;
    case TargetKind::kProcess: {
        const auto found = victim_ > 0 ? ops_->process(victim_) : Result<std::optional<ProcessRecord>>(std::nullopt);
        if (!found || !*found || (*found)->state == 'Z') {
            end_victim();
            start_victim();
        }
        request.pid = victim_;
        victim_counts_ = request.kind != FaultKind::kKill;
        break;
    }
    case TargetKind::kFolder: request.folder = disk_; break;
    }
    return request;
}

std::vector<std::string> ConformanceTargets::snapshot() const {
    std::vector<std::string> lines = InjectorLab::snapshot();
    for (const std::string& group : own_cgroups(victims_)) {
        lines.push_back("cgroup of railbreak " + group);
    }
    if (victim_ > 0 && victim_counts_) {
        const auto found = ops_->process(victim_);
        // Asleep or about to be: only standing still would be a trace.
        const bool stands = found && *found && ((*found)->state == 'T' || (*found)->state == 't');
        lines.push_back(fmt::format("victim stands still: {}; cgroups {}", stands,
                                    first_lines(fmt::format("/proc/{}/cgroup", victim_))));
    }
    if (no_disk_.empty() && !disk_.empty()) {
        struct statvfs space {};
        EXPECT_EQ(statvfs(disk_.c_str(), &space), 0);
        lines.push_back(fmt::format("small disk: {} blocks free", space.f_bfree));
        for (const auto& entry : std::filesystem::directory_iterator(disk_)) {
            lines.push_back("small disk holds " + entry.path().filename().string());
        }
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

std::vector<std::string> ConformanceTargets::own_things() const {
    std::vector<std::string> own;
    for (const std::string& line : snapshot()) {
        for (const char* mark : {"rbifb", "fa01:", "fa02:", "fa03:", "railbreak", "rule of ours"}) {
            if (line.find(mark) != std::string::npos) {
                own.push_back(line);
                break;
            }
        }
    }
    return own;
}

} // namespace railbreak::injectors
