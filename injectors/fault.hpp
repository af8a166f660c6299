// The words of fault injection on one host: what is wanted, what was seen, and what undo needs to know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// Kinds of fault that this library can make.
enum class FaultKind : std::uint8_t {
    kCap,      ///< the NIC's rate is lowered in one or both directions while traffic flows
    kLinkDown, ///< the NIC is taken down administratively
};
/// "cap", "link_down".
[[nodiscard]] std::string_view to_string(FaultKind kind);

/// Side of a port, seen from the host.
enum class Direction : std::uint8_t { kSend, kReceive, kBoth };
/// "send", "receive", "both".
[[nodiscard]] std::string_view to_string(Direction direction);

/// One fault to apply. `id` is the caller's and must be unused among the open faults.
struct FaultRequest {
    std::int32_t id = 0;
    FaultKind kind = FaultKind::kCap;
    std::string nic;                        ///< interface name in the agent's network namespace
    Direction direction = Direction::kBoth; ///< kCap only
    BitRate rate;                           ///< kCap only: line rate, at least 8 kbit/s
};

/// What happened to one fault. Times are CLOCK_MONOTONIC nanoseconds; 0 means "not yet".
struct FaultEvidence {
    std::int32_t id = 0;
    Nanoseconds applied_at{0};  ///< the kernel acknowledged the last change
    Nanoseconds observed_at{0}; ///< the change was read back
    Nanoseconds reverted_at{0}; ///< the kernel acknowledged the last step of the undo
    Nanoseconds restored_at{0}; ///< the former state was read back
    std::string mechanism;      ///< for example "htb class rate in place + ifb behind ingress u32/mirred"
    std::string realism;        ///< "port" or "driver"
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
    bool operator==(const DeviceIdentity&) const = default;
};

/// True when both name the same device of the same namespace (the interface name may have changed).
[[nodiscard]] bool same_device(const DeviceIdentity& a, const DeviceIdentity& b);

/// What a link loses when it goes down, as the kernel dumped it (one raw netlink message a string).
struct LinkState {
    bool known = false; ///< false: this entry does not touch the link's state
    std::uint32_t flags = 0;
    std::uint32_t mtu = 0;
    std::vector<std::string> addresses;
    std::vector<std::string> routes;
    std::vector<std::string> neighbours;
};

/// How the sending side of a NIC is slowed.
enum class SendMechanism : std::uint8_t {
    kNone,     ///< untouched
    kLabClass, ///< the lab's own htb class changes its rate in place
    kOwnRoot,  ///< our htb replaces a default root
};

/// The state of a NIC's traffic control before any cap.
struct PortState {
    SendMechanism send = SendMechanism::kNone;
    bool receive = false;          ///< an ifb behind an ingress filter is used
    std::string root_kind;         ///< kind of the former root qdisc
    std::uint32_t root_handle = 0; ///< 0 for a default root
    HtbClass lab_class;            ///< kLabClass: its parameters as the kernel kept them
    std::string owner;             ///< alias given to the ifb, "railbreak RUN"
};

/// Everything that is needed to undo one fault, with no other source of knowledge.
struct JournalEntry {
    std::int32_t id = 0;
    FaultKind kind = FaultKind::kCap;
    Direction direction = Direction::kBoth;
    std::uint64_t rate_bits_per_s = 0;
    DeviceIdentity device;
    std::string boot_id;
    Nanoseconds lease_end_boottime{0};
    PortState port;
    LinkState link;
};

/// Entry to bytes and back. decode_entry fails with kInput on bytes that no encode_entry made.
[[nodiscard]] std::string encode_entry(const JournalEntry& entry);
[[nodiscard]] Result<JournalEntry> decode_entry(std::string_view bytes);

} // namespace railbreak::injectors
