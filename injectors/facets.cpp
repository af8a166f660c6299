#include "injectors/facets.hpp"

#include <fmt/format.h>

namespace railbreak::injectors {

namespace {

/// A facet that this build cannot change.
class Missing final : public Facet {
public:
    explicit Missing(FacetKind kind) : kind_(kind) {}
    FacetKind kind() const override { return kind_; }
    Result<std::string> plan(HostOps&, const FacetContext&, const FaultRequest& request) const override {
        return fail(ErrorKind::kRefused, fmt::format("this build cannot make the fault {}", to_string(request.kind)));
    }
    Result<void> go_to(HostOps&, const FacetContext&, const std::string&, const WantedState&) const override {
        return {};
    }
    Result<Readback> observe(HostOps&, const FacetContext&, const std::string&, const WantedState&) const override {
        return Readback();
    }
    Result<Notes> verify(HostOps&, const FacetContext&, const std::string&, const WantedState&) const override {
        return Notes();
    }
    Result<void> target_gone(HostOps&, const FacetContext&, const std::string&) const override { return {}; }
    Steps describe(const FacetContext&, const std::string&, const WantedState&) const override { return {}; }
    std::string mechanism(const std::string&, const FaultRequest&) const override { return {}; }
    Result<void> check_former(const std::string&) const override { return {}; }
    bool renews(const std::string&) const override { return false; }

private:
    FacetKind kind_;
};

} // namespace

const Facet& facet(FacetKind kind) {
    static const Missing reroute(FacetKind::kReroute);
    switch (kind) {
    case FacetKind::kSendRate: return send_rate_facet();
    case FacetKind::kReceive: return receive_facet();
    case FacetKind::kSendPackets: return send_packets_facet();
    case FacetKind::kDrops: return drops_facet();
    case FacetKind::kReroute: return reroute;
    case FacetKind::kLink: return link_facet();
    case FacetKind::kCpu: return cpu_facet();
    case FacetKind::kStop: return stop_facet();
    case FacetKind::kKill: return kill_facet();
    case FacetKind::kDisk: return disk_facet();
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
    case FaultKind::kPartition: return "port";
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
    case TargetKind::kNic: return "kernel TCP";
    case TargetKind::kProcess: return "every path of the process";
    case TargetKind::kFolder: return "none";
    }
    return "none";
}

} // namespace railbreak::injectors
