// Objects of nf_tables as the kernel lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "injectors/host_ops.hpp"
#include "injectors/nft_messages.hpp"

namespace railbreak::injectors {

/// A rule by its comment and counters.
struct NftRuleRecord {
    std::string chain;
    std::string comment;
    std::uint64_t packets = 0; ///< of its first counter
    std::uint64_t bytes = 0;
};

/// An element of a set.
struct NftElementRecord {
    std::string key;
    Nanoseconds left{0}; ///< until it ends; 0 when it stays for ever
};

/// A table and what is in it, without the elements of its sets.
struct NftTableRecord {
    bool present = false;
    std::string comment;
    std::vector<NftChain> chains; ///< chains without a hook: `hook` is UINT32_MAX
    std::vector<NftSet> sets;
    std::vector<NftRuleRecord> rules;
};

/// Number of the present generation of all tables of the namespace, for nft_begin().
[[nodiscard]] Result<std::uint32_t> read_nft_generation(HostOps& ops);
/// Reads a table; `present` is false where there is none.
[[nodiscard]] Result<NftTableRecord> read_nft_table(HostOps& ops, const NftTable& table);
/// Elements of a set, sorted by key.
[[nodiscard]] Result<std::vector<NftElementRecord>> read_nft_elements(HostOps& ops, const NftTable& table,
                                                                      const std::string& set);

} // namespace railbreak::injectors
