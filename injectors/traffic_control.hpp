// Typed queueing-discipline, class, filter and ifb messages: what a bandwidth cap is made of.
//
// Rates are 64 bits wide everywhere (TCA_HTB_RATE64, TCA_TBF_RATE64), so 400 Gbit/s is as exact as 1 Mbit/s. Every
// function is one netlink request with one meaning: "add" creates and refuses to replace (errno EEXIST), "change"
// alters in place and refuses to create (errno ENOENT), "delete" names the handle, so that nothing foreign is removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "injectors/fault.hpp"
#include "injectors/netlink.hpp"

namespace railbreak::injectors {

/// A qdisc, class or filter handle: major number in the upper 16 bits, minor in the lower (TC_H_MAKE).
using TcHandle = std::uint32_t;

/// Composes a handle from its two numbers, as in "1:10".
[[nodiscard]] constexpr TcHandle tc_handle(std::uint16_t major, std::uint16_t minor) {
    return (static_cast<TcHandle>(major) << 16U) | minor;
}
/// "fb01:1", as tc prints it.
[[nodiscard]] std::string to_tc_string(TcHandle handle);

/// Parent that means "the root of the device".
inline constexpr TcHandle kTcRoot = 0xFFFFFFFFU;
/// Parent and handle of a clsact qdisc.
inline constexpr TcHandle kTcClsactParent = 0xFFFFFFF1U;
inline constexpr TcHandle kTcClsactHandle = 0xFFFF0000U;

/// What the lab puts on each NIC and on each switch port: an htb with one class whose child is a bfifo.
inline constexpr TcHandle kLabHtb = tc_handle(0xfb01, 0);
inline constexpr TcHandle kLabHtbClass = tc_handle(0xfb01, 1);
inline constexpr TcHandle kLabFifo = tc_handle(0xfb02, 0);

/// Scheduler ticks of 64 ns (PSCHED_SHIFT, /proc/net/psched) that `burst` takes at `rate`, rounded up, so that the
/// burst read back is never below the one asked for. `rate` must be at least 8 bit/s.
[[nodiscard]] std::uint32_t burst_ticks(ByteCount burst, BitRate rate);
/// Bytes that pass in `ticks` at `rate`, rounded down: what a burst that was read back means.
[[nodiscard]] ByteCount burst_bytes(std::uint32_t ticks, BitRate rate);

/// Parameters of one htb class exactly as the kernel keeps them (whole bytes per second; ticks).
struct HtbClass {
    BitRate rate;
    BitRate ceil;
    std::uint32_t buffer_ticks = 0;  ///< burst at `rate`
    std::uint32_t cbuffer_ticks = 0; ///< burst at `ceil`
    std::uint32_t quantum = 0;       ///< bytes served per turn among siblings
    bool operator==(const HtbClass&) const = default;
};
/// A class of one rate: ceil = rate (rounded down to whole bytes per second), cburst = burst.
[[nodiscard]] HtbClass make_htb_class(BitRate rate, ByteCount burst, std::uint32_t quantum);

/// One class of an htb with its place in the tree.
struct HtbClassRecord {
    TcHandle handle = 0;
    TcHandle parent = 0;
    HtbClass parameters;
};

/// Parameters of a tbf: the burst and the queue's limit in bytes.
struct TbfShape {
    BitRate rate;
    ByteCount burst;
    ByteCount limit;
    bool operator==(const TbfShape&) const = default;
};

/// Parameters of a netem qdisc: what happens to packets, and how many it holds.
struct NetemShape {
    PacketTreatment treatment;
    std::uint32_t limit_packets = 1000;
    bool operator==(const NetemShape&) const = default;
};

/// One qdisc of a device, as listed by the kernel.
struct QdiscRecord {
    std::string kind; ///< "htb", "bfifo", "noqueue", ...
    TcHandle handle = 0;
    TcHandle parent = 0;
    std::uint64_t sent_bytes = 0;
    std::uint32_t sent_packets = 0; ///< after segmentation of what was queued as one
    std::uint32_t backlog_bytes = 0;
    std::uint32_t dropped_packets = 0;
    std::optional<ByteCount> fifo_limit;      ///< of a bfifo
    std::optional<std::uint32_t> htb_default; ///< minor number of an htb's default class
    std::optional<BitRate> tbf_rate;          ///< of a tbf
    std::optional<NetemShape> netem;          ///< of a netem, its probabilities rounded to millionths
};

/// Puts an htb with handle `handle` at the root; unclassified packets go to the class `default_minor`.
[[nodiscard]] Result<void> add_htb(NetlinkChannel& channel, int ifindex, TcHandle handle, std::uint16_t default_minor);
/// Adds a class under the htb `parent` (or under one of its classes).
[[nodiscard]] Result<void> add_htb_class(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                         const HtbClass& parameters);
/// Changes a class in place: one call, effective at once; queued packets and counters stay.
[[nodiscard]] Result<void> change_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle,
                                            const HtbClass& parameters);
