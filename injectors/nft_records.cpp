#include "injectors/nft_records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <endian.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netlink/attr.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

std::string_view payload(const nlattr& attribute) {
    return {static_cast<const char*>(nla_data(&attribute)), static_cast<std::size_t>(nla_len(&attribute))};
}

template <class Each> void for_each(std::string_view bytes, Each each) {
    int left = static_cast<int>(bytes.size());
    for (auto* a = reinterpret_cast<const nlattr*>(bytes.data()); nla_ok(a, left); a = nla_next(a, &left)) {
        each(nla_type(a), payload(*a));
    }
}

/// The attributes of a message, behind its headers.
std::string_view attributes_of(std::string_view message) {
    constexpr std::size_t kHeaders = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(nfgenmsg));
    return message.substr(std::min(message.size(), kHeaders));
}

std::string text(std::string_view bytes) {
    return std::string(bytes.substr(0, bytes.find('\0')));
}

std::uint32_t number(std::string_view bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return ntohl(value);
}

std::uint64_t long_number(std::string_view bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    return be64toh(value);
}

struct NamedChain {
    std::string table;
    NftChain chain;
};

NamedChain chain_of(std::string_view message) {
    NamedChain found;
    found.chain.hook = UINT32_MAX;
    for_each(attributes_of(message), [&](int type, std::string_view value) {
        switch (type) {
        case NFTA_CHAIN_TABLE: found.table = text(value); break;
        case NFTA_CHAIN_NAME: found.chain.name = text(value); break;
        case NFTA_CHAIN_HOOK:
            for_each(value, [&](int inner, std::string_view part) {
                switch (inner) {
                case NFTA_HOOK_HOOKNUM: found.chain.hook = number(part); break;
                case NFTA_HOOK_PRIORITY: found.chain.priority = static_cast<std::int32_t>(number(part)); break;
                case NFTA_HOOK_DEV: found.chain.device = text(part); break;
                default: break; // foreign enum: NFTA_HOOK_* of the kernel
                }
            });
            break;
        default: break; // foreign enum: NFTA_CHAIN_* of the kernel
        }
    });
    return found;
}

NftSet set_of(std::string_view message) {
    NftSet set;
    for_each(attributes_of(message), [&](int type, std::string_view value) {
        switch (type) {
        case NFTA_SET_NAME: set.name = text(value); break;
        case NFTA_SET_KEY_TYPE: set.key_type = number(value); break;
        case NFTA_SET_KEY_LEN: set.key_bytes = number(value); break;
        default: break; // foreign enum: NFTA_SET_* of the kernel
        }
    });
    return set;
}

/// Packets and bytes of the counter among a rule's expressions.
void read_counter(std::string_view expressions, NftRuleRecord& rule) {
    for_each(expressions, [&](int, std::string_view expression) {
        std::string name;
        std::string_view data;
        for_each(expression, [&](int type, std::string_view value) {
            if (type == NFTA_EXPR_NAME) {
                name = text(value);
            } else if (type == NFTA_EXPR_DATA) {
                data = value;
            }
        });
        if (name != "counter") {
            return;
        }
        for_each(data, [&](int type, std::string_view value) {
            if (type == NFTA_COUNTER_PACKETS) {
                rule.packets = long_number(value);
            } else if (type == NFTA_COUNTER_BYTES) {
                rule.bytes = long_number(value);
            }
        });
    });
}

NftRuleRecord rule_of(std::string_view message) {
    NftRuleRecord rule;
    for_each(attributes_of(message), [&](int type, std::string_view value) {
        switch (type) {
        case NFTA_RULE_CHAIN: rule.chain = text(value); break;
        case NFTA_RULE_USERDATA: rule.comment = nft_comment_of(value); break;
        case NFTA_RULE_EXPRESSIONS: read_counter(value, rule); break;
        default: break; // foreign enum: NFTA_RULE_* of the kernel
        }
    });
    return rule;
}

NftElementRecord element_of(std::string_view bytes) {
    NftElementRecord element;
    for_each(bytes, [&](int type, std::string_view value) {
        if (type == NFTA_SET_ELEM_KEY) {
            for_each(value, [&](int, std::string_view key) { element.key = std::string(key); });
        } else if (type == NFTA_SET_ELEM_EXPIRATION) {
            element.left = std::chrono::milliseconds(long_number(value));
        }
    });
    return element;
}

} // namespace

Result<std::uint32_t> read_nft_generation(HostOps& ops) {
    return ops.nft_list(nft_get_generation()).map([](const std::vector<std::string>& answers) {
        std::uint32_t generation = 0;
        for (const std::string& each : answers) {
            for_each(attributes_of(each), [&](int type, std::string_view value) {
                if (type == NFTA_GEN_ID) {
                    generation = number(value);
                }
            });
        }
        return generation;
    });
}

Result<NftTableRecord> read_nft_table(HostOps& ops, const NftTable& table) {
    NftTableRecord record;
    const auto found = ops.nft_list(nft_get_table(table));
    if (!found) {
        return kernel_errno(found.error()) == ENOENT ? Result<NftTableRecord>(record) : tl::unexpected(found.error());
    }
    record.present = true;
    for (const std::string& each : *found) {
        for_each(attributes_of(each), [&](int type, std::string_view value) {
            if (type == NFTA_TABLE_USERDATA) {
                record.comment = nft_comment_of(value);
            }
        });
    }
    const auto chains = ops.nft_list(nft_list_chains(table.family));
    const auto sets = ops.nft_list(nft_list_sets(table));
    const auto rules = ops.nft_list(nft_list_rules(table));
    for (const auto* each : {&chains, &sets, &rules}) {
        if (!*each) {
            return tl::unexpected(each->error());
        }
    }
    for (const std::string& each : *chains) {
        if (NamedChain chain = chain_of(each); chain.table == table.name) {
            record.chains.push_back(std::move(chain.chain));
        }
    }
    std::transform(sets->begin(), sets->end(), std::back_inserter(record.sets), set_of);
    std::transform(rules->begin(), rules->end(), std::back_inserter(record.rules), rule_of);
    return record;
}

Result<std::vector<NftElementRecord>> read_nft_elements(HostOps& ops, const NftTable& table, const std::string& set) {
    const auto answers = ops.nft_list(nft_list_elements(table, set));
    if (!answers) {
        return tl::unexpected(answers.error());
    }
    std::vector<NftElementRecord> elements;
    for (const std::string& each : *answers) {
        for_each(attributes_of(each), [&](int type, std::string_view value) {
            if (type == NFTA_SET_ELEM_LIST_ELEMENTS) {
                for_each(value, [&](int, std::string_view bytes) { elements.push_back(element_of(bytes)); });
            }
        });
    }
    std::sort(elements.begin(), elements.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return elements;
}

} // namespace railbreak::injectors
