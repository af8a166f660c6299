// Messages of nf_tables, built by hand: the libraries that could build them are under the GPL.
//
// Every function gives one raw nfnetlink message (linux/netfilter/nf_tables.h), ready for HostOps::nft() or
// nft_list(). Numbers inside are big-endian, as nf_tables wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace railbreak::injectors {

/// NFPROTO_NETDEV and its hooks NF_NETDEV_INGRESS and NF_NETDEV_EGRESS (linux/netfilter.h, which no file can include
/// behind the C library's network headers).
inline constexpr std::uint8_t kNftNetdev = 5;
inline constexpr std::uint32_t kNftIngressHook = 0;
inline constexpr std::uint32_t kNftEgressHook = 1;

/// A table: NFPROTO_NETDEV, NFPROTO_INET, ... and a name.
struct NftTable {
    std::uint8_t family = 0;
    std::string name;
    bool operator==(const NftTable&) const = default;
};

/// A base chain: where its rules see packets. Its policy is to accept.
struct NftChain {
    std::string name;
    std::uint32_t hook = 0; ///< NF_NETDEV_INGRESS, NF_INET_PRE_ROUTING, ...
    std::int32_t priority = 0;
    std::string device; ///< family netdev: the interface; empty otherwise
    bool operator==(const NftChain&) const = default;
};

/// A set whose elements end by themselves.
struct NftSet {
    std::string name;
    std::uint32_t key_type = 0; ///< what nft(8) shows the keys as: kNftIpv4Key, ...
    std::uint32_t key_bytes = 0;
    bool operator==(const NftSet&) const = default;
};

/// Key types as nft(8) numbers them; the kernel only stores them.
inline constexpr std::uint32_t kNftIpv4Key = 7;
inline constexpr std::uint32_t kNftIpv6Key = 8;
inline constexpr std::uint32_t kNftInterfaceKey = 20;

/// Start of a transaction. With a generation (nft_records.hpp) the kernel refuses it with ERESTART when anybody has
/// changed any table since that generation.
[[nodiscard]] std::string nft_begin(std::optional<std::uint32_t> generation = std::nullopt);
/// End of a transaction.
[[nodiscard]] std::string nft_end();
/// True for what nft_begin() makes.
[[nodiscard]] bool is_nft_begin(std::string_view message);

/// Asks for the number of the present generation of all tables.
[[nodiscard]] std::string nft_get_generation();
/// Asks for one table: ENOENT when there is none.
[[nodiscard]] std::string nft_get_table(const NftTable& table);
/// Dumps every chain of the family, every set or rule of a table, every element of a set.
[[nodiscard]] std::string nft_list_chains(std::uint8_t family);
[[nodiscard]] std::string nft_list_sets(const NftTable& table);
[[nodiscard]] std::string nft_list_rules(const NftTable& table);
[[nodiscard]] std::string nft_list_elements(const NftTable& table, std::string_view set);

/// Adds a table with a comment; one that is there stays as it is.
[[nodiscard]] std::string nft_new_table(const NftTable& table, std::string_view comment);
/// Deletes a table with everything in it.
[[nodiscard]] std::string nft_delete_table(const NftTable& table);
/// Adds a base chain of type filter.
[[nodiscard]] std::string nft_new_chain(const NftTable& table, const NftChain& chain);
/// Deletes a chain with its rules.
[[nodiscard]] std::string nft_delete_chain(const NftTable& table, std::string_view chain);
/// Adds a set. `id` names it within the transaction, for rules that look up in it (NftExpressions::look_up).
[[nodiscard]] std::string nft_new_set(const NftTable& table, const NftSet& set, std::uint32_t id);
[[nodiscard]] std::string nft_delete_set(const NftTable& table, std::string_view set);
/// Deletes every element of a set.
[[nodiscard]] std::string nft_flush_set(const NftTable& table, std::string_view set);
/// Adds elements that end after `timeout` (whole milliseconds, at least one). At most kNftElementsAMessage keys.
[[nodiscard]] std::string nft_add_elements(const NftTable& table, std::string_view set,
                                           std::span<const std::string> keys, Nanoseconds timeout);
inline constexpr std::size_t kNftElementsAMessage = 200;

/// What a rule does, expression by expression: values go through register 1.
class NftExpressions {
public:
    /// Loads a property of the packet (NFT_META_*).
    NftExpressions& load_meta(std::uint32_t key);
    /// Loads `size` bytes at `offset` of a header (NFT_PAYLOAD_NETWORK_HEADER, ...).
    NftExpressions& load_payload(std::uint32_t header, std::uint32_t offset, std::uint32_t size);
    /// Goes on when the register compares so (NFT_CMP_*) to the bytes, in memory order.
    NftExpressions& compare(std::uint32_t operation, std::string_view bytes);
    /// Goes on when the register is an element of the set, which the same transaction made as `id`.
    NftExpressions& look_up(std::string_view set, std::uint32_t id);
    NftExpressions& count();
    /// NF_DROP or NF_ACCEPT.
    NftExpressions& verdict(std::uint32_t code);
    /// Takes the packet away, and whoever sent it is told that it was sent: it is forwarded to the interface with index
    /// 0, which there never is (nf_fwd_netdev_egress() of the kernel frees such packets). Family netdev only.
    NftExpressions& swallow();

private:
    friend std::string nft_new_rule(const NftTable& table, std::string_view chain, const NftExpressions& expressions,
                                    std::string_view comment);
    struct Attribute {
        int type = 0;
        std::string payload;
    };
    struct Expression {
        std::string name;
        std::vector<Attribute> attributes;
    };
    std::vector<Expression> expressions_;
};

/// Appends a rule with a comment to a chain.
[[nodiscard]] std::string nft_new_rule(const NftTable& table, std::string_view chain, const NftExpressions& expressions,
                                       std::string_view comment);

/// A comment as nft(8) stores it in the user data of tables and rules, and back; empty when there is none.
[[nodiscard]] std::string nft_comment_bytes(std::string_view comment);
[[nodiscard]] std::string nft_comment_of(std::string_view bytes);

/// What a message is, for errors: "NEWCHAIN".
[[nodiscard]] std::string_view nft_message_name(std::string_view message);

} // namespace railbreak::injectors
