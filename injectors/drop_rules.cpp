#include "injectors/drop_rules.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>

namespace railbreak::injectors {

namespace {

/// Before everybody else's rules, the kernel's own reassembly (-400) included.
constexpr std::int32_t kPriority = -500;
constexpr std::array<std::string_view, 4> kComments{"blackhole", "partition, IPv4", "neighbour discovery passes",
                                                    "partition, IPv6"};

template <class Number> std::string memory_of(Number value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint32_t device_key(const DropPlace& place) {
    return place.send ? NFT_META_OIF : NFT_META_IIF;
}

/// What stands at the place's rules, in order.
std::vector<std::string> comments_of(const DropPlace& place) {
    std::vector<std::string> comments;
    for (const std::string_view each : kComments) {
        comments.push_back(fmt::format("{}{}", each, place.silent ? ", silent" : ""));
    }
    return comments;
}

/// Goes on with packets of the NIC and of that EtherType.
NftExpressions of_protocol(const DropPlace& place, std::uint16_t ether_type) {
    NftExpressions rule;
    rule.load_meta(device_key(place)).compare(NFT_CMP_EQ, memory_of(place.ifindex));
    rule.load_meta(NFT_META_PROTOCOL).compare(NFT_CMP_EQ, memory_of(htons(ether_type)));
    return rule;
}

} // namespace

std::vector<NftTable> drop_tables() {
    return {{NFPROTO_NETDEV, std::string(kDropTable)}, {NFPROTO_INET, std::string(kDropTable)}};
}

std::vector<DropPlace> drop_places(std::int32_t ifindex, const std::string& name, Egress egress) {
    const auto tables = drop_tables();
    const std::string in = fmt::format("in_{}", ifindex);
    std::vector<DropPlace> places{{tables[0], {in, NF_NETDEV_INGRESS, kPriority, name}, false, false, ifindex},
                                  {tables[1], {in, NF_INET_PRE_ROUTING, kPriority, {}}, false, false, ifindex}};
    if (egress != Egress::kNone) {
        places.push_back({tables[0],
                          {fmt::format("out_{}", ifindex), NF_NETDEV_EGRESS, kPriority, name},
                          true,
                          egress == Egress::kSwallow,
                          ifindex});
    }
    return places;
}

std::vector<NftSet> drop_sets(const DropPlace& place) {
    return {{place.chain.name + "_all", kNftInterfaceKey, sizeof(std::int32_t)},
            {place.chain.name + "_ip4", kNftIpv4Key, sizeof(in_addr)},
            {place.chain.name + "_ip6", kNftIpv6Key, sizeof(in6_addr)}};
}

Result<std::vector<std::vector<std::string>>> drop_keys(const DropPlace& place, const WantedState& wanted) {
    const Drops& drops = place.send ? wanted.send_drops : wanted.receive_drops;
    std::vector<std::string> all;
    if (drops.all) {
        all.push_back(memory_of(place.ifindex));
    }
    std::set<std::string> ip4;
    std::set<std::string> ip6;
    for (const std::string& peer : drops.peers) {
        auto bytes = parse_peer(peer);
        if (!bytes) {
            return tl::unexpected(bytes.error());
        }
        (bytes->size() == sizeof(in_addr) ? ip4 : ip6).insert(std::move(*bytes));
    }
    return std::vector<std::vector<std::string>>{all, {ip4.begin(), ip4.end()}, {ip6.begin(), ip6.end()}};
}

void add_place(std::vector<std::string>& messages, const DropPlace& place, std::uint32_t first_id) {
    messages.push_back(nft_new_chain(place.table, place.chain));
    const auto sets = drop_sets(place);
    for (std::uint32_t i = 0; i < sets.size(); ++i) {
        messages.push_back(nft_new_set(place.table, sets[i], first_id + i));
    }
    const auto comments = comments_of(place);
    const auto lose = [&](NftExpressions& rule) -> const NftExpressions& {
        return place.silent ? rule.count().swallow() : rule.count().verdict(NF_DROP);
    };
    const auto add = [&](const NftExpressions& rule, std::string_view comment) {
        messages.push_back(nft_new_rule(place.table, place.chain.name, rule, comment));
    };
    NftExpressions everything;
    everything.load_meta(device_key(place)).look_up(sets[0].name, first_id);
    add(lose(everything), comments[0]);
    NftExpressions ip4 = of_protocol(place, ETH_P_IP);
    ip4.load_payload(NFT_PAYLOAD_NETWORK_HEADER, place.send ? offsetof(iphdr, daddr) : offsetof(iphdr, saddr),
                     sizeof(in_addr));
    add(lose(ip4.look_up(sets[1].name, first_id + 1)), comments[1]);
    NftExpressions discovery = of_protocol(place, ETH_P_IPV6);
    discovery.load_meta(NFT_META_L4PROTO).compare(NFT_CMP_EQ, std::string(1, IPPROTO_ICMPV6));
    discovery.load_payload(NFT_PAYLOAD_TRANSPORT_HEADER, offsetof(icmp6_hdr, icmp6_type), 1)
        .compare(NFT_CMP_GTE, memory_of(static_cast<std::uint8_t>(ND_ROUTER_SOLICIT)))
        .compare(NFT_CMP_LTE, memory_of(static_cast<std::uint8_t>(ND_REDIRECT)));
    add(discovery.verdict(NF_ACCEPT), comments[2]);
    NftExpressions ip6 = of_protocol(place, ETH_P_IPV6);
    ip6.load_payload(NFT_PAYLOAD_NETWORK_HEADER, place.send ? offsetof(ip6_hdr, ip6_dst) : offsetof(ip6_hdr, ip6_src),
                     sizeof(in6_addr));
    add(lose(ip6.look_up(sets[2].name, first_id + 2)), comments[3]);
}

bool is_whole(const NftTableRecord& table, const DropPlace& place) {
    const auto has = [](const auto& all, const auto& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    const auto sets = drop_sets(place);
    std::vector<std::string> comments;
    for (const NftRuleRecord& rule : table.rules) {
        if (rule.chain == place.chain.name) {
            comments.push_back(rule.comment);
        }
    }
    return has(table.chains, place.chain) &&
           std::all_of(sets.begin(), sets.end(), [&](const NftSet& each) { return has(table.sets, each); }) &&
           comments == comments_of(place);
}

bool has_any(const NftTableRecord& table, const DropPlace& place) {
    std::vector<std::string> messages;
    delete_place(messages, table, place);
    return !messages.empty();
}

void delete_place(std::vector<std::string>& messages, const NftTableRecord& table, const DropPlace& place) {
    const auto has = [](const auto& all, const std::string& name) {
        return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
    };
    if (has(table.chains, place.chain.name)) {
        messages.push_back(nft_delete_chain(place.table, place.chain.name));
    }
    for (const NftSet& each : drop_sets(place)) {
        if (has(table.sets, each.name)) {
            messages.push_back(nft_delete_set(place.table, each.name));
        }
    }
}

Result<std::string> parse_peer(const std::string& text) {
    const auto wrong = [&](std::string_view why) {
        return fail(
            Error(ErrorKind::kInput, fmt::format("\"{}\" is no peer to cut off: {}", text, why)).with("peer", text));
    };
    in_addr ip4{};
    in6_addr ip6{};
    if (inet_pton(AF_INET, text.c_str(), &ip4) != 1) {
        if (inet_pton(AF_INET6, text.c_str(), &ip6) != 1) {
            return wrong("it is neither an IPv4 nor an IPv6 address");
        }
        if (!IN6_IS_ADDR_V4MAPPED(&ip6)) {
            return IN6_IS_ADDR_UNSPECIFIED(&ip6) || IN6_IS_ADDR_MULTICAST(&ip6)
                       ? Result<std::string>(wrong("it is the address of no single host"))
                       : memory_of(ip6);
        }
        ip4.s_addr = ip6.s6_addr32[3];
    }
    if (ip4.s_addr == INADDR_ANY || IN_MULTICAST(ntohl(ip4.s_addr)) || ip4.s_addr == INADDR_BROADCAST) {
        return wrong("it is the address of no single host");
    }
    return memory_of(ip4);
}

} // namespace railbreak::injectors
