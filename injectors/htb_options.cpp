#include "injectors/htb_options.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include <linux/if_ether.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>

namespace railbreak::injectors {

namespace {

constexpr std::uint64_t kNsPerTick = 64; // the kernel's PSCHED_SHIFT of 6
constexpr std::uint64_t kNsPerS = 1'000'000'000;
constexpr std::uint64_t kLeastBurst = 16'000;
constexpr std::uint32_t kQuantum = 60'000;
constexpr std::uint32_t kHtbVersion = 3;

void put_attribute(std::string& out, int type, const void* data, std::size_t size) {
    nlattr header{};
    header.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + size);
    header.nla_type = static_cast<std::uint16_t>(type);
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(static_cast<const char*>(data), size);
    out.append(NLA_ALIGN(size) - size, '\0');
}

const nlattr* find_attribute(std::string_view options, int type) {
    return nla_find(reinterpret_cast<const nlattr*>(options.data()), static_cast<int>(options.size()), type);
}

std::uint32_t clamp32(std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

/// Time to send `bytes` at the rate, in scheduler ticks, at least one.
std::uint32_t burst_ticks(std::uint64_t bytes, std::uint64_t bytes_per_s) {
    const auto ns = static_cast<std::uint64_t>(static_cast<__uint128_t>(bytes) * kNsPerS / bytes_per_s);
    return clamp32(std::max<std::uint64_t>(1, ns / kNsPerTick));
}

Result<tc_htb_opt> read_parms(std::string_view options) {
    const nlattr* parms = find_attribute(options, TCA_HTB_PARMS);
    tc_htb_opt read{};
    if (parms == nullptr || nla_len(parms) < static_cast<int>(sizeof read)) {
        return fail(ErrorKind::kHarness, "the kernel describes an htb class without its parameters");
    }
    std::memcpy(&read, nla_data(parms), sizeof read);
    return read;
}

std::uint64_t rate_of(std::string_view options, const tc_htb_opt& parms) {
    std::uint64_t wide = parms.rate.rate;
    if (const nlattr* attribute = find_attribute(options, TCA_HTB_RATE64);
        attribute != nullptr && nla_len(attribute) >= static_cast<int>(sizeof wide)) {
        std::memcpy(&wide, nla_data(attribute), sizeof wide);
    }
    return wide;
}

std::string with_parms(tc_htb_opt parms, std::uint64_t bytes_per_s, std::uint64_t burst, std::uint64_t cburst) {
    bytes_per_s = std::max<std::uint64_t>(1, bytes_per_s);
    parms.rate.rate = parms.ceil.rate = clamp32(bytes_per_s);
    parms.rate.linklayer = parms.ceil.linklayer = TC_LINKLAYER_ETHERNET;
    parms.buffer = burst_ticks(burst, bytes_per_s);
    parms.cbuffer = burst_ticks(cburst, bytes_per_s);
    std::string out;
    put_attribute(out, TCA_HTB_PARMS, &parms, sizeof parms);
    if (bytes_per_s > std::numeric_limits<std::uint32_t>::max()) {
        put_attribute(out, TCA_HTB_RATE64, &bytes_per_s, sizeof bytes_per_s);
        put_attribute(out, TCA_HTB_CEIL64, &bytes_per_s, sizeof bytes_per_s);
    }
    return out;
}

} // namespace

std::string htb_root_options() {
    tc_htb_glob global{};
    global.version = kHtbVersion;
    global.rate2quantum = 10;
    global.defcls = 1;
    std::string out;
    put_attribute(out, TCA_HTB_INIT, &global, sizeof global);
    return out;
}

std::string htb_class_options(BitRate rate) {
    const std::uint64_t burst = std::max(kLeastBurst, rate.bytes_per_s() / 4000);
    tc_htb_opt parms{};
    parms.quantum = kQuantum;
    return with_parms(parms, rate.bytes_per_s(), burst, burst);
}

Result<std::string> htb_with_rate(std::string_view options, BitRate rate) {
    const auto parms = read_parms(options);
    if (!parms) {
        return tl::unexpected(parms.error());
    }
    const std::uint64_t former = std::max<std::uint64_t>(1, rate_of(options, *parms));
    // The kernel keeps a burst as the time it takes; as bytes it must not shrink below what may be queued in one piece.
    const auto bytes = [&](std::uint32_t ticks) {
        return static_cast<std::uint64_t>(static_cast<__uint128_t>(ticks) * kNsPerTick * former / kNsPerS);
    };
    return with_parms(*parms, rate.bytes_per_s(), bytes(parms->buffer), bytes(parms->cbuffer));
}

Result<BitRate> htb_rate(std::string_view options) {
    const auto parms = read_parms(options);
    if (!parms) {
        return tl::unexpected(parms.error());
    }
    return BitRate::bits_per_s(rate_of(options, *parms) * 8);
}

std::string bfifo_options(BitRate rate) {
    tc_fifo_qopt limit{};
    limit.limit = clamp32(std::max<std::uint64_t>(200'000, rate.bytes_per_s() / 50));
    return std::string(reinterpret_cast<const char*>(&limit), sizeof limit);
}

} // namespace railbreak::injectors
