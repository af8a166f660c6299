#include "injectors/fault.hpp"

#include "injectors/wire.hpp"

namespace railbreak::injectors {

std::string_view to_string(FaultKind kind) {
    switch (kind) {
    case FaultKind::kCap: return "cap";
    case FaultKind::kLinkDown: return "link_down";
    }
    return "?";
}

std::string_view to_string(Direction direction) {
    switch (direction) {
    case Direction::kSend: return "send";
    case Direction::kReceive: return "receive";
    case Direction::kBoth: return "both";
    }
    return "?";
}

bool same_device(const DeviceIdentity& a, const DeviceIdentity& b) {
    // An index is not given twice while a namespace lives; name and address may be changed by anyone.
    return a.ifindex == b.ifindex && a.netns_inode == b.netns_inode && a.netns_cookie == b.netns_cookie;
}

std::string encode_entry(const JournalEntry& entry) {
    Encoder out;
    out.put(entry.id);
    out.put(static_cast<std::uint8_t>(entry.kind));
    out.put(static_cast<std::uint8_t>(entry.direction));
    out.put(entry.rate_bits_per_s);
    out.put_string(entry.device.name);
    out.put(entry.device.ifindex);
    out.put_string(entry.device.mac);
    out.put_string(entry.device.permanent_mac);
    out.put(entry.device.netns_inode);
    out.put(entry.device.netns_cookie);
    out.put_string(entry.boot_id);
    out.put(entry.lease_end_boottime.count());
    out.put(static_cast<std::uint8_t>(entry.port.send));
    out.put(static_cast<std::uint8_t>(entry.port.receive));
    out.put_string(entry.port.root_kind);
    out.put(entry.port.root_handle);
    out.put(entry.port.lab_class.rate.bits_per_s());
    out.put(entry.port.lab_class.ceil.bits_per_s());
    out.put(entry.port.lab_class.buffer_ticks);
    out.put(entry.port.lab_class.cbuffer_ticks);
    out.put(entry.port.lab_class.quantum);
    out.put_string(entry.port.owner);
    out.put(static_cast<std::uint8_t>(entry.link.known));
    out.put(entry.link.flags);
    out.put(entry.link.mtu);
    out.put_strings(entry.link.addresses);
    out.put_strings(entry.link.routes);
    out.put_strings(entry.link.neighbours);
    return out.take();
}

Result<JournalEntry> decode_entry(std::string_view bytes) {
    Decoder in(bytes);
    JournalEntry entry;
    entry.id = in.get<std::int32_t>();
    const auto kind = in.get<std::uint8_t>();
    const auto direction = in.get<std::uint8_t>();
    entry.rate_bits_per_s = in.get<std::uint64_t>();
    entry.device.name = in.get_string();
    entry.device.ifindex = in.get<std::int32_t>();
    entry.device.mac = in.get_string();
    entry.device.permanent_mac = in.get_string();
    entry.device.netns_inode = in.get<std::uint64_t>();
    entry.device.netns_cookie = in.get<std::uint64_t>();
    entry.boot_id = in.get_string();
    entry.lease_end_boottime = Nanoseconds(in.get<std::int64_t>());
    const auto send = in.get<std::uint8_t>();
    entry.port.receive = in.get<std::uint8_t>() != 0;
    entry.port.root_kind = in.get_string();
    entry.port.root_handle = in.get<std::uint32_t>();
    entry.port.lab_class.rate = BitRate::bits_per_s(in.get<std::uint64_t>());
    entry.port.lab_class.ceil = BitRate::bits_per_s(in.get<std::uint64_t>());
    entry.port.lab_class.buffer_ticks = in.get<std::uint32_t>();
    entry.port.lab_class.cbuffer_ticks = in.get<std::uint32_t>();
    entry.port.lab_class.quantum = in.get<std::uint32_t>();
    entry.port.owner = in.get_string();
    entry.link.known = in.get<std::uint8_t>() != 0;
    entry.link.flags = in.get<std::uint32_t>();
    entry.link.mtu = in.get<std::uint32_t>();
    entry.link.addresses = in.get_strings();
    entry.link.routes = in.get_strings();
    entry.link.neighbours = in.get_strings();
    if (!in.finished() || kind > static_cast<std::uint8_t>(FaultKind::kLinkDown) ||
        direction > static_cast<std::uint8_t>(Direction::kBoth) ||
        send > static_cast<std::uint8_t>(SendMechanism::kOwnRoot)) {
        return fail(ErrorKind::kInput, "the journal entry is not one that this version wrote");
    }
    entry.kind = static_cast<FaultKind>(kind);
    entry.direction = static_cast<Direction>(direction);
    entry.port.send = static_cast<SendMechanism>(send);
    return entry;
}

} // namespace railbreak::injectors
