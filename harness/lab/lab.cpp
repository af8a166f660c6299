#include "harness/lab/lab.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "harness/lab/fabric.hpp"
#include "harness/lab/keeper.hpp"
#include "harness/lab/privilege.hpp"
#include "harness/lab/state.hpp"

namespace railbreak::lab {
namespace {

constexpr auto kLockBudget = std::chrono::seconds(5);
constexpr auto kClearBudget = std::chrono::milliseconds(100); ///< tidying up is not what a list was asked for
constexpr auto kDestructorBudget = std::chrono::seconds(5);
constexpr unsigned kSmallestMtu = 576;
constexpr unsigned kLargestMtu = 65535;
constexpr std::size_t kLongestName = 32;
constexpr int kFirstNic = 101;         ///< index of rail0 in a host
constexpr int kFirstSwitchPort = 1001; ///< index of h0r0 in the switch
constexpr std::uint64_t kBurstBytes = 16'000;
constexpr std::uint64_t kLeastQueueBytes = 200'000;
constexpr std::uint64_t kQueueParts = 50; ///< 20 ms of the rate

bool is_good_name(std::string_view name) {
    return !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), [](char letter) {
               return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '_' ||
                      letter == '-';
           });
}

tl::unexpected<Error> out_of_range(std::string_view field, std::uint64_t value, std::string_view allowed) {
    return fail(Error(ErrorKind::kInput, fmt::format("a lab cannot have {} {}: {}", value, field, allowed))
                    .with(field, std::to_string(value)));
}

/// True while a lab of this record exists: its keeper runs, or its owner is still building it.
bool is_up(const LabRecord& record) {
    if (record.boot_id != read_boot_id()) {
        return false;
    }
    return is_alive(record.keeper.pid != 0 ? record.keeper : record.owner);
}

/// True for two records of one lab, which may have been written before and after its keeper started.
bool is_same_lab(const LabRecord& a, const LabRecord& b) {
    return a.owner == b.owner && a.created_at == b.created_at;
}

tl::unexpected<Error> already_up(const LabRecord& record) {
    return fail(Error(ErrorKind::kRefused, fmt::format("the lab {} is already up", record.spec.name))
                    .with("owner", std::to_string(record.kept ? record.keeper.pid : record.owner.pid))
                    .with("keeper", std::to_string(record.keeper.pid))
                    .advise(record.kept
                                ? fmt::format("use it, or take it down with: railbreak lab down {}", record.spec.name)
                                : std::string("choose another name, or end the process that owns it")));
}

/// Whether a record has nothing behind it: neither builder, nor keeper, nor a process inside.
bool is_abandoned(const LabRecord& record, const std::string& boot, std::span<const LabRecord> keepers) {
    if (record.boot_id != boot) {
        return true;
    }
    // A keeper may be at work that is only just about to be recorded.
    const bool has_keeper =
        std::any_of(keepers.begin(), keepers.end(), [&](const auto& keeper) { return is_same_lab(keeper, record); });
    if (has_keeper || is_alive(record.owner)) {
        return false;
    }
    return record.keeper.pid == 0 || processes_inside(record.namespaces, NamespaceProof::kDoubt).empty();
}

/// Removes records with nothing behind them: of builders that were killed, of labs whose keeper was killed too, and of
/// an earlier boot. The folder is locked. While processes are left inside a record stays, for take_down() to end them.
void clear_abandoned(StateFolder& folder) {
    const auto boot = read_boot_id();
    const auto keepers = find_keepers();
    for (const auto& name : folder.names()) {
        const auto record = folder.read(name);
        if (record && is_abandoned(*record, boot, keepers)) {
            folder.remove(name);
        }
    }
    folder.remove_abandoned_drafts();
}

/// Writes the first record of a lab, if no other lab has the name.
Result<LabRecord> reserve_name(StateFolder& folder, const LabSpec& spec, bool kept) {
    if (auto locked = folder.lock(Deadline::after(kLockBudget)); !locked) {
        return fail(std::move(locked.error()));
    }
    clear_abandoned(folder);
    if (const auto there = folder.read(spec.name); there && is_up(*there)) {
        return already_up(*there);
    }
    for (const auto& other : find_keepers()) {
        if (other.spec.name == spec.name) {
            return already_up(other);
        }
    }
    LabRecord record;
    record.spec = spec;
    record.kept = kept;
    record.owner = identify_process(::getpid());
    record.created_at = realtime_now();
    record.boot_id = read_boot_id();
    auto written = folder.write(record);
    folder.unlock();
    if (!written) {
        return fail(std::move(written.error()));
    }
    return record;
}

