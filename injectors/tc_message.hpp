// What the builders and readers of traffic-control messages share.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <linux/rtnetlink.h>
#include <netlink/attr.h>

#include "injectors/netlink.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// Flags of "add": creates and refuses to replace. "Change" has none.
inline constexpr int kTcAdd = NLM_F_CREATE | NLM_F_EXCL;

/// Where in a device's tree a message acts.
struct TcPlace {
    int ifindex = 0;
    TcHandle parent = 0;
    TcHandle handle = 0;
    std::uint32_t info = 0; ///< priority and protocol of a filter
};

/// The filter of that priority on a clsact qdisc, for every protocol.
[[nodiscard]] TcPlace filter_place(int ifindex, TcDirection direction, std::uint16_t priority);

/// A message of `type` about that place; no kind when it is empty.
[[nodiscard]] NetlinkMessage tc_message(int type, int flags, const TcPlace& place, std::string_view kind);

/// Attributes by their number; null for those that are not there.
template <std::size_t Size> using TcAttributes = std::array<nlattr*, Size>;

/// Attributes of one traffic-control record of the device, or false when it is about another device.
[[nodiscard]] bool parse_tc_record(const nlmsghdr& record, int ifindex, TcAttributes<TCA_MAX + 1>& attributes);

/// "htb", "bpf", ...; empty when the record names none.
[[nodiscard]] std::string tc_kind_of(const TcAttributes<TCA_MAX + 1>& attributes);

/// Copies a fixed-size structure out of an attribute; a short one is left zero beyond its end.
template <class T> [[nodiscard]] T copy_attribute(const nlattr* attribute) {
    T value{};
    if (attribute != nullptr && nla_len(attribute) > 0) {
        std::memcpy(&value, nla_data(attribute), std::min(sizeof value, static_cast<std::size_t>(nla_len(attribute))));
    }
    return value;
}

} // namespace railbreak::injectors
