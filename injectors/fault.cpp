#include "injectors/fault.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "injectors/wire.hpp"

namespace railbreak::injectors {

std::string_view to_string(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "cap";
    case FaultKind::kLinkDown: return "link_down";
    case FaultKind::kDelay: return "delay";
    case FaultKind::kLoss: return "loss";
    case FaultKind::kCorrupt: return "corrupt";
    case FaultKind::kDuplicate: return "duplicate";
    case FaultKind::kReorder: return "reorder";
    case FaultKind::kBlackhole: return "blackhole";
    case FaultKind::kPartition: return "partition";
    case FaultKind::kMtu: return "mtu";
    case FaultKind::kReroute: return "reroute";
    case FaultKind::kPause: return "pause";
    case FaultKind::kKill: return "kill";
    case FaultKind::kCpu: return "cpu";
    case FaultKind::kDiskFull: return "disk_full";
    case FaultKind::kPortSpeed: return "port_speed";
    case FaultKind::kClassRate: return "dcb_class_rate";
    case FaultKind::kVfRate: return "vf_rate";
    case FaultKind::kDevlinkRate: return "devlink_rate";
    case FaultKind::kIbRate: return "ib_rate";
    case FaultKind::kIbDown: return "ib_down";
    case FaultKind::kPcieSpeed: return "pcie_speed";
    case FaultKind::kPciRemove: return "pci_remove";
    }
    return "?";
}

std::optional<FaultKind> kind_made_by(FaultKind kind, std::string_view mechanism) {
    struct Way {
        FaultKind asked;
        std::string_view mechanism;
        FaultKind made;
    };
    static constexpr std::array kWays{Way{FaultKind::kCap, "tc", FaultKind::kCap},
                                      Way{FaultKind::kCap, "link_modes", FaultKind::kPortSpeed},
                                      Way{FaultKind::kCap, "dcb_class_rate", FaultKind::kClassRate},
                                      Way{FaultKind::kCap, "vf_rate", FaultKind::kVfRate},
                                      Way{FaultKind::kCap, "devlink_rate", FaultKind::kDevlinkRate},
                                      Way{FaultKind::kCap, "ib_port", FaultKind::kIbRate},
                                      Way{FaultKind::kCap, "pcie_speed", FaultKind::kPcieSpeed},
                                      Way{FaultKind::kLinkDown, "admin_down", FaultKind::kLinkDown},
                                      Way{FaultKind::kLinkDown, "ib_port", FaultKind::kIbDown},
                                      Way{FaultKind::kLinkDown, "pci_remove", FaultKind::kPciRemove}};
    const auto* const found = std::find_if(
        kWays.begin(), kWays.end(), [&](const Way& way) { return way.asked == kind && way.mechanism == mechanism; });
    return found == kWays.end() ? std::nullopt : std::optional(found->made);
}

TargetKind target_kind(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap:
    case FaultKind::kLinkDown:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kMtu:
    case FaultKind::kReroute:
    case FaultKind::kPortSpeed:
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kIbRate:
    case FaultKind::kIbDown:
    case FaultKind::kPcieSpeed:
    case FaultKind::kPciRemove: return TargetKind::kNic;
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu: return TargetKind::kProcess;
    case FaultKind::kDiskFull: return TargetKind::kFolder;
    }
    return TargetKind::kNic;
}

bool in_hardware(FaultKind kind) {
    return kind >= FaultKind::kPortSpeed;
}

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kSend: return "send";
    case Direction::kReceive: return "receive";
    case Direction::kBoth: return "both";
    }
    return "?";
}

