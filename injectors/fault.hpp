// The words of fault injection on one host: what is wanted, what was seen, and what undo needs to know.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace railbreak::injectors {

/// Kinds of fault that this library can make.
enum class FaultKind : std::uint8_t {
    kCap,       ///< the NIC's rate is lowered in one or both directions while traffic flows
    kLinkDown,  ///< the NIC is taken down administratively
    kDelay,     ///< packets are held back, by a fixed time and a random part (jitter)
    kLoss,      ///< packets are lost, each by itself or in bursts (Gilbert-Elliott)
    kCorrupt,   ///< a bit of a packet is turned over
    kDuplicate, ///< packets arrive twice
    kReorder,   ///< packets overtake delayed ones
    kBlackhole, ///< nothing passes, and nobody is told
    kPartition, ///< nothing passes between this NIC and some peers, and nobody is told
    kMtu,       ///< the NIC takes only smaller packets
    kReroute,   ///< what this NIC's addresses send leaves through another NIC of the host
    kPause,     ///< a process stands still
    kKill,      ///< a process is killed; there is no undo
    kCpu,       ///< a process gets a part of one CPU's time
    kDiskFull,  ///< a file system has no room left
    kPortSpeed, ///< the NIC's port runs at one of its lower speeds: a cap by link modes
    // Caps and link_downs by other mechanisms of the hardware; their names are the mechanisms'.
    kClassRate,   ///< the NIC limits what it sends in each traffic class (DCB)
    kVfRate,      ///< the NIC's physical function limits what it, a virtual function, sends
    kDevlinkRate, ///< the same through devlink, in switchdev mode
    kIbRate,      ///< the NIC's InfiniBand port runs at fewer lanes or a lower speed
    kIbDown,      ///< the NIC's InfiniBand port is disabled
    kPcieSpeed,   ///< the PCI Express link of the NIC runs at a lower speed
    kPciRemove,   ///< the NIC is off its PCI bus
};
/// Every FaultKind.
inline constexpr std::array kFaultKinds{
    FaultKind::kCap,       FaultKind::kLinkDown,  FaultKind::kDelay,     FaultKind::kLoss,        FaultKind::kCorrupt,
    FaultKind::kDuplicate, FaultKind::kReorder,   FaultKind::kBlackhole, FaultKind::kPartition,   FaultKind::kMtu,
    FaultKind::kReroute,   FaultKind::kPause,     FaultKind::kKill,      FaultKind::kCpu,         FaultKind::kDiskFull,
    FaultKind::kPortSpeed, FaultKind::kClassRate, FaultKind::kVfRate,    FaultKind::kDevlinkRate, FaultKind::kIbRate,
    FaultKind::kIbDown,    FaultKind::kPcieSpeed, FaultKind::kPciRemove};
/// "cap", "link_down", "delay", ... "port_speed", "dcb_class_rate", "vf_rate", "devlink_rate", "ib_rate", "ib_down",
/// "pcie_speed", "pci_remove".
[[nodiscard]] std::string_view to_string(FaultKind kind);

/// The kind by which a mechanism of a scenario makes a cap or a link_down: kCap by "link_modes" is kPortSpeed. Empty
/// when there is no such mechanism of that kind.
[[nodiscard]] std::optional<FaultKind> kind_made_by(FaultKind kind, std::string_view mechanism);

/// What kind of thing a fault acts on.
enum class TargetKind : std::uint8_t { kNic, kProcess, kFolder };
[[nodiscard]] TargetKind target_kind(FaultKind kind);

/// Side of a port, seen from the host.
enum class Direction : std::uint8_t { kSend, kReceive, kBoth };
/// Every Direction.
inline constexpr std::array kDirections{Direction::kSend, Direction::kReceive, Direction::kBoth};
/// "send", "receive", "both".
[[nodiscard]] std::string_view to_string(Direction direction);

/// Probabilities are whole millionths, so that the same plan is the same bytes everywhere: 10'000 is 1 %.
using Millionths = std::uint32_t;
inline constexpr Millionths kMillion = 1'000'000;

