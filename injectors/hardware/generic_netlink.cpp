#include "injectors/hardware/generic_netlink.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <linux/genetlink.h>

namespace railbreak::injectors::hardware {

NetlinkMessage family_request(std::string_view name) {
    auto message = generic_message({"nlctrl", GENL_ID_CTRL, 1}, CTRL_CMD_GETFAMILY);
    message.put_string(CTRL_ATTR_FAMILY_NAME, name);
    return message;
}

Result<GenericFamily> parse_family(const nlmsghdr& record) {
    const auto attributes = generic_attributes(record);
    const auto id = attributes.value<std::uint16_t>(CTRL_ATTR_FAMILY_ID);
    if (generic_command(record) != CTRL_CMD_NEWFAMILY || !id) {
        return fail(ErrorKind::kHarness, "the kernel's answer names no generic netlink family");
    }
    GenericFamily family;
    family.name = attributes.text(CTRL_ATTR_FAMILY_NAME);
    family.id = *id;
    family.version = static_cast<std::uint8_t>(attributes.value<std::uint32_t>(CTRL_ATTR_VERSION).value_or(1));
    return family;
}

Result<GenericFamily> find_family(NetlinkChannel& channel, std::string_view name) {
    auto message = family_request(name);
    Result<GenericFamily> family = fail(ErrorKind::kHarness, "the kernel did not answer the question for a family");
    const auto asked = channel.query(message, fmt::format("find the netlink family {}", name),
                                     [&](const nlmsghdr& record) { family = parse_family(record); });
    if (!asked && kernel_errno(asked.error()) == ENOENT) {
        return fail(Error(ErrorKind::kRefused, fmt::format("this kernel has no netlink family \"{}\"", name))
                        .with("errno", "ENOENT"));
    }
    if (!asked) {
        return fail(Error(asked.error()));
    }
    return family;
}

NetlinkMessage generic_message(const GenericFamily& family, std::uint8_t command, int flags) {
    NetlinkMessage message(family.id, flags);
    genlmsghdr header{};
    header.cmd = command;
    header.version = family.version;
    message.append_header(header);
    return message;
}

std::uint8_t generic_command(const nlmsghdr& record) {
    return record.nlmsg_len < NLMSG_LENGTH(sizeof(genlmsghdr))
               ? std::uint8_t{0}
               : static_cast<const genlmsghdr*>(NLMSG_DATA(&record))->cmd;
}

AttributeView generic_attributes(const nlmsghdr& record) {
    return AttributeView::of(record, sizeof(genlmsghdr));
}

} // namespace railbreak::injectors::hardware
