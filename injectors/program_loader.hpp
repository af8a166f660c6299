// Loads the packet program into the kernel, hangs it into a clsact qdisc, and talks to it through its maps.
#pragma once

#include <optional>

#include "injectors/netlink.hpp"
#include "injectors/packet_program.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// See HostOps. The filter is a direct-action cls_bpf of that priority; its maps are found again through the program's
/// id, so that any process may read and change it later.
[[nodiscard]] Result<void> attach_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority, const PacketProgram& program);
[[nodiscard]] Result<void> change_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority, const PacketProgram& program);
[[nodiscard]] Result<std::optional<PacketProgramRecord>>
read_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction, std::uint16_t priority);
[[nodiscard]] Result<void> delete_packet_program(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                                 std::uint16_t priority);

} // namespace railbreak::injectors
