#include "injectors/nft_messages.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "base/check.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

static_assert(kNftNetdev == NFPROTO_NETDEV && kNftIngressHook == NF_NETDEV_INGRESS &&
              kNftEgressHook == NF_NETDEV_EGRESS);

/// Type byte of a comment among the user data: NFTNL_UDATA_TABLE_COMMENT and NFTNL_UDATA_RULE_COMMENT of libnftnl.
constexpr char kCommentType = 0;
constexpr std::size_t kLongestComment = 127;

NetlinkMessage start(int type, int flags, std::uint8_t family, std::uint16_t resource = 0) {
    NetlinkMessage message(type, flags);
    nfgenmsg header{};
    header.nfgen_family = family;
    header.version = NFNETLINK_V0;
    header.res_id = htons(resource);
    message.append_header(header);
    return message;
}

NetlinkMessage start_nft(int type, int flags, std::uint8_t family) {
    return start((NFNL_SUBSYS_NFTABLES << 8) | type, flags, family);
}

std::string raw(const NetlinkMessage& message) {
    const nlmsghdr* header = message.header();
    return std::string(reinterpret_cast<const char*>(header), header->nlmsg_len);
}

std::string big_endian(std::uint32_t value) {
    const std::uint32_t wire = htonl(value);
    return std::string(reinterpret_cast<const char*>(&wire), sizeof wire);
}

void put_number(NetlinkMessage& message, int attribute, std::uint32_t value) {
    message.put_u32(attribute, htonl(value));
}

void put_data(NetlinkMessage& message, int attribute, std::string_view bytes) {
    message.put_bytes(attribute, bytes.data(), bytes.size());
}

/// An attribute as bytes, for nests that are put together before their message exists.
std::string attribute_bytes(int type, std::string_view payload) {
    nlattr header{};
    header.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + payload.size());
    header.nla_type = static_cast<std::uint16_t>(type);
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(payload);
    bytes.append(NLA_ALIGN(payload.size()) - payload.size(), '\0');
    return bytes;
}

/// A request about one named part of a table.
std::string of_table(int type, int flags, const NftTable& table, int table_attribute, int name_attribute,
                     std::string_view name) {
    NetlinkMessage message = start_nft(type, flags, table.family);
    message.put_string(table_attribute, table.name);
    if (!name.empty()) {
        message.put_string(name_attribute, name);
    }
    return raw(message);
}

} // namespace