/// A lab that is up: its record and this process's own descriptors.
struct RunningLab {
    LabRecord record;
    Fabric fabric;
};

Result<RunningLab> build_and_keep(LabRecord record) {
    auto fabric = build_fabric(record.spec);
    if (!fabric) {
        return fail(std::move(fabric.error()));
    }
    record.namespaces = fabric->ids;
    std::vector<int> namespaces{fabric->switch_netns.get()};
    std::transform(fabric->host_netns.begin(), fabric->host_netns.end(), std::back_inserter(namespaces),
                   [](const UniqueFd& fd) { return fd.get(); });
    auto keeper = start_keeper(record, namespaces);
    if (!keeper) {
        return fail(std::move(keeper.error()));
    }
    record.keeper = *keeper;
    return RunningLab{std::move(record), std::move(*fabric)};
}

Result<RunningLab> start_lab(const LabSpec& spec, bool kept) {
    if (auto good = check_spec(spec); !good) {
        return fail(std::move(good.error()));
    }
    if (!has_lab_capabilities()) {
        return fail(Error(ErrorKind::kRefused, "a lab needs CAP_NET_ADMIN and CAP_SYS_ADMIN")
                        .advise("run as root, or as a normal user where user namespaces are allowed"));
    }
    auto folder = StateFolder::open();
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    auto record = reserve_name(*folder, spec, kept);
    if (!record) {
        return fail(std::move(record.error()));
    }
    auto running = build_and_keep(std::move(*record));
    if (!running) {
        folder->remove(spec.name);
        return fail(std::move(running.error()).during(fmt::format("building the lab {}", spec.name)));
    }
    if (auto written = folder->write(running->record); !written) {
        static_cast<void>(end_keeper(running->record.keeper, Deadline::after(kDestructorBudget)));
        folder->remove(spec.name);
        return fail(std::move(written.error()));
    }
    return running;
}

LabSummary summarise(const LabRecord& record) {
    LabSummary summary;
    summary.spec = record.spec;
    summary.kept = record.kept;
    summary.owner_pid = record.kept ? record.keeper.pid : record.owner.pid;
    summary.keeper_pid = record.keeper.pid;
    summary.age = std::max(realtime_now() - record.created_at, Nanoseconds::zero());
    summary.alive = is_up(record);
    return summary;
}

/// kTeardown when somebody is left of whom it cannot be told: such processes are not ended, and not forgotten.
Result<void> check_nobody_inside(const LabRecord& record) {
    const auto left = processes_inside(record.namespaces, NamespaceProof::kDoubt);
    if (left.empty()) {
        return {};
    }
    return fail(Error(ErrorKind::kTeardown,
                      fmt::format("process {} is in a network namespace that this user may not enter, and that may be "
                                  "one of the lab {}",
                                  left.front().pid, record.spec.name))
                    .with("pid", std::to_string(left.front().pid))
                    .advise("end it, or run the command as root"));
}

/// Ends a lab whose record and keeper are known.
Result<void> take_down(const LabRecord& record, const Deadline& deadline) {
    if (record.boot_id != read_boot_id()) {
        return {}; // nothing survives a boot
    }
    // An owner whose own attempt to take the lab down has failed may try again; nobody else takes it from a live owner.
    const bool is_own_leftover = record.owner.pid == ::getpid() && record.keeper.pid != 0 && !is_alive(record.keeper);
    const bool needs_owner = !record.kept || record.keeper.pid == 0;
    if (needs_owner && is_alive(record.owner) && !is_own_leftover) {
        return fail(
            Error(ErrorKind::kRefused, fmt::format("the lab {} belongs to a running process", record.spec.name))
                .with("owner", std::to_string(record.owner.pid))
                .advise(fmt::format("end that process (kill -INT {}); the lab goes with it", record.owner.pid)));
    }
    // Opened before the keeper goes, to see the ports go; a lab of another user namespace can only be watched by its
    // keeper.
    auto fabric_switch = open_keeper_fd(record.keeper, kKeeperSwitchFd);
    auto obeyed = end_keeper(record.keeper, deadline);
    if (!obeyed) {
        return fail(std::move(obeyed.error()));
    }
    // The keeper has done this already, unless it was killed.
    auto emptied =
        end_processes_inside(record.namespaces, NamespaceProof::kCookie, deadline.left() / 4, deadline).and_then([&] {
            return check_nobody_inside(record);
        });
    if (!emptied || !fabric_switch) {
        return emptied;
    }
    auto gone = wait_until_ports_gone_in(fabric_switch->get(), deadline);
    if (!gone && gone.error().kind() == ErrorKind::kRefused && *obeyed) {
        return {};
    }
    return gone;
}

