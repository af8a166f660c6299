#include "scenarios/fault_model.hpp"

namespace railbreak::scenarios {

namespace {

bool is_off(FaultKind kind, const FaultStrength& strength) {
    switch (kind) {
    case FaultKind::kLoss:
        return strength.bursts ? strength.bursts->loss_in_good == 0 &&
                                     (strength.bursts->good_to_bad == 0 || strength.bursts->loss_in_bad == 0)
                               : strength.probability == 0;
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder: return strength.probability == 0;
    case FaultKind::kDelay: return strength.delay == Nanoseconds::zero();
    case FaultKind::kLate: return strength.late == Nanoseconds::zero();
    case FaultKind::kCap:
    case FaultKind::kLinkDown:
    case FaultKind::kFlap:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kMtu:
    case FaultKind::kReroute:
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu:
    case FaultKind::kDiskFull: return false;
    }
    return false;
}

} // namespace

std::string_view to_string(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "cap";
    case FaultKind::kLinkDown: return "link_down";
    case FaultKind::kFlap: return "flap";
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
    case FaultKind::kLate: return "late";
    case FaultKind::kDiskFull: return "disk_full";
    }
    return "unknown";
}

TargetKind target_kind(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap:
    case FaultKind::kLinkDown:
    case FaultKind::kFlap:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kMtu:
    case FaultKind::kReroute: return TargetKind::kNic;
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu:
    case FaultKind::kLate: return TargetKind::kRank;
    case FaultKind::kDiskFull: return TargetKind::kRecorder;
    }
    return TargetKind::kNic;
}

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kSend: return "send";
    case Direction::kReceive: return "receive";
    case Direction::kBoth: return "both";
    }
    return "unknown";
}

std::string_view to_string(Mechanism mechanism) {
    switch (mechanism) {
    case Mechanism::kTrafficControl: return "tc";
    case Mechanism::kAdminDown: return "admin_down";
    case Mechanism::kLinkModes: return "link_modes";
    case Mechanism::kClassRate: return "dcb_class_rate";
    case Mechanism::kVfRate: return "vf_rate";
    case Mechanism::kDevlinkRate: return "devlink_rate";
    case Mechanism::kIbPort: return "ib_port";
    case Mechanism::kPcieSpeed: return "pcie_speed";
    case Mechanism::kPciRemove: return "pci_remove";
    }
    return "unknown";
}

bool can_slow(Mechanism mechanism, Direction direction) {
    switch (mechanism) {
    case Mechanism::kTrafficControl: return true;
    case Mechanism::kClassRate:
    case Mechanism::kVfRate:
    case Mechanism::kDevlinkRate: return direction == Direction::kSend; // a NIC schedules what it sends
    case Mechanism::kLinkModes:
    case Mechanism::kIbPort:
    case Mechanism::kPcieSpeed: return direction == Direction::kBoth; // a link has one speed
    case Mechanism::kAdminDown:
    case Mechanism::kPciRemove: return false;
    }
    return false;
}

bool share_a_side(Direction a, Direction b) {
    return a == b || a == Direction::kBoth || b == Direction::kBoth;
}

bool has_direction(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition: return true;
    case FaultKind::kLinkDown:
    case FaultKind::kFlap:
    case FaultKind::kMtu:
    case FaultKind::kReroute:
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu:
    case FaultKind::kLate:
    case FaultKind::kDiskFull: return false;
    }
    return false;
}

bool ends_by_itself(FaultKind kind) {
    return kind == FaultKind::kKill || kind == FaultKind::kLate;
}

bool is_off(const PlannedFault& fault) {
    return is_off(fault.kind, fault.strength);
}

bool is_off(const FaultSpec& fault) {
    return is_off(fault.kind, fault.strength);
}

bool stops_traffic(FaultKind kind, const FaultStrength& strength) {
    switch (kind) {
    case FaultKind::kLinkDown:
    case FaultKind::kFlap:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kPause:
    case FaultKind::kKill: return true;
    case FaultKind::kLoss:
        return strength.bursts ? strength.bursts->loss_in_good == kMillion : strength.probability == kMillion;
    case FaultKind::kCorrupt: return strength.probability == kMillion; // a receiver drops what arrives damaged
    case FaultKind::kCap:
    case FaultKind::kDelay:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kMtu:
    case FaultKind::kReroute:
    case FaultKind::kCpu:
    case FaultKind::kLate:
    case FaultKind::kDiskFull: return false;
    }
    return false;
}

} // namespace railbreak::scenarios
