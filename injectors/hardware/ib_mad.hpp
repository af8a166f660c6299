// Subnet management packets for one port, as bytes: the PortInfo attribute and the directed-route packet around it
// (InfiniBand Architecture, volume 1, 14.2). Sending them is ib_port.hpp's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace railbreak::injectors::hardware {

inline constexpr std::size_t kSmpBytes = 256;
inline constexpr std::size_t kSmpDataBytes = 64;
inline constexpr std::size_t kLongestIbRoute = 63; // hops; byte 0 of the path is not used
using SmpBytes = std::array<std::uint8_t, kSmpBytes>;
using SmpData = std::array<std::uint8_t, kSmpDataBytes>;

/// Link state of a port; in a change, kNoChange leaves it.
enum class IbPortState : std::uint8_t { kNoChange, kDown, kInitialize, kArmed, kActive };
/// Physical state of a port. Setting kPolling enables (and retrains), kDisabled disables.
enum class IbPhysicalState : std::uint8_t {
    kNoChange,
    kSleep,
    kPolling,
    kDisabled,
    kTraining,
    kLinkUp,
    kErrorRecovery,
    kPhyTest,
};
/// "down", "initialize", "armed", "active"; "no_change".
[[nodiscard]] std::string_view to_string(IbPortState state);
/// "sleep", "polling", "disabled", "training", "link_up", "error_recovery", "phy_test"; "no_change".
[[nodiscard]] std::string_view to_string(IbPhysicalState state);

/// Bits of a width mask, in lanes.
inline constexpr std::uint8_t kIbWidth1x = 1;
inline constexpr std::uint8_t kIbWidth4x = 2;
inline constexpr std::uint8_t kIbWidth8x = 4;
inline constexpr std::uint8_t kIbWidth12x = 8;
inline constexpr std::uint8_t kIbWidth2x = 16;
/// Bits of a speed mask: 2.5, 5 and 10 Gbit/s a lane.
inline constexpr std::uint8_t kIbSpeedSdr = 1;
inline constexpr std::uint8_t kIbSpeedDdr = 2;
inline constexpr std::uint8_t kIbSpeedQdr = 4;
/// Value of the extended speed mask (1 FDR, 2 EDR, 4 HDR, 8 NDR) that turns the extended speeds off.
inline constexpr std::uint8_t kIbExtendedSpeedsOff = 30;

/// The part of PortInfo that faults and their undo are about. Masks are "enabled" (what may be used), "supported", and
/// "active" (what the link runs at).
struct IbPortInfo {
    std::uint16_t lid = 0; ///< 0: no subnet manager has configured the port
    std::uint16_t sm_lid = 0;
    IbPortState state = IbPortState::kNoChange;
    IbPhysicalState physical_state = IbPhysicalState::kNoChange;
    std::uint8_t width_enabled = 0;
    std::uint8_t width_supported = 0;
    std::uint8_t width_active = 0;
    std::uint8_t speed_enabled = 0;
    std::uint8_t speed_supported = 0;
    std::uint8_t speed_active = 0;
    std::uint8_t extended_speed_enabled = 0;
    std::uint8_t extended_speed_supported = 0;
    std::uint8_t extended_speed_active = 0;
    bool operator==(const IbPortInfo&) const = default;
};

/// What one Set changes; what is not named keeps its value ("no change" is written there).
struct IbPortChange {
    IbPortState state = IbPortState::kNoChange;
    IbPhysicalState physical_state = IbPhysicalState::kNoChange;
    std::optional<std::uint8_t> width_enabled;
    std::optional<std::uint8_t> speed_enabled;
    std::optional<std::uint8_t> extended_speed_enabled;
    /// LID and SM LID to write where they are 0, which a Set may not hold. The port keeps them afterwards.
    std::optional<std::uint16_t> lid_when_none;
};

/// Reads PortInfo.
[[nodiscard]] IbPortInfo decode_port_info(const SmpData& data);
/// The Set for a change: everything as read, except the fields where a value means an action, which say "no change"
/// unless the change names them. kRefused when the port has no LID and the change brings none.
[[nodiscard]] Result<SmpData> encode_port_change(const SmpData& read, const IbPortChange& change);

/// One request to a port's management agent.
struct SmpRequest {
    bool set = false;                ///< Set instead of Get
    std::uint16_t attribute = 0;     ///< kSmpNodeInfo, kSmpPortInfo
    std::uint32_t modifier = 0;      ///< port number for PortInfo
    std::vector<std::uint8_t> route; ///< output port at each hop, from the own port on; empty: the own node
    std::uint32_t transaction = 0;
    std::uint64_t management_key = 0; ///< M_Key
    SmpData data{};
};
inline constexpr std::uint16_t kSmpNodeInfo = 0x11;
inline constexpr std::uint16_t kSmpPortInfo = 0x15;

/// The packet, directed route, both directed parts (no LIDs). kInput for a route of more than kLongestIbRoute hops.
[[nodiscard]] Result<SmpBytes> encode_smp(const SmpRequest& request);
/// Transaction number of a packet: the lower 32 bits, which the kernel leaves alone.
[[nodiscard]] std::uint32_t smp_transaction(const SmpBytes& packet);
/// The answer's attribute. kHarness when the packet is no answer, or the agent answered with a status other than 0
/// (fact "mad_status").
[[nodiscard]] Result<SmpData> decode_smp_answer(const SmpBytes& packet);
/// Number of the port of a node through which a NodeInfo request reached it.
[[nodiscard]] std::uint8_t node_info_local_port(const SmpData& data);

} // namespace railbreak::injectors::hardware