/// Every lab of this user, from records on disk and from keepers; true beside those that have a record.
std::vector<std::pair<LabRecord, bool>> find_labs(const StateFolder& folder) {
    std::vector<std::pair<LabRecord, bool>> labs;
    for (const auto& name : folder.names()) {
        if (auto record = folder.read(name)) {
            labs.emplace_back(std::move(*record), true);
        }
    }
    for (auto& keeper : find_keepers()) {
        const auto known = std::find_if(labs.begin(), labs.end(),
                                        [&keeper](const auto& lab) { return is_same_lab(lab.first, keeper); });
        if (known == labs.end()) {
            labs.emplace_back(std::move(keeper), false);
        } else {
            known->first = std::move(keeper); // complete even if the building process died before it could say so
        }
    }
    std::stable_sort(labs.begin(), labs.end(),
                     [](const auto& a, const auto& b) { return a.first.spec.name < b.first.spec.name; });
    return labs;
}

/// Removes the record of this lab, but not that of a newer one of the same name.
void forget(StateFolder& folder, const LabRecord& record) {
    const auto there = folder.read(record.spec.name);
    if (there && there->created_at == record.created_at) {
        folder.remove(record.spec.name);
    }
}

Result<void> take_down_and_forget(StateFolder& folder, const LabRecord& record, bool has_record,
                                  const Deadline& deadline) {
    auto down = take_down(record, deadline);
    if (down && has_record) {
        forget(folder, record);
    }
    return down;
}

} // namespace

ByteCount lab_burst() {
    return ByteCount::bytes(kBurstBytes);
}

ByteCount lab_queue_limit(BitRate rate) {
    return ByteCount::bytes(std::max(rate.bytes_per_s() / kQueueParts, kLeastQueueBytes));
}

Result<void> check_spec(const LabSpec& spec) {
    if (!is_good_name(spec.name)) {
        return fail(Error(ErrorKind::kInput, fmt::format("\"{}\" is no name for a lab", spec.name))
                        .with("name", spec.name)
                        .advise("use 1 to 32 letters, digits, dots, dashes and underscores, the first not a dot"));
    }
    if (spec.hosts < 2 || spec.hosts > kMaximumHosts) {
        return out_of_range("hosts", spec.hosts, "2 to 64 are possible");
    }
    if (spec.nics_per_host < 1 || spec.nics_per_host > kMaximumNics) {
        return out_of_range("nics_per_host", spec.nics_per_host, "1 to 8 are possible");
    }
    if (spec.rate.bytes_per_s() == 0) {
        return out_of_range("rate_bits_per_s", spec.rate.bits_per_s(), "at least 8 bit/s are needed");
    }
    if (spec.mtu_bytes < kSmallestMtu || spec.mtu_bytes > kLargestMtu) {
        return out_of_range("mtu_bytes", spec.mtu_bytes, "576 to 65535 are possible");
    }
    return {};
}

std::vector<LabHost> hosts_of(const LabSpec& spec) {
    std::vector<LabHost> hosts;
    for (unsigned index = 0; index < spec.hosts; ++index) {
        LabHost host{index, fmt::format("h{}", index), {}};
        for (unsigned rail = 0; rail < spec.nics_per_host; ++rail) {
            LabNic nic;
            nic.name = fmt::format("rail{}", rail);
            nic.mac = fmt::format("02:72:62:{:02x}:00:{:02x}", rail, index);
            nic.address = fmt::format("10.77.{}.{}", rail, index + 1);
            nic.switch_port = fmt::format("h{}r{}", index, rail);
            nic.ifindex = kFirstNic + static_cast<int>(rail);
            nic.switch_ifindex = kFirstSwitchPort + static_cast<int>(index * kMaximumNics + rail);
            host.nics.push_back(std::move(nic));
        }
        hosts.push_back(std::move(host));
    }
    return hosts;
}

struct Lab::State {
    RunningLab running;
    std::vector<LabHost> hosts;
    bool is_down = false;
};

