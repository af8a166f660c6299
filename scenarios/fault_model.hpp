// Faults as a scenario says them (FaultSpec) and as they will be made (PlannedFault: every choice made).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/rational.hpp"
#include "base/units.hpp"

namespace railbreak::scenarios {

/// Kinds of fault that a scenario may name.
enum class FaultKind : std::uint8_t {
    kCap,       ///< the NIC's rate is limited
    kLinkDown,  ///< the NIC has no link
    kFlap,      ///< the NIC's link goes down and comes back several times; the plan holds each time as a link_down
    kDelay,     ///< packets are held back
    kLoss,      ///< packets are lost
    kCorrupt,   ///< a bit of a packet is turned over
    kDuplicate, ///< packets arrive twice
    kReorder,   ///< packets overtake others
    kBlackhole, ///< nothing passes the NIC, and nobody is told
    kPartition, ///< nothing passes between the NIC and some hosts, and nobody is told
    kMtu,       ///< the NIC takes only smaller packets
    kReroute,   ///< what the NIC's addresses send leaves through another NIC of the host
    kPause,     ///< a rank stands still
    kKill,      ///< a rank is killed
    kCpu,       ///< a rank gets a part of one CPU's time
    kLate,      ///< a rank begins an iteration later than the others
    kDiskFull,  ///< the file system of the run's database has no room left
};
/// Every FaultKind.
inline constexpr std::array kFaultKinds{
    FaultKind::kCap,     FaultKind::kLinkDown,  FaultKind::kFlap,    FaultKind::kDelay,     FaultKind::kLoss,
    FaultKind::kCorrupt, FaultKind::kDuplicate, FaultKind::kReorder, FaultKind::kBlackhole, FaultKind::kPartition,
    FaultKind::kMtu,     FaultKind::kReroute,   FaultKind::kPause,   FaultKind::kKill,      FaultKind::kCpu,
    FaultKind::kLate,    FaultKind::kDiskFull};
/// "cap", "link_down", "flap", ...
[[nodiscard]] std::string_view to_string(FaultKind kind);

/// What a fault acts on.
enum class TargetKind : std::uint8_t { kNic, kRank, kRecorder };
[[nodiscard]] TargetKind target_kind(FaultKind kind);

/// Which side of a port a fault acts on, seen from the host.
enum class Direction : std::uint8_t { kSend, kReceive, kBoth };
/// Every Direction.
inline constexpr std::array kDirections{Direction::kSend, Direction::kReceive, Direction::kBoth};
/// "send", "receive", "both".
[[nodiscard]] std::string_view to_string(Direction direction);
/// Whether both act on a common side.
[[nodiscard]] bool share_a_side(Direction a, Direction b);

/// How a cap or a link_down is made. All but the first two are the hardware's: they act on all traffic, RDMA included,
/// and need a NIC that can.
enum class Mechanism : std::uint8_t {
    kTrafficControl, ///< of a cap, the usual: the kernel's queues; acts on kernel traffic
    kAdminDown,      ///< of a link_down, the usual
    kLinkModes,      ///< the port trains at a lower speed
    kClassRate,      ///< the NIC limits what it sends in each traffic class
    kVfRate,         ///< the physical function limits what the NIC, a virtual one, sends
    kDevlinkRate,    ///< the same through devlink
    kIbPort,         ///< the InfiniBand port runs at another width or speed, or is disabled
    kPcieSpeed,      ///< the PCI Express link runs at a lower speed
    kPciRemove,      ///< the NIC is removed from its bus
};
/// Those of a cap and of a link_down, the usual one first.
inline constexpr std::array kCapMechanisms{Mechanism::kTrafficControl, Mechanism::kLinkModes,   Mechanism::kClassRate,
                                           Mechanism::kVfRate,         Mechanism::kDevlinkRate, Mechanism::kIbPort,
                                           Mechanism::kPcieSpeed};
inline constexpr std::array kLinkDownMechanisms{Mechanism::kAdminDown, Mechanism::kIbPort, Mechanism::kPciRemove};
/// "tc", "admin_down", "link_modes", "dcb_class_rate", "vf_rate", "devlink_rate", "ib_port", "pcie_speed",
/// "pci_remove".
[[nodiscard]] std::string_view to_string(Mechanism mechanism);
/// Sides of a port that a cap by this mechanism can slow.
[[nodiscard]] bool can_slow(Mechanism mechanism, Direction direction);

/// Probabilities and shares are whole millionths, so that the same plan is the same bytes everywhere.
using Millionths = std::uint32_t;
inline constexpr Millionths kMillion = 1'000'000;

/// Loss in bursts: a chain of a good and a bad state, stepped at every packet (Gilbert 1960, Elliott 1963).
struct LossBursts {
    Millionths good_to_bad = 0;
    Millionths bad_to_good = 0;
    Millionths loss_in_bad = kMillion;
    Millionths loss_in_good = 0;
    bool operator==(const LossBursts&) const = default;
};

/// How strong a fault is. Which members count is told by the kind; the others keep their defaults.
struct FaultStrength {
    std::optional<Mechanism> mechanism; ///< kCap, kLinkDown; empty: the usual one
    Millionths probability = 0;         ///< kLoss (unless in bursts), kCorrupt, kDuplicate, kReorder: of each packet
    std::optional<LossBursts> bursts;   ///< kLoss
    Nanoseconds delay{0};               ///< kDelay, kReorder
    Nanoseconds jitter{0};              ///< kDelay: each packet's delay is uniform in delay +- jitter
    std::vector<std::int32_t> peers;    ///< kPartition: hosts, ascending, each once
    std::int32_t mtu_bytes = 0;         ///< kMtu
    std::int32_t via_nic = 0;           ///< kReroute: the NIC of the same host that takes over
    Millionths cpu = 0;                 ///< kCpu: part of one CPU
    Nanoseconds late{0};                ///< kLate
    ByteCount leave;                    ///< kDiskFull: room that is left
    bool operator==(const FaultStrength&) const = default;
};

/// How often and how long a flapping link is down.
struct FlapSpec {
    Nanoseconds period{0};
    Nanoseconds down{0}; ///< of each period
    std::int32_t count = 0;
    Rational jitter{0}; ///< part of the period by which each time may begin later, chosen from the seed
};

/// A target as written.
struct TargetSpec {
    std::optional<std::int32_t> host; ///< empty: "random", chosen from the seed (and for TargetKind::kRecorder)
    std::int32_t nic = 0;
    std::int32_t rank = 0; ///< TargetKind::kRank: its number on the host
};

/// One fault as written.
struct FaultSpec {
    std::string name;
    FaultKind kind = FaultKind::kCap;
    TargetSpec target;
    Direction direction = Direction::kBoth; ///< see has_direction()
    std::optional<BitRate> rate;            ///< cap: new line rate ...
    std::optional<Rational> fraction;       ///< ... or as a fraction of the cluster's rate, in (0, 1]
    FaultStrength strength;
    std::optional<FlapSpec> flap;
    /// When: from before the first to after the last degraded iteration (empty `at_iteration`), or
    /// `offset` after the start of degraded iteration `at_iteration` (1-based), for `duration`.
    std::optional<std::int32_t> at_iteration;
    Nanoseconds offset{0};
    std::optional<Nanoseconds> duration; ///< with at_iteration, unless ends_by_itself()
};

/// One fault with every choice made.
struct PlannedFault {
    std::int32_t id = 0;              ///< index in Plan::faults
    std::string name;                 ///< of a flap "NAME#1", "NAME#2", ...
    FaultKind kind = FaultKind::kCap; ///< never kFlap
    std::int32_t host = 0;
    std::int32_t nic = 0;
    Direction direction = Direction::kBoth;
    BitRate rate; ///< cap: the new line rate
    std::optional<std::int32_t> at_iteration;
    Nanoseconds offset{0};
    std::optional<Nanoseconds> duration;
    std::int32_t rank = 0; ///< TargetKind::kRank: its number on the host
    FaultStrength strength;
};

/// Whether faults of that kind act on one side of a port or on both.
[[nodiscard]] bool has_direction(FaultKind kind);
/// Whether a fault of that kind is over without being undone: kKill, kLate.
[[nodiscard]] bool ends_by_itself(FaultKind kind);
/// Whether the fault does nothing at all: its probability is 0. It is in the plan, and is not made.
[[nodiscard]] bool is_off(const PlannedFault& fault);
[[nodiscard]] bool is_off(const FaultSpec& fault);
/// Whether an iteration cannot end while the fault acts, unless its traffic goes another way.
[[nodiscard]] bool stops_traffic(FaultKind kind, const FaultStrength& strength);

} // namespace railbreak::scenarios