std::string_view to_string(FacetKind kind) {
    switch (kind) {
    case FacetKind::kSendRate: return "send_rate";
    case FacetKind::kReceive: return "receive";
    case FacetKind::kSendPackets: return "send_packets";
    case FacetKind::kDrops: return "drops";
    case FacetKind::kReroute: return "reroute";
    case FacetKind::kLink: return "link";
    case FacetKind::kCpu: return "cpu";
    case FacetKind::kStop: return "stop";
    case FacetKind::kKill: return "kill";
    case FacetKind::kDisk: return "disk";
    case FacetKind::kPortSpeed: return "port_speed";
    case FacetKind::kClassRate: return "dcb_class_rate";
    case FacetKind::kVfRate: return "vf_rate";
    case FacetKind::kDevlinkRate: return "devlink_rate";
    case FacetKind::kIbPort: return "ib_port";
    case FacetKind::kPcieSpeed: return "pcie_speed";
    case FacetKind::kPciPresence: return "pci_presence";
    }
    return "?";
}

bool acts(const PacketTreatment& treatment) {
    return treatment != PacketTreatment{};
}

bool same_device(const DeviceIdentity& a, const DeviceIdentity& b) {
    // An index is not given twice while a namespace lives; name and address may be changed by anyone.
    return a.ifindex == b.ifindex && a.netns_inode == b.netns_inode && a.netns_cookie == b.netns_cookie;
}

bool same_target(const FaultTarget& a, const FaultTarget& b) {
    if (a.kind != b.kind) {
        return false;
    }
    switch (a.kind) {
    case TargetKind::kNic: return same_device(a.device, b.device);
    case TargetKind::kProcess:
        return a.pid_namespace == b.pid_namespace && a.process.pid == b.process.pid &&
               a.process.start_ticks == b.process.start_ticks;
    case TargetKind::kFolder: return a.device_id == b.device_id;
    }
    return false;
}

std::string to_string(const FaultTarget& target) {
    switch (target.kind) {
    case TargetKind::kNic: return target.device.name;
    case TargetKind::kProcess: return fmt::format("process {} ({})", target.process.pid, target.process.command);
    case TargetKind::kFolder: return target.folder;
    }
    return "?";
}

