#include "injectors/restore.hpp"

#include <fmt/format.h>

#include "injectors/link_state.hpp"
#include "injectors/port_cap.hpp"

namespace railbreak::injectors {

namespace {

constexpr auto kCarrierBudget = std::chrono::seconds(10); ///< a real port trains for seconds
constexpr auto kSettleBudget = std::chrono::seconds(3);

void append(std::vector<std::string>& notes, std::vector<std::string> more) {
    notes.insert(notes.end(), more.begin(), more.end());
}

} // namespace

Result<std::vector<LinkRecord>> find_device(HostOps& ops, const DeviceIdentity& device) {
    const auto links = ops.links();
    if (!links) {
        return tl::unexpected(links.error());
    }
    for (const LinkRecord& link : *links) {
        // A name and an address may both be changed by people; the index then still tells, unless all three differ.
        if (link.ifindex == device.ifindex &&
            (link.mac == device.mac || link.name == device.name ||
             (!device.permanent_mac.empty() && link.permanent_mac == device.permanent_mac))) {
            return std::vector{link};
        }
    }
    return std::vector<LinkRecord>();
}

Result<std::vector<std::string>> restore_and_verify_link(HostOps& ops, std::int32_t ifindex, const LinkState& former) {
    if (!former.known) {
        return std::vector<std::string>();
    }
    const Deadline carrier = Deadline::after(kCarrierBudget);
    auto restored = restore_link(ops, ifindex, former, carrier);
    const Deadline settle = Deadline::after(kSettleBudget);
    for (;;) {
        auto verified = restored ? verify_link(ops, ifindex, former) : tl::unexpected(restored.error());
        if (verified || settle.passed()) {
            return verified;
        }
        if (auto event = ops.wait_event(settle); !event) {
            return tl::unexpected(event.error());
        }
        restored = restore_link(ops, ifindex, former, carrier);
    }
}

Result<std::vector<std::string>> restore_entry(HostOps& ops, const JournalEntry& entry) {
    std::vector<std::string> notes;
    const auto boot_id = ops.boot_id();
    const auto netns = ops.netns();
    if (!boot_id || !netns) {
        return tl::unexpected(boot_id ? netns.error() : boot_id.error());
    }
    if (*boot_id != entry.boot_id) {
        return std::vector<std::string>{"the host was restarted since; nothing is left to undo"};
    }
    if (*netns != NetnsIdentity{entry.device.netns_inode, entry.device.netns_cookie}) {
        return std::vector<std::string>{"the network namespace is gone; nothing is left to undo"};
    }
    const auto device = find_device(ops, entry.device);
    if (!device) {
        return tl::unexpected(device.error());
    }
    const std::int32_t ifindex = entry.device.ifindex;
    if (device->empty()) {
        notes.push_back(fmt::format("interface {} is gone; nothing is left to undo on it", entry.device.name));
        auto removed = remove_orphan_ifb(ops, ifindex, entry.port);
        return removed ? Result<std::vector<std::string>>(notes) : tl::unexpected(removed.error());
    }
    // Each half is tried even when the other fails; the first failure is reported.
    auto send = set_send_cap(ops, ifindex, entry.port, std::nullopt);
    auto receive = set_receive_cap(ops, ifindex, entry.port, std::nullopt);
    auto link = restore_and_verify_link(ops, ifindex, entry.link);
    for (const auto* half : {&send, &receive}) {
        if (!*half) {
            return tl::unexpected(half->error());
        }
    }
    auto port = verify_port(ops, ifindex, entry.port);
    if (!link || !port) {
        return tl::unexpected(link ? port.error() : link.error());
    }
    append(notes, std::move(*link));
    append(notes, std::move(*port));
    return notes;
}

} // namespace railbreak::injectors