std::string nft_begin(std::optional<std::uint32_t> generation) {
    NetlinkMessage message = start(NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    if (generation) {
        put_number(message, NFNL_BATCH_GENID, *generation);
    }
    return raw(message);
}

std::string nft_end() {
    return raw(start(NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

bool is_nft_begin(std::string_view message) {
    nlmsghdr header{};
    std::memcpy(&header, message.data(), std::min(message.size(), sizeof header));
    return header.nlmsg_type == NFNL_MSG_BATCH_BEGIN;
}

std::string nft_get_generation() {
    return raw(start_nft(NFT_MSG_GETGEN, 0, AF_UNSPEC));
}

std::string nft_get_table(const NftTable& table) {
    return of_table(NFT_MSG_GETTABLE, 0, table, NFTA_TABLE_NAME, 0, {});
}

std::string nft_list_chains(std::uint8_t family) {
    return raw(start_nft(NFT_MSG_GETCHAIN, NLM_F_DUMP, family));
}

std::string nft_list_sets(const NftTable& table) {
    return of_table(NFT_MSG_GETSET, NLM_F_DUMP, table, NFTA_SET_TABLE, 0, {});
}

std::string nft_list_rules(const NftTable& table) {
    return of_table(NFT_MSG_GETRULE, NLM_F_DUMP, table, NFTA_RULE_TABLE, 0, {});
}

std::string nft_list_elements(const NftTable& table, std::string_view set) {
    return of_table(NFT_MSG_GETSETELEM, NLM_F_DUMP, table, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET, set);
}

std::string nft_new_table(const NftTable& table, std::string_view comment) {
    NetlinkMessage message = start_nft(NFT_MSG_NEWTABLE, NLM_F_CREATE, table.family);
    message.put_string(NFTA_TABLE_NAME, table.name);
    put_data(message, NFTA_TABLE_USERDATA, nft_comment_bytes(comment));
    return raw(message);
}

std::string nft_delete_table(const NftTable& table) {
    return of_table(NFT_MSG_DELTABLE, 0, table, NFTA_TABLE_NAME, 0, {});
}

std::string nft_new_chain(const NftTable& table, const NftChain& chain) {
    NetlinkMessage message = start_nft(NFT_MSG_NEWCHAIN, NLM_F_CREATE, table.family);
    message.put_string(NFTA_CHAIN_TABLE, table.name);
    message.put_string(NFTA_CHAIN_NAME, chain.name);
    nlattr* hook = message.begin_nest(NFTA_CHAIN_HOOK);
    put_number(message, NFTA_HOOK_HOOKNUM, chain.hook);
    put_number(message, NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(chain.priority));
    if (!chain.device.empty()) {
        message.put_string(NFTA_HOOK_DEV, chain.device);
    }
    message.end_nest(hook);
    put_number(message, NFTA_CHAIN_POLICY, NF_ACCEPT);
    message.put_string(NFTA_CHAIN_TYPE, "filter");
    return raw(message);
}

std::string nft_delete_chain(const NftTable& table, std::string_view chain) {
    return of_table(NFT_MSG_DELCHAIN, 0, table, NFTA_CHAIN_TABLE, NFTA_CHAIN_NAME, chain);
}

std::string nft_new_set(const NftTable& table, const NftSet& set, std::uint32_t id) {
    NetlinkMessage message = start_nft(NFT_MSG_NEWSET, NLM_F_CREATE, table.family);
    message.put_string(NFTA_SET_TABLE, table.name);
    message.put_string(NFTA_SET_NAME, set.name);
    put_number(message, NFTA_SET_FLAGS, NFT_SET_TIMEOUT);
    put_number(message, NFTA_SET_KEY_TYPE, set.key_type);
    put_number(message, NFTA_SET_KEY_LEN, set.key_bytes);
    put_number(message, NFTA_SET_ID, id);
    return raw(message);
}

std::string nft_delete_set(const NftTable& table, std::string_view set) {
    return of_table(NFT_MSG_DELSET, 0, table, NFTA_SET_TABLE, NFTA_SET_NAME, set);
}

std::string nft_flush_set(const NftTable& table, std::string_view set) {
    return of_table(NFT_MSG_DELSETELEM, 0, table, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET, set);
}

std::string nft_add_elements(const NftTable& table, std::string_view set, std::span<const std::string> keys,
                             Nanoseconds timeout) {
    RB_CHECK(keys.size() <= kNftElementsAMessage, "one message holds so many elements");
    RB_CHECK(timeout >= std::chrono::milliseconds(1), "an element without a timeout would stay for ever");
    const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    NetlinkMessage message = start_nft(NFT_MSG_NEWSETELEM, NLM_F_CREATE, table.family);
    message.put_string(NFTA_SET_ELEM_LIST_TABLE, table.name);
    message.put_string(NFTA_SET_ELEM_LIST_SET, set);
    nlattr* elements = message.begin_nest(NFTA_SET_ELEM_LIST_ELEMENTS);
    for (const std::string& each : keys) {
        nlattr* element = message.begin_nest(NFTA_LIST_ELEM);
        nlattr* key = message.begin_nest(NFTA_SET_ELEM_KEY);
        put_data(message, NFTA_DATA_VALUE, each);
        message.end_nest(key);
        message.put_u64(NFTA_SET_ELEM_TIMEOUT, htobe64(static_cast<std::uint64_t>(milliseconds)));
        message.end_nest(element);
    }
    message.end_nest(elements);
    return raw(message);
}

NftExpressions& NftExpressions::load_meta(std::uint32_t key) {
    expressions_.push_back({"meta", {{NFTA_META_KEY, big_endian(key)}, {NFTA_META_DREG, big_endian(NFT_REG_1)}}});
    return *this;
}

NftExpressions& NftExpressions::load_payload(std::uint32_t header, std::uint32_t offset, std::uint32_t size) {
    expressions_.push_back({"payload",
                            {{NFTA_PAYLOAD_DREG, big_endian(NFT_REG_1)},
                             {NFTA_PAYLOAD_BASE, big_endian(header)},
                             {NFTA_PAYLOAD_OFFSET, big_endian(offset)},
                             {NFTA_PAYLOAD_LEN, big_endian(size)}}});
    return *this;
}

NftExpressions& NftExpressions::compare(std::uint32_t operation, std::string_view bytes) {
    expressions_.push_back({"cmp",
                            {{NFTA_CMP_SREG, big_endian(NFT_REG_1)},
                             {NFTA_CMP_OP, big_endian(operation)},
                             {NFTA_CMP_DATA, attribute_bytes(NFTA_DATA_VALUE, bytes)}}});
    return *this;
}

NftExpressions& NftExpressions::look_up(std::string_view set, std::uint32_t id) {
    expressions_.push_back({"lookup",
                            {{NFTA_LOOKUP_SET, std::string(set) + '\0'},
                             {NFTA_LOOKUP_SREG, big_endian(NFT_REG_1)},
                             {NFTA_LOOKUP_SET_ID, big_endian(id)}}});
    return *this;
}

NftExpressions& NftExpressions::count() {
    expressions_.push_back({"counter", {}});
    return *this;
}

NftExpressions& NftExpressions::verdict(std::uint32_t code) {
    const std::string data = attribute_bytes(NFTA_DATA_VERDICT, attribute_bytes(NFTA_VERDICT_CODE, big_endian(code)));
    expressions_.push_back(
        {"immediate", {{NFTA_IMMEDIATE_DREG, big_endian(NFT_REG_VERDICT)}, {NFTA_IMMEDIATE_DATA, data}}});
    return *this;
}

NftExpressions& NftExpressions::swallow() {
    expressions_.push_back({"immediate",
                            {{NFTA_IMMEDIATE_DREG, big_endian(NFT_REG_1)},
                             {NFTA_IMMEDIATE_DATA, attribute_bytes(NFTA_DATA_VALUE, big_endian(0))}}});
    expressions_.push_back({"fwd", {{NFTA_FWD_SREG_DEV, big_endian(NFT_REG_1)}}});
    return *this;
}

std::string nft_new_rule(const NftTable& table, std::string_view chain, const NftExpressions& expressions,
                         std::string_view comment) {
    NetlinkMessage message = start_nft(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, table.family);
    message.put_string(NFTA_RULE_TABLE, table.name);
    message.put_string(NFTA_RULE_CHAIN, chain);
    nlattr* list = message.begin_nest(NFTA_RULE_EXPRESSIONS);
    for (const auto& each : expressions.expressions_) {
        nlattr* element = message.begin_nest(NFTA_LIST_ELEM);
        message.put_string(NFTA_EXPR_NAME, each.name);
        nlattr* data = message.begin_nest(NFTA_EXPR_DATA);
        for (const auto& attribute : each.attributes) {
            put_data(message, attribute.type, attribute.payload);
        }
        message.end_nest(data);
        message.end_nest(element);
    }
    message.end_nest(list);
    put_data(message, NFTA_RULE_USERDATA, nft_comment_bytes(comment));
    return raw(message);
}

std::string nft_comment_bytes(std::string_view comment) {
    RB_CHECK(comment.size() <= kLongestComment, "a comment of nft has at most 127 bytes");
    std::string bytes{kCommentType, static_cast<char>(comment.size() + 1)};
    bytes.append(comment);
    bytes.push_back('\0');
    return bytes;
}

std::string nft_comment_of(std::string_view bytes) {
    // Type, length, value, type, length, value, ...
    while (bytes.size() >= 2) {
        const auto size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[1]));
        const std::string_view value = bytes.substr(2, size);
        if (bytes[0] == kCommentType && value.size() == size && size > 0) {
            return std::string(value.substr(0, size - 1));
        }
        bytes.remove_prefix(std::min(bytes.size(), 2 + size));
    }
    return {};
}

std::string_view nft_message_name(std::string_view message) {
    nlmsghdr header{};
    std::memcpy(&header, message.data(), std::min(message.size(), sizeof header));
    struct Name {
        int type;
        std::string_view name;
    };
    constexpr std::array kNames{Name{NFT_MSG_NEWTABLE, "NEWTABLE"},     Name{NFT_MSG_DELTABLE, "DELTABLE"},
                                Name{NFT_MSG_NEWCHAIN, "NEWCHAIN"},     Name{NFT_MSG_DELCHAIN, "DELCHAIN"},
                                Name{NFT_MSG_NEWSET, "NEWSET"},         Name{NFT_MSG_DELSET, "DELSET"},
                                Name{NFT_MSG_NEWSETELEM, "NEWSETELEM"}, Name{NFT_MSG_DELSETELEM, "DELSETELEM"},
                                Name{NFT_MSG_NEWRULE, "NEWRULE"}};
    if (header.nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES) {
        for (const Name& each : kNames) {
            if (each.type == (header.nlmsg_type & 0xff)) {
                return each.name;
            }
        }
    }
    return header.nlmsg_type == NFNL_MSG_BATCH_BEGIN ? "BATCH_BEGIN" : "?";
}

} // namespace railbreak::injectors