/// Loss in bursts: a chain of a good and a bad state, stepped at every packet (Gilbert 1960, Elliott 1963).
struct GilbertElliott {
    Millionths good_to_bad = 0;
    Millionths bad_to_good = 0;
    Millionths loss_in_bad = kMillion;
    Millionths loss_in_good = 0;
    bool operator==(const GilbertElliott&) const = default;
};

/// What happens to single packets of one direction of a NIC. All zero: nothing.
struct PacketTreatment {
    Nanoseconds delay{0};
    Nanoseconds jitter{0};                ///< each packet's delay is uniform in delay +- jitter; at most `delay`
    Millionths loss = 0;                  ///< each packet by itself
    std::optional<GilbertElliott> bursts; ///< instead of `loss`
    Millionths corrupt = 0;
    Millionths duplicate = 0;
    Millionths reorder = 0; ///< this part is sent at once, the rest with the delay; needs a delay
    bool operator==(const PacketTreatment&) const = default;
};
/// True when it does anything.
[[nodiscard]] bool acts(const PacketTreatment& treatment);

/// One fault to apply. `id` is the caller's and must be unused among the open faults. Which members count is told by
/// the kind; the others keep their defaults.
struct FaultRequest {
    std::int32_t id = 0;
    FaultKind kind = FaultKind::kCap;
    std::string nic; ///< NIC faults: interface name in the agent's network namespace
    /// kCap, the packet faults, kBlackhole and kPartition
    Direction direction = Direction::kBoth;
    BitRate rate;                   ///< kCap: line rate, at least 8 kbit/s; kPortSpeed, kIbRate: one that the port has;
                                    ///< other caps by hardware: the most, cut to what the hardware can keep
    PacketTreatment packets;        ///< kDelay, kLoss, kCorrupt, kDuplicate, kReorder
    std::vector<std::string> peers; ///< kPartition: IPv4 or IPv6 addresses of the peers, at least one
    std::uint32_t mtu_bytes = 0;    ///< kMtu
    std::string via_nic;            ///< kReroute: the interface that takes over
    std::int32_t pid = 0;           ///< kPause, kKill, kCpu: a process that the agent started
    Millionths cpu = 0;             ///< kCpu: part of one CPU, 1'000'000 is all of one
    std::string folder;             ///< kDiskFull: any folder of the file system
    ByteCount leave;                ///< kDiskFull: room that is left
    bool operator==(const FaultRequest&) const = default;
};

/// What happened to one fault. Times are CLOCK_MONOTONIC nanoseconds; 0 means "not yet".
struct FaultEvidence {
    std::int32_t id = 0;
    Nanoseconds applied_at{0};  ///< the kernel acknowledged the last change
    Nanoseconds observed_at{0}; ///< the change was read back
    Nanoseconds reverted_at{0}; ///< the kernel acknowledged the last step of the undo
    Nanoseconds restored_at{0}; ///< the former state was read back
    std::string mechanism;      ///< for example "htb class rate in place + ifb behind ingress u32/mirred"
    std::string realism;        ///< "wire", "port", "driver", "process" or "pretended"
    std::string data_path;      ///< "kernel TCP"
    std::vector<std::pair<std::string, std::string>> readback; ///< name and value, unit in the name
    std::string error;                                         ///< empty, or one sentence
};

/// Which device is meant. A name alone can move to another device; this cannot.
struct DeviceIdentity {
    std::string name;
    std::int32_t ifindex = 0;
    std::string mac;                ///< "02:00:00:00:00:01"; empty when the device has none
    std::string permanent_mac;      ///< empty when the driver has none
    std::uint64_t netns_inode = 0;  ///< of /proc/self/ns/net: finds the namespace again
    std::uint64_t netns_cookie = 0; ///< never reused while the kernel runs (0: kernel too old)
    /// Owner of the namespace's user namespace, seen from outside: may look for it everywhere. See owner_of_netns().
    std::optional<std::uint32_t> netns_user;
    bool operator==(const DeviceIdentity&) const = default;
};

