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
    case FaultKind::kPortSpeed: return "port";
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

std::string_view data_path_of(FaultKind kind) {
    switch (target_kind(kind)) {
    case TargetKind::kNic:
        return kind == FaultKind::kPortSpeed ? "all traffic of the port, RoCE included" : "kernel TCP";
    case TargetKind::kProcess: return "every path of the process";
    case TargetKind::kFolder: return "none";
    }
    return "none";
}

} // namespace railbreak::injectors