Lab::Lab(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lab::Lab(Lab&&) noexcept = default;

Lab& Lab::operator=(Lab&& other) noexcept {
    if (this != &other) {
        if (state_ != nullptr) {
            static_cast<void>(down(Deadline::after(kDestructorBudget)));
        }
        state_ = std::move(other.state_);
    }
    return *this;
}

Lab::~Lab() {
    if (state_ != nullptr) {
        static_cast<void>(down(Deadline::after(kDestructorBudget)));
    }
}

Result<Lab> Lab::up(const LabSpec& spec) {
    auto running = start_lab(spec, false);
    if (!running) {
        return fail(std::move(running.error()));
    }
    return Lab(std::make_unique<State>(State{std::move(*running), hosts_of(spec), false}));
}

const LabSpec& Lab::spec() const {
    return state_->running.record.spec;
}

const std::vector<LabHost>& Lab::hosts() const {
    return state_->hosts;
}

int Lab::host_netns_fd(unsigned host) const {
    return state_->running.fabric.host_netns.at(host).get();
}

int Lab::switch_netns_fd() const {
    return state_->running.fabric.switch_netns.get();
}

pid_t Lab::keeper_pid() const {
    return state_->running.record.keeper.pid;
}

Result<void> Lab::down(Deadline deadline) {
    if (state_->is_down) {
        return {};
    }
    const LabRecord& record = state_->running.record;
    // Emptied before our descriptors go, while the namespaces' numbers are certainly this lab's.
    auto emptied = end_processes_inside(record.namespaces, NamespaceProof::kInode, deadline.left() / 4, deadline);
    for (auto& netns : state_->running.fabric.host_netns) {
        netns.reset();
    }
    auto ended = end_keeper(record.keeper, deadline);
    auto gone = wait_until_ports_gone_in(state_->running.fabric.switch_netns.get(), deadline);
    state_->running.fabric.switch_netns.reset();
    state_->is_down = true;
    if (!emptied) {
        return emptied;
    }
    if (!ended) {
        return fail(std::move(ended.error()));
    }
    if (gone) {
        if (auto folder = StateFolder::open()) {
            forget(*folder, record);
        }
    }
    return gone;
}

Result<LabSummary> lab_up_kept(const LabSpec& spec) {
    auto running = start_lab(spec, true);
    if (!running) {
        return fail(std::move(running.error()));
    }
    auto summary = summarise(running->record);
    summary.has_record = true;
    return summary;
}

Result<void> lab_down(std::string_view name, Deadline deadline) {
    auto folder = StateFolder::open();
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    bool found = false;
    for (const auto& [record, has_record] : find_labs(*folder)) {
        if (record.spec.name != name) {
            continue;
        }
        found = true;
        if (auto down = take_down_and_forget(*folder, record, has_record, deadline); !down) {
            return down;
        }
    }
    if (!found) {
        return fail(Error(ErrorKind::kInput, fmt::format("there is no lab {}", name))
                        .with("state_folder", state_folder())
                        .advise("railbreak lab list shows the labs of this user"));
    }
    return {};
}

Result<std::vector<LabDownOutcome>> lab_down_all(Deadline deadline) {
    auto folder = StateFolder::open();
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    std::vector<LabDownOutcome> outcomes;
    for (const auto& [record, has_record] : find_labs(*folder)) {
        outcomes.push_back({record.spec.name, take_down_and_forget(*folder, record, has_record, deadline)});
    }
    return outcomes;
}

Result<std::vector<LabDownOutcome>> lab_clear_orphans(Deadline deadline, const std::string& state_folder) {
    auto folder = state_folder.empty() ? StateFolder::open() : StateFolder::open(state_folder);
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    folder->remove_abandoned_drafts();
    std::vector<LabDownOutcome> outcomes;
    for (const auto& [record, has_record] : find_labs(*folder)) {
        if (!record.kept && !is_up(record) && !is_alive(record.owner)) {
            outcomes.push_back({record.spec.name, take_down_and_forget(*folder, record, has_record, deadline)});
        }
    }
    return outcomes;
}

Result<std::vector<LabSummary>> lab_list() {
    auto folder = StateFolder::open();
    if (!folder) {
        return fail(std::move(folder.error()));
    }
    if (folder->lock(Deadline::after(kClearBudget))) {
        clear_abandoned(*folder);
        folder->unlock();
    }
    std::vector<LabSummary> summaries;
    for (const auto& [record, has_record] : find_labs(*folder)) {
        summaries.push_back(summarise(record));
        summaries.back().has_record = has_record;
    }
    return summaries;
}

} // namespace railbreak::lab
