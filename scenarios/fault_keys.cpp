#include "scenarios/fault_keys.hpp"

#include <array>

namespace railbreak::scenarios {

namespace {

constexpr bool kRequired = true;

constexpr std::array<std::string_view, 18> kParticular{
    "direction",   "rate",   "fraction", "period", "duty", "down",  "count", "jitter", "delay",
    "probability", "bursts", "peers",    "mtu",    "via",  "share", "by",    "leave",  "mechanism"};

constexpr std::array kCap{KeySpec{"direction"}, KeySpec{"rate"}, KeySpec{"fraction"}, KeySpec{"mechanism"}};
constexpr std::array kLinkDown{KeySpec{"mechanism"}};
constexpr std::array kFlap{KeySpec{"period", kRequired}, KeySpec{"duty"}, KeySpec{"down"}, KeySpec{"count", kRequired},
                           KeySpec{"jitter"}};
constexpr std::array kDelay{KeySpec{"direction"}, KeySpec{"delay", kRequired}, KeySpec{"jitter"}};
constexpr std::array kLoss{KeySpec{"direction"}, KeySpec{"probability"}, KeySpec{"bursts"}};
constexpr std::array kProbable{KeySpec{"direction"}, KeySpec{"probability", kRequired}};
constexpr std::array kReorder{KeySpec{"direction"}, KeySpec{"probability", kRequired}, KeySpec{"delay", kRequired}};
constexpr std::array kBlackhole{KeySpec{"direction"}};
constexpr std::array kPartition{KeySpec{"direction"}, KeySpec{"peers", kRequired}};
constexpr std::array kMtu{KeySpec{"mtu", kRequired}};
constexpr std::array kReroute{KeySpec{"via", kRequired}};
constexpr std::array kCpu{KeySpec{"share", kRequired}};
constexpr std::array kLate{KeySpec{"by", kRequired}};
constexpr std::array kDiskFull{KeySpec{"leave", kRequired}};

} // namespace

std::span<const std::string_view> particular_fault_keys() {
    return kParticular;
}

std::span<const KeySpec> fault_keys(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return kCap;
    case FaultKind::kLinkDown: return kLinkDown;
    case FaultKind::kFlap: return kFlap;
    case FaultKind::kDelay: return kDelay;
    case FaultKind::kLoss: return kLoss;
    case FaultKind::kCorrupt:
    case FaultKind::kDuplicate: return kProbable;
    case FaultKind::kReorder: return kReorder;
    case FaultKind::kBlackhole: return kBlackhole;
    case FaultKind::kPartition: return kPartition;
    case FaultKind::kMtu: return kMtu;
    case FaultKind::kReroute: return kReroute;
    case FaultKind::kCpu: return kCpu;
    case FaultKind::kLate: return kLate;
    case FaultKind::kDiskFull: return kDiskFull;
    case FaultKind::kPause:
    case FaultKind::kKill: return {};
    }
    return {};
}

std::string_view with_article(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "a cap";
    case FaultKind::kLinkDown: return "a link_down";
    case FaultKind::kFlap: return "a flap";
    case FaultKind::kDelay: return "a delay";
    case FaultKind::kLoss: return "a loss";
    case FaultKind::kCorrupt: return "a corrupt fault";
    case FaultKind::kDuplicate: return "a duplicate fault";
    case FaultKind::kReorder: return "a reorder fault";
    case FaultKind::kBlackhole: return "a blackhole";
    case FaultKind::kPartition: return "a partition";
    case FaultKind::kMtu: return "an mtu fault";
    case FaultKind::kReroute: return "a reroute";
    case FaultKind::kPause: return "a pause";
    case FaultKind::kKill: return "a kill";
    case FaultKind::kCpu: return "a cpu fault";
    case FaultKind::kLate: return "a late fault";
    case FaultKind::kDiskFull: return "a disk_full";
    }
    return "a fault";
}

} // namespace railbreak::scenarios
