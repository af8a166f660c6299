// Loads the packet program into the kernel, hangs it into a clsact qdisc, and talks to it through its maps.
#pragma once

#include <optional>
#include <string_view>

#include "injectors/netlink.hpp"
#include "injectors/packet_program.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// Handle of the packet program's filter. With its priority and its name it says whose it is.
inline constexpr TcHandle kProgramFilter = 0xfa01;
/// Name of the packet program's filter.
inline constexpr std::string_view kProgramName = "railbreak packets";

/// See HostOps. The filter is a direct-action cls_bpf of that priority; its maps are found again through the program's
/// id, so that any process may read and change it later. kRefused when this process may not load programs or look them
/// up (CAP_BPF and CAP_SYS_ADMIN outside of every user namespace); kInput for a treatment that the program does not
/// know; errno ENOENT where a program is to be changed or deleted and none of ours is there. A change keeps the counts
/// and the sequence of random numbers, unless it brings another seed.
[[nodiscard]] Result<void> attach_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority, const PacketProgram& program);
[[nodiscard]] Result<void> change_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority, const PacketProgram& program);
[[nodiscard]] Result<std::optional<PacketProgramRecord>>
read_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority);
[[nodiscard]] Result<void> delete_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority);

} // namespace railbreak::injectors