/// True when both name the same device of the same namespace (the interface name may have changed).
[[nodiscard]] bool same_device(const DeviceIdentity& a, const DeviceIdentity& b);

/// Which process is meant. A pid is given again; together with the start time it is not.
struct ProcessIdentity {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0; ///< since boot, field 22 of /proc/PID/stat
    std::string command;           ///< its name, for messages
    bool operator==(const ProcessIdentity&) const = default;
};

/// What a fault acts on: one of the three, by target_kind() of its kind.
struct FaultTarget {
    TargetKind kind = TargetKind::kNic;
    DeviceIdentity device;
    ProcessIdentity process;
    std::uint64_t pid_namespace = 0; ///< inode of the one in which the process's pid counts
    std::string folder;              ///< absolute, without symbolic links
    std::uint64_t device_id = 0;     ///< of the folder's file system (stat's st_dev)
};
/// True when faults on both must be composed with each other.
[[nodiscard]] bool same_target(const FaultTarget& a, const FaultTarget& b);
/// "eth1", "process 4711 (railbreak)", "/var/lib/railbreak".
[[nodiscard]] std::string to_string(const FaultTarget& target);

/// Parts of a host's state that faults change, in the order in which they are changed; undone in reverse.
enum class FacetKind : std::uint8_t {
    kSendRate,    ///< htb class or root of the NIC
    kReceive,     ///< rate and packet treatment of what arrives: ifb behind the ingress, packet program
    kSendPackets, ///< packet treatment of what leaves: netem on an ifb behind the egress, or the packet program
    kDrops,       ///< nft table: blackhole and partition
    kReroute,     ///< policy rule and routing table
    kLink,        ///< admin state and MTU
    kCpu,         ///< CPU quota of a cgroup
    kStop,        ///< freezer or SIGSTOP
    kKill,        ///< SIGKILL
    kDisk,        ///< ballast file
    kPortSpeed,   ///< modes that the port offers its partner
    kClassRate,   ///< rate limits of the NIC's traffic classes
    kVfRate,      ///< rate limit of a virtual function
    kDevlinkRate, ///< the same, as devlink keeps it
    kIbPort,      ///< widths, speeds and state of an InfiniBand port
    kPcieSpeed,   ///< speed of the PCI Express link above the NIC
    kPciPresence, ///< whether the NIC is on its bus
};
/// Every FacetKind, in order of application.
inline constexpr std::array kFacetKinds{FacetKind::kSendRate,  FacetKind::kReceive,     FacetKind::kSendPackets,
                                        FacetKind::kDrops,     FacetKind::kReroute,     FacetKind::kLink,
                                        FacetKind::kCpu,       FacetKind::kStop,        FacetKind::kKill,
                                        FacetKind::kDisk,      FacetKind::kPortSpeed,   FacetKind::kClassRate,
                                        FacetKind::kVfRate,    FacetKind::kDevlinkRate, FacetKind::kIbPort,
                                        FacetKind::kPcieSpeed, FacetKind::kPciPresence};
/// True for the kinds that are made in the NIC itself, below the kernel's queues.
[[nodiscard]] bool in_hardware(FaultKind kind);
/// "send_rate", "receive", ...
[[nodiscard]] std::string_view to_string(FacetKind kind);

/// The former state of one facet, in that facet's own encoding.
struct FormerPart {
    FacetKind facet = FacetKind::kSendRate;
    std::string state;
    bool operator==(const FormerPart&) const = default;
};

/// Everything that is needed to undo one fault, with no other source of knowledge.
struct JournalEntry {
    FaultRequest request;
    FaultTarget target;
    std::string owner; ///< "railbreak RUN": tag of what is made
    std::string boot_id;
    Nanoseconds lease_end_boottime{0};
    std::vector<FormerPart> former; ///< in order of application
};

/// Entry to bytes and back. decode_entry fails with kInput on bytes that no encode_entry made.
[[nodiscard]] std::string encode_entry(const JournalEntry& entry);
[[nodiscard]] Result<JournalEntry> decode_entry(std::string_view bytes);

} // namespace railbreak::injectors