/// Removes a class that has no child classes; its fifo goes with it.
[[nodiscard]] Result<void> delete_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle);
/// All htb classes of the device.
[[nodiscard]] Result<std::vector<HtbClassRecord>> list_htb_classes(NetlinkChannel& channel, int ifindex);
/// One class. errno ENOENT when the device has no such class.
[[nodiscard]] Result<HtbClass> read_htb_class(NetlinkChannel& channel, int ifindex, TcHandle handle);

/// Adds a first-in first-out queue of at most `limit` bytes under `parent` (a class, or kTcRoot).
[[nodiscard]] Result<void> add_bfifo(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                     ByteCount limit);
/// Adds a token bucket under `parent`. The burst should hold two packets of the device's gso_max_size.
[[nodiscard]] Result<void> add_tbf(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                   const TbfShape& shape);
/// Changes a token bucket in place. Never shrink the burst below a packet already queued: it would block for ever.
[[nodiscard]] Result<void> change_tbf(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                      const TbfShape& shape);
/// Adds a netem under `parent`; change sends every attribute, for what is not sent would stay as it was.
[[nodiscard]] Result<void> add_netem(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                     const NetemShape& shape);
[[nodiscard]] Result<void> change_netem(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle,
                                        const NetemShape& shape);
/// Removes the qdisc `handle` under `parent`. When another qdisc has taken its place the kernel answers EINVAL or
/// ENOENT and nothing changes.
[[nodiscard]] Result<void> delete_qdisc(NetlinkChannel& channel, int ifindex, TcHandle parent, TcHandle handle);
/// All qdiscs of the device, those that the kernel usually hides included.
[[nodiscard]] Result<std::vector<QdiscRecord>> list_qdiscs(NetlinkChannel& channel, int ifindex);

/// Which packets a filter on a clsact sees.
enum class TcDirection : std::uint8_t {
    kIngress, ///< arriving at the device
    kEgress,  ///< leaving through the device
};
/// Adds the clsact qdisc that carries filters without touching the root. errno EEXIST when there is one already.
[[nodiscard]] Result<void> add_clsact(NetlinkChannel& channel, int ifindex);
/// Removes it with all its filters.
[[nodiscard]] Result<void> delete_clsact(NetlinkChannel& channel, int ifindex);
/// Redirects every packet of one direction to the egress of `target_ifindex` (u32 matching everything + mirred). The
/// filter is named by its `priority` (1..65535), which must be free.
[[nodiscard]] Result<void> add_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                        std::uint16_t priority, int target_ifindex);
/// Removes the redirect of that priority; only a u32 filter is removed.
[[nodiscard]] Result<void> delete_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                           std::uint16_t priority);
/// True when a u32 filter of that priority is there.
[[nodiscard]] Result<bool> has_redirect(NetlinkChannel& channel, int ifindex, TcDirection direction,
                                        std::uint16_t priority);

/// Makes an ifb device that is up and carries `alias` (IFLA_IFALIAS, by which leftovers are found); gives its index.
[[nodiscard]] Result<int> add_ifb(NetlinkChannel& channel, std::string_view name, std::string_view alias);
/// Removes a device. Remove redirects to it first: a redirect to a device that is gone drops every packet.
[[nodiscard]] Result<void> delete_link(NetlinkChannel& channel, int ifindex);

} // namespace railbreak::injectors
