// Route-netlink records of addresses, routes and neighbours taken apart, changed and put together again.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/netlink.h>

namespace railbreak::injectors {

/// A record: its fixed headers and its attributes in their order.
struct Parts {
    std::string head;
    std::vector<std::pair<int, std::string>> attributes;
};

/// The netlink header; zeros where the record is too short.
[[nodiscard]] nlmsghdr head_of(std::string_view message);

/// The family's header (ifaddrmsg, rtmsg, ndmsg) behind it; zeros where the record is too short.
template <class Header> [[nodiscard]] Header family_header(std::string_view message) {
    Header header{};
    if (message.size() >= NLMSG_HDRLEN + sizeof header) {
        std::memcpy(&header, message.data() + NLMSG_HDRLEN, sizeof header);
    }
    return header;
}
template <class Header> void set_family_header(Parts& parts, const Header& header) {
    std::memcpy(parts.head.data() + NLMSG_HDRLEN, &header, sizeof header);
}

[[nodiscard]] Parts take_apart(std::string_view message);
/// With the length that it has now, and without flags, sequence number and port.
[[nodiscard]] std::string put_together(const Parts& parts);

/// The attribute of that type, or null.
[[nodiscard]] const std::string* find(const Parts& parts, int type);
/// Removes the attributes of these types.
void drop(Parts& parts, std::initializer_list<int> types);

} // namespace railbreak::injectors
