#include "injectors/survey.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <unistd.h>

#include "injectors/facet.hpp"
#include "injectors/preflight.hpp"

namespace railbreak::injectors {

namespace {

/// A small fault of that kind, good enough for planning.
FaultRequest example(FaultKind kind, const std::string& nic, const std::string& other_nic) {
    FaultRequest request{.kind = kind, .nic = nic};
    request.rate = BitRate::bits_per_s(1'000'000);
    request.via_nic = other_nic;
    request.peers = {"192.0.2.1"};
    request.mtu_bytes = 1280;
    request.cpu = kMillion / 2;
    switch (kind) {
    case FaultKind::kDelay: request.packets.delay = std::chrono::milliseconds(1); break;
    case FaultKind::kLoss: request.packets.loss = 1'000; break;
    case FaultKind::kCorrupt: request.packets.corrupt = 1'000; break;
    case FaultKind::kDuplicate: request.packets.duplicate = 1'000; break;
    case FaultKind::kReorder:
        request.packets.delay = std::chrono::milliseconds(1);
        request.packets.reorder = 1'000;
        break;
    case FaultKind::kCap:
    case FaultKind::kLinkDown:
    case FaultKind::kBlackhole:
    case FaultKind::kPartition:
    case FaultKind::kMtu:
    case FaultKind::kReroute:
    case FaultKind::kPause:
    case FaultKind::kKill:
    case FaultKind::kCpu:
    case FaultKind::kDiskFull:
    case FaultKind::kPortSpeed:
    case FaultKind::kClassRate:
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
    case FaultKind::kIbRate:
    case FaultKind::kIbDown:
    case FaultKind::kPcieSpeed:
    case FaultKind::kPciRemove: break;
    }
    return request;
}

/// Plans every facet of the request on the target.
SurveyedKind plan_kind(HostOps& ops, const FaultRequest& request, const Result<FaultTarget>& target) {
    SurveyedKind found{.kind = request.kind,
                       .realism = std::string(realism_of(request.kind)),
                       .data_path = std::string(data_path_of(request.kind))};
    const auto refuse = [&](const Error& error) {
        found.mechanism.clear();
        found.reason = error.message() + (error.advice().empty() ? "" : "; " + error.advice());
        return found;
    };
    if (!target) {
        return refuse(target.error());
    }
    const std::string owner = "railbreak survey";
    std::vector<std::string> words;
    for (const FacetKind kind : facets_of(request)) {
        const auto former = facet(kind).plan(ops, {*target, owner, Nanoseconds(0)}, request);
        if (!former) {
            return refuse(former.error());
        }
        words.push_back(facet(kind).mechanism(*former, request));
    }
    found.mechanism = fmt::format("{}", fmt::join(words, " + "));
    return found;
}

/// An ifb carries nothing by itself: it stands behind a NIC, ours or somebody's.
bool is_no_nic(const LinkRecord& link) {
    return (link.flags & IFF_LOOPBACK) != 0 || link.kind == "ifb";
}

/// A NIC that could take over from `nic`, or nothing.
std::string other_than(const std::vector<LinkRecord>& links, const std::string& nic) {
    const auto found = std::find_if(links.begin(), links.end(), [&](const LinkRecord& each) {
        return each.name != nic && !is_no_nic(each) && (each.flags & IFF_RUNNING) != 0;
    });
    return found == links.end() ? std::string() : found->name;
}

/// The lowest speed that the port can do.
BitRate slowest_of(HostOps& ops, const LinkRecord& link) {
    BitRate slowest;
    if (const auto modes = ops.link_modes(link.ifindex)) {
        for (const hardware::LinkMode& mode : modes->modes) {
            const BitRate speed = speed_of(mode);
            slowest = speed != BitRate() && (slowest == BitRate() || speed < slowest) ? speed : slowest;
        }
    }
    return slowest;
}

/// A rate that the mechanism can make, if there is one.
BitRate example_rate(HostOps& ops, FaultKind kind, const LinkRecord& link) {
    constexpr std::uint64_t kGiga = 1'000'000'000;
    if (kind == FaultKind::kPortSpeed) {
        return slowest_of(ops, link);
    }
    if (kind == FaultKind::kIbRate) {
        return BitRate::bits_per_s(5 * kGiga / 2); // one lane at the lowest speed
    }
    if (kind == FaultKind::kPcieSpeed) {
        return BitRate::bits_per_s(1'000 * kGiga); // whatever its next lower speed carries
    }
    return BitRate::bits_per_s(in_hardware(kind) ? kGiga : kGiga / 1'000);
}

Result<FaultTarget> this_process(HostOps& ops) {
    const auto found = ops.process(getpid());
    if (!found || !*found) {
        return found ? fail(ErrorKind::kHarness, "this process is not listed") : tl::unexpected(found.error());
    }
    FaultTarget target;
    target.kind = TargetKind::kProcess;
    target.process = (*found)->identity;
    return target;
}

SurveyedNic survey_nic(HostOps& ops, const std::vector<LinkRecord>& links, const LinkRecord& link,
                       std::span<const std::string> protected_nics, const std::string& journal_folder) {
    SurveyedNic nic{link, {}};
    const std::string other = other_than(links, link.name);
    for (const FaultKind kind : kFaultKinds) {
        if (target_kind(kind) != TargetKind::kNic) {
            continue;
        }
        FaultRequest request = example(kind, link.name, other);
        request.rate = example_rate(ops, kind, link);
        if (kind == FaultKind::kReroute && other.empty()) {
            nic.kinds.push_back({.kind = kind, .reason = "no other NIC with carrier could take over"});
            continue;
        }
        nic.kinds.push_back(plan_kind(ops, request, find_target(ops, request, protected_nics, journal_folder)));
    }
    return nic;
}

} // namespace

bool Survey::any_nic() const {
    return std::any_of(nics.begin(), nics.end(), [](const SurveyedNic& nic) {
        return std::any_of(nic.kinds.begin(), nic.kinds.end(),
                           [](const SurveyedKind& kind) { return kind.reason.empty(); });
    });
}

Result<Survey> survey_host(HostOps& ops, std::span<const std::string> protected_nics, const std::string& journal_folder,
                           const std::string& folder) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    Survey survey;
    if (auto features = ops.features()) {
        survey.features = std::move(*features);
    } else {
        survey.features_missing = features.error().message();
    }
    for (const LinkRecord& link : *links) {
        if (!is_no_nic(link)) {
            survey.nics.push_back(survey_nic(ops, *links, link, protected_nics, journal_folder));
        }
    }
    for (const FaultKind kind : kFaultKinds) {
        FaultRequest request = example(kind, {}, {});
        if (target_kind(kind) == TargetKind::kProcess) {
            // Only looked at: a fault on this process itself would be refused.
            survey.processes.push_back(plan_kind(ops, request, this_process(ops)));
        } else if (target_kind(kind) == TargetKind::kFolder) {
            request.folder = folder;
            survey.folders.push_back(
                plan_kind(ops, request, find_target(ops, request, protected_nics, journal_folder)));
        }
    }
    return survey;
}

std::string_view proof_of(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "read back; goodput of TCP flows measured in the lab; RDMA over Soft-RoCE in a guest";
    case FaultKind::kLinkDown: return "read back; carrier; addresses, routes and neighbours compared after undo";
    case FaultKind::kDelay:
    case FaultKind::kReorder: return "read back; with netem in a guest kernel";
    case FaultKind::kLoss:
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate: return "read back; packets counted on both sides";
    case FaultKind::kBlackhole:
    case FaultKind::kPartition: return "read back; packets counted on both sides, each direction by itself";
    case FaultKind::kMtu: return "read back; addresses compared after undo";
    case FaultKind::kReroute: return "read back; bytes of both NICs while a flow runs";
    case FaultKind::kPause: return "state of every thread; a counting process stands still";
    case FaultKind::kKill: return "the process is gone";
    case FaultKind::kCpu: return "read back; CPU time that the process got";
    case FaultKind::kDiskFull: return "room read back; a write fails";
    case FaultKind::kPortSpeed:
        return "modes read back; its whole course on an emulated e1000e, whose speed is pretended";
    case FaultKind::kClassRate:
        return "read back; messages against recorded answers; its whole course on a pretended NIC";
    case FaultKind::kVfRate:
    case FaultKind::kDevlinkRate:
        return "read back; messages against recorded answers; its whole course on a pretended function";
    case FaultKind::kIbRate:
    case FaultKind::kIbDown: return "read back; its whole course on a simulated fabric, whose training is pretended";
    case FaultKind::kPcieSpeed: return "read back; its whole course on a tree of files";
    case FaultKind::kPciRemove:
        return "gone from the bus; its whole course on an emulated e1000e, with all that the interface had";
    }
    return "";
}

std::string_view unproven_of(FaultKind kind) {
    if (kind < FaultKind::kPortSpeed) {
        return "";
    }
    static constexpr std::array<std::string_view, 8> kNeeds{
        "needs a port and a partner that train at a lower speed",
        "needs a NIC of mlx4, mlx5 or mlxsw that keeps to the rate, RoCE included",
        "needs a virtual function whose driver keeps to the rate",
        "needs a function in switchdev mode whose driver keeps to the rate",
        "needs an InfiniBand port that trains anew, and a subnet manager that allows it",
        "needs an InfiniBand port that can be enabled again from its own host",
        "needs a PCIe port that trains at a lower speed",
        "needs a NIC of a real cluster: settings of its driver beyond those of the link are not put back"};
    return kNeeds.at(static_cast<std::size_t>(kind) - static_cast<std::size_t>(FaultKind::kPortSpeed));
}

} // namespace railbreak::injectors