namespace {

void put_treatment(Encoder& out, const PacketTreatment& packets) {
    out.put(packets.delay.count());
    out.put(packets.jitter.count());
    out.put(packets.loss);
    out.put(static_cast<std::uint8_t>(packets.bursts.has_value()));
    const GilbertElliott bursts = packets.bursts.value_or(GilbertElliott{});
    for (const Millionths part : {bursts.good_to_bad, bursts.bad_to_good, bursts.loss_in_bad, bursts.loss_in_good,
                                  packets.corrupt, packets.duplicate, packets.reorder}) {
        out.put(part);
    }
}

PacketTreatment get_treatment(Decoder& in) {
    PacketTreatment packets;
    packets.delay = Nanoseconds(in.get<std::int64_t>());
    packets.jitter = Nanoseconds(in.get<std::int64_t>());
    packets.loss = in.get<Millionths>();
    const bool has_bursts = in.get<std::uint8_t>() != 0;
    GilbertElliott bursts;
    for (Millionths* part : {&bursts.good_to_bad, &bursts.bad_to_good, &bursts.loss_in_bad, &bursts.loss_in_good,
                             &packets.corrupt, &packets.duplicate, &packets.reorder}) {
        *part = in.get<Millionths>();
    }
    if (has_bursts) {
        packets.bursts = bursts;
    }
    return packets;
}

void put_request(Encoder& out, const FaultRequest& request) {
    out.put(request.id);
    out.put(static_cast<std::uint8_t>(request.kind));
    out.put_string(request.nic);
    out.put(static_cast<std::uint8_t>(request.direction));
    out.put(request.rate.bits_per_s());
    put_treatment(out, request.packets);
    out.put_strings(request.peers);
    out.put(request.mtu_bytes);
    out.put_string(request.via_nic);
    out.put(request.pid);
    out.put(request.cpu);
    out.put_string(request.folder);
    out.put(request.leave.bytes());
}

/// False when an enumerator is none.
bool get_request(Decoder& in, FaultRequest& request) {
    request.id = in.get<std::int32_t>();
    const auto kind = in.get<std::uint8_t>();
    request.nic = in.get_string();
    const auto direction = in.get<std::uint8_t>();
    request.rate = BitRate::bits_per_s(in.get<std::uint64_t>());
    request.packets = get_treatment(in);
    request.peers = in.get_strings();
    request.mtu_bytes = in.get<std::uint32_t>();
    request.via_nic = in.get_string();
    request.pid = in.get<std::int32_t>();
    request.cpu = in.get<Millionths>();
    request.folder = in.get_string();
    request.leave = ByteCount::bytes(in.get<std::uint64_t>());
    request.kind = static_cast<FaultKind>(kind);
    request.direction = static_cast<Direction>(direction);
    return kind < kFaultKinds.size() && direction < kDirections.size();
}

void put_target(Encoder& out, const FaultTarget& target) {
    out.put(static_cast<std::uint8_t>(target.kind));
    out.put_string(target.device.name);
    out.put(target.device.ifindex);
    out.put_string(target.device.mac);
    out.put_string(target.device.permanent_mac);
    out.put(target.device.netns_inode);
    out.put(target.device.netns_cookie);
    out.put(static_cast<std::uint8_t>(target.device.netns_user.has_value()));
    out.put(target.device.netns_user.value_or(0));
    out.put(target.process.pid);
    out.put(target.process.start_ticks);
    out.put_string(target.process.command);
    out.put(target.pid_namespace);
    out.put_string(target.folder);
    out.put(target.device_id);
}

bool get_target(Decoder& in, FaultTarget& target) {
    const auto kind = in.get<std::uint8_t>();
    target.kind = static_cast<TargetKind>(kind);
    target.device.name = in.get_string();
    target.device.ifindex = in.get<std::int32_t>();
    target.device.mac = in.get_string();
    target.device.permanent_mac = in.get_string();
    target.device.netns_inode = in.get<std::uint64_t>();
    target.device.netns_cookie = in.get<std::uint64_t>();
    const bool has_user = in.get<std::uint8_t>() != 0;
    const auto user = in.get<std::uint32_t>();
    target.device.netns_user = has_user ? std::optional(user) : std::nullopt;
    target.process.pid = in.get<std::int32_t>();
    target.process.start_ticks = in.get<std::uint64_t>();
    target.process.command = in.get_string();
    target.pid_namespace = in.get<std::uint64_t>();
    target.folder = in.get_string();
    target.device_id = in.get<std::uint64_t>();
    return kind <= static_cast<std::uint8_t>(TargetKind::kFolder);
}

} // namespace

std::string encode_entry(const JournalEntry& entry) {
    Encoder out;
    put_request(out, entry.request);
    put_target(out, entry.target);
    out.put_string(entry.owner);
    out.put_string(entry.boot_id);
    out.put(entry.lease_end_boottime.count());
    out.put(static_cast<std::uint32_t>(entry.former.size()));
    for (const FormerPart& part : entry.former) {
        out.put(static_cast<std::uint8_t>(part.facet));
        out.put_string(part.state);
    }
    return out.take();
}

Result<JournalEntry> decode_entry(std::string_view bytes) {
    Decoder in(bytes);
    JournalEntry entry;
    bool known = get_request(in, entry.request);
    known = get_target(in, entry.target) && known;
    entry.owner = in.get_string();
    entry.boot_id = in.get_string();
    entry.lease_end_boottime = Nanoseconds(in.get<std::int64_t>());
    const auto parts = in.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < parts && in.ok(); ++i) {
        const auto facet = in.get<std::uint8_t>();
        known = known && facet < kFacetKinds.size();
        entry.former.push_back({static_cast<FacetKind>(facet), in.get_string()});
    }
    if (!known || !in.finished()) {
        return fail(ErrorKind::kInput, "the journal entry is not one that this version wrote");
    }
    return entry;
}

} // namespace railbreak::injectors
