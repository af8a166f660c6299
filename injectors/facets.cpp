#include "injectors/facets.hpp"

namespace railbreak::injectors {

const Facet& facet(FacetKind kind) {
    switch (kind) {
    case FacetKind::kSendRate: return send_rate_facet();
    case FacetKind::kReceive: return receive_facet();
    case FacetKind::kSendPackets: return send_packets_facet();
    case FacetKind::kDrops: return drops_facet();
    case FacetKind::kReroute: return reroute_facet();
    case FacetKind::kLink: return link_facet();
    case FacetKind::kCpu: return cpu_facet();
    case FacetKind::kStop: return stop_facet();
    case FacetKind::kKill: return kill_facet();
    case FacetKind::kDisk: return disk_facet();
    case FacetKind::kPortSpeed: return port_speed_facet();
    case FacetKind::kClassRate: return class_rate_facet();
    case FacetKind::kVfRate: return vf_rate_facet();
    case FacetKind::kDevlinkRate: return devlink_rate_facet();
    case FacetKind::kIbPort: return ib_port_facet();
    case FacetKind::kPcieSpeed: return pcie_speed_facet();
    case FacetKind::kPciPresence: return pci_presence_facet();
    }
    return link_facet();
}

std::vector<FacetKind> facets_of(const FaultRequest& request) {
    const bool send = request.direction != Direction::kReceive;
    const bool receive = request.direction != Direction::kSend;
    std::vector<FacetKind> kinds;
    switch (request.kind) {
    case FaultKind::kCap:
        if (send) {
            kinds.push_back(FacetKind::kSendRate);
        }
        if (receive) {
            kinds.push_back(FacetKind::kReceive);
        }
        return kinds;
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
        if (receive) {
            kinds.push_back(FacetKind::kReceive);
        }
        if (send) {
            kinds.push_back(FacetKind::kSendPackets);
        }
        return kinds;
    case FaultKind::kBlackhole:
    case FaultKind::kPartition: return {FacetKind::kDrops};
    case FaultKind::kReroute: return {FacetKind::kReroute};
    case FaultKind::kLinkDown:
    case FaultKind::kMtu: return {FacetKind::kLink};
    case FaultKind::kCpu: return {FacetKind::kCpu};
    case FaultKind::kPause: return {FacetKind::kStop};
    case FaultKind::kKill: return {FacetKind::kKill};
    case FaultKind::kDiskFull: return {FacetKind::kDisk};
    case FaultKind::kPortSpeed: return {FacetKind::kPortSpeed};
    case FaultKind::kClassRate: return {FacetKind::kClassRate};
    case FaultKind::kVfRate: return {FacetKind::kVfRate};
    case FaultKind::kDevlinkRate: return {FacetKind::kDevlinkRate};
    case FaultKind::kIbRate:
    case FaultKind::kIbDown: return {FacetKind::kIbPort};
    case FaultKind::kPcieSpeed: return {FacetKind::kPcieSpeed};
    case FaultKind::kPciRemove: return {FacetKind::kPciPresence};
    }
    return kinds;
}

std::string_view realism_of(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap:
    case FaultKind::kDelay:
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate:
    case FaultKind::kReorder:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kPortSpeed:
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kIbRate:
    case FaultKind::kIbDown:
    case FaultKind::kPcieSpeed:
    case FaultKind::kPciRemove: return "port";
    case FaultKind::kLinkDown:
    case FaultKind::kMtu:
    case FaultKind::kReroute: return "driver";
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu:
    case FaultKind::kDiskFull: return "process";
    }
    return "pretended";
}

namespace {

std::string_view hardware_path_of(FaultKind kind) {
    if (kind == FaultKind::kClassRate) {
        return "what the port sends, RoCE included";
    }
    if (kind == FaultKind::kVfRate || kind == FaultKind::kDevlinkRate) {
        return "what the function sends, RoCE included";
    }
    if (kind == FaultKind::kIbRate || kind == FaultKind::kIbDown) {
        return "all traffic of the InfiniBand port";
    }
    if (kind == FaultKind::kPcieSpeed || kind == FaultKind::kPciRemove) {
        return "all traffic of the PCI device, RDMA included";
    }
    return "all traffic of the port, RoCE included";
}

} // namespace

std::string_view data_path_of(FaultKind kind) {
    switch (target_kind(kind)) {
    case TargetKind::kNic: return in_hardware(kind) ? hardware_path_of(kind) : "kernel TCP";
    case TargetKind::kProcess: return "every path of the process";
    case TargetKind::kFolder: return "none";
    }
    return "none";
}

} // namespace railbreak::injectors
