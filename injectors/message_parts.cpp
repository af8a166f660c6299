#include "injectors/message_parts.hpp"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>

namespace railbreak::injectors {

namespace {

std::size_t family_header_size(int type) {
    switch (type) {
    case RTM_NEWADDR: return sizeof(ifaddrmsg);
    case RTM_NEWROUTE: return sizeof(rtmsg);
    case RTM_NEWNEIGH: return sizeof(ndmsg);
    default: return 0; // foreign enum: RTM_* of the kernel
    }
}

} // namespace

nlmsghdr head_of(std::string_view message) {
    nlmsghdr header{};
    std::memcpy(&header, message.data(), std::min(message.size(), sizeof header));
    return header;
}

Parts take_apart(std::string_view message) {
    Parts parts;
    const std::size_t start = NLMSG_HDRLEN + NLMSG_ALIGN(family_header_size(head_of(message).nlmsg_type));
    parts.head = std::string(message.substr(0, start));
    if (message.size() <= start) {
        return parts;
    }
    int left = static_cast<int>(message.size() - start);
    for (auto* a = reinterpret_cast<const nlattr*>(message.data() + start); nla_ok(a, left); a = nla_next(a, &left)) {
        parts.attributes.emplace_back(
            nla_type(a), std::string(static_cast<const char*>(nla_data(a)), static_cast<std::size_t>(nla_len(a))));
    }
    return parts;
}

std::string put_together(const Parts& parts) {
    std::string out = parts.head;
    for (const auto& [type, payload] : parts.attributes) {
        nlattr header{};
        header.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + payload.size());
        header.nla_type = static_cast<std::uint16_t>(type);
        out.append(reinterpret_cast<const char*>(&header), sizeof header);
        out.append(payload);
        out.append(NLA_ALIGN(payload.size()) - payload.size(), '\0');
    }
    nlmsghdr header = head_of(out);
    header.nlmsg_len = static_cast<std::uint32_t>(out.size());
    header.nlmsg_flags = 0;
    header.nlmsg_seq = 0;
    header.nlmsg_pid = 0;
    std::memcpy(out.data(), &header, sizeof header);
    return out;
}

const std::string* find(const Parts& parts, int type) {
    for (const auto& [each, payload] : parts.attributes) {
        if (each == type) {
            return &payload;
        }
    }
    return nullptr;
}

void drop(Parts& parts, std::initializer_list<int> types) {
    std::erase_if(parts.attributes, [&](const auto& attribute) {
        return std::find(types.begin(), types.end(), attribute.first) != types.end();
    });
}

} // namespace railbreak::injectors
