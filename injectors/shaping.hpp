// What the rate facets share: handles of what railbreak builds, ways to look at a device's qdiscs, and the small tree
// of htb, one class and a bfifo that every cap is made of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/facet.hpp"

namespace railbreak::injectors {

/// Handles of what railbreak builds (the lab's own are in traffic_control.hpp). Handle and kind together say whose it
/// is.
inline constexpr TcHandle kOwnHtb = tc_handle(0xfa01, 0);
inline constexpr TcHandle kOwnHtbClass = tc_handle(0xfa01, 1);
inline constexpr TcHandle kOwnFifo = tc_handle(0xfa02, 0);
inline constexpr TcHandle kOwnNetem = tc_handle(0xfa03, 0);
/// Priorities of our filters on a clsact: the program first, the redirect last.
inline constexpr std::uint16_t kProgramPriority = 0xfa00;
inline constexpr std::uint16_t kRedirectPriority = 0xfa01;
/// Every tag of what is made starts with it.
inline constexpr std::string_view kOwnerPrefix = "railbreak";

/// The record with this handle, or null.
template <class Record> const Record* find_handle(const std::vector<Record>& records, TcHandle handle) {
    for (const Record& each : records) {
        if (each.handle == handle) {
            return &each;
        }
    }
    return nullptr;
}

/// The root qdisc among a device's, or null.
[[nodiscard]] const QdiscRecord* find_root(const std::vector<QdiscRecord>& qdiscs);
/// True for an htb of that handle.
[[nodiscard]] bool is_htb(const QdiscRecord* record, TcHandle handle);
/// "htb fb01:".
[[nodiscard]] std::string describe_qdisc(const QdiscRecord& qdisc);

/// kRefused: something that railbreak did not make is in the way.
[[nodiscard]] tl::unexpected<Error> refuse_foreign(const DeviceIdentity& device, std::string_view what);
/// kRefused: something of another railbreak run is in the way.
[[nodiscard]] tl::unexpected<Error> refuse_taken(const DeviceIdentity& device, std::string_view what);

/// Success when the object was gone already (ENOENT, ENODEV, EINVAL for a handle that does not exist): undo is
/// idempotent, and what is left is read back afterwards.
[[nodiscard]] Result<void> gone_is_fine(Result<void> done);
/// Success when it was there already (EEXIST): apply may be repeated.
[[nodiscard]] Result<void> present_is_fine(Result<void> done);

/// The class of a cap of ours: burst 250 us of the rate, at least 16 kB.
[[nodiscard]] HtbClass own_class(BitRate rate);
/// Bytes that a cap's queue holds: 20 ms of the rate, at least 200 kB.
[[nodiscard]] ByteCount queue_limit(BitRate rate);

/// An htb root with one class of that rate on the device; whatever part is there already stays, the class gets the
/// rate.
[[nodiscard]] Result<void> ensure_htb_class(HostOps& ops, std::int32_t ifindex, BitRate rate);
/// The same with a bfifo under the class.
[[nodiscard]] Result<void> ensure_htb(HostOps& ops, std::int32_t ifindex, BitRate rate);

/// Rate of the class with that handle; empty when there is none.
[[nodiscard]] Result<std::optional<BitRate>> class_rate(HostOps& ops, std::int32_t ifindex, TcHandle handle);

/// An ifb device of ours: named "rbifb" + `letter` + index of the NIC it serves. One without an alias is a creation
/// that was interrupted, so it counts. Empty when there is none.
[[nodiscard]] Result<std::optional<LinkRecord>> find_own_ifb(HostOps& ops, const std::string& name);
/// The same, made with the alias `owner` when missing. It is left down: the caller puts its qdisc on first.
[[nodiscard]] Result<LinkRecord> ensure_ifb(HostOps& ops, const std::string& name, const std::string& owner);

/// Parent of the filters that see one direction of a NIC.
[[nodiscard]] TcHandle clsact_hook(TcDirection direction);
/// True for our redirect, or our program, among filters.
[[nodiscard]] bool is_own_filter(const FilterRecord& filter, TcDirection direction, std::uint16_t priority);

/// Adds a clsact where there is none.
[[nodiscard]] Result<void> ensure_clsact(HostOps& ops, std::int32_t ifindex);
/// Removes our filter of that direction and priority where it is there; then the clsact when no filter is left on it,
/// unless it is to be kept. Filters of others keep it in any case.
[[nodiscard]] Result<void> remove_own_filter(HostOps& ops, std::int32_t ifindex, TcDirection direction,
                                             std::uint16_t priority, bool keep_clsact);

} // namespace railbreak::injectors
