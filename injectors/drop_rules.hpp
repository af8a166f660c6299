// The nftables rules behind blackhole and partition: what they look like, as messages and as read back.
//
// Per NIC and place there is one base chain and three sets. The rules of the chain never change; what is dropped is
// told by the sets' elements, and these end by themselves:
//     meta iif @in_7_all counter drop                                            everything, of any protocol
//     meta iif 7 meta protocol ip ip saddr @in_7_ip4 counter drop
//     meta iif 7 meta protocol ip6 meta l4proto icmpv6 icmpv6 type 133-137 accept
//     meta iif 7 meta protocol ip6 ip6 saddr @in_7_ip6 counter drop
// Neighbour discovery passes a partition, as ARP does: without it a partition of one direction would soon be one of
// both. A blackhole drops these too, like a dead wire.
//
// Packets that are sent are swallowed rather than dropped where the kernel can: the kernel takes a drop at the egress
// for a full queue, tells TCP, and TCP then tries again every half second, where on a broken path it would wait longer
// and longer (tcp_retransmit_timer() of the kernel).
//
// Arriving packets are dropped in two places. The ingress hook of the NIC is before everything, bridges and bonds
// included, but packets that a receive cap or delay sent through its ifb device never get there: the kernel takes them
// up again behind it (net/core/dev.c, skip_classify). Prerouting of the family inet gets those.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injectors/composer.hpp"
#include "injectors/nft_messages.hpp"
#include "injectors/nft_records.hpp"

namespace railbreak::injectors {

/// Name of our tables, and the comment that tells that they are ours.
inline constexpr std::string_view kDropTable = "railbreak";
inline constexpr std::string_view kDropTableComment = "made by railbreak";
/// Families in which there is such a table.
[[nodiscard]] std::vector<NftTable> drop_tables();

/// One hook at which packets of a NIC are dropped.
struct DropPlace {
    NftTable table;
    NftChain chain;
    bool send = false;
    bool silent = false; ///< swallows
    std::int32_t ifindex = 0;
};

/// How a kernel can drop what is sent.
enum class Egress : std::uint8_t { kNone, kDrop, kSwallow };

/// The places of a NIC with this index and name.
[[nodiscard]] std::vector<DropPlace> drop_places(std::int32_t ifindex, const std::string& name, Egress egress);

/// The place's sets: everything, IPv4 peers, IPv6 peers.
[[nodiscard]] std::vector<NftSet> drop_sets(const DropPlace& place);
/// Elements that the place's sets should have, sorted, in the order of drop_sets(). kInput for a peer that is no
/// address.
[[nodiscard]] Result<std::vector<std::vector<std::string>>> drop_keys(const DropPlace& place,
                                                                      const WantedState& wanted);

/// Messages that make the place's chain, sets and rules; `first_id` numbers the sets within the transaction.
void add_place(std::vector<std::string>& messages, const DropPlace& place, std::uint32_t first_id);
/// True when the table has all of that.
[[nodiscard]] bool is_whole(const NftTableRecord& table, const DropPlace& place);
/// True when the table has any of that.
[[nodiscard]] bool has_any(const NftTableRecord& table, const DropPlace& place);
/// Messages that delete what there is of it.
void delete_place(std::vector<std::string>& messages, const NftTableRecord& table, const DropPlace& place);

/// 4 or 16 bytes of an IPv4 or IPv6 address of one peer; an IPv4 address mapped into IPv6 is one of IPv4. kInput for
/// anything else, and for addresses of no single host.
[[nodiscard]] Result<std::string> parse_peer(const std::string& text);

} // namespace railbreak::injectors
