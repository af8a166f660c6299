#include "injectors/link_settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "injectors/netlink.hpp"

namespace railbreak::injectors {

namespace {

constexpr std::array<std::string_view, 2> kFolders{"conf", "neigh"};
/// conf/*/mtu follows the interface's MTU and what routers advertise.
constexpr std::string_view kDerived = "conf/*/mtu";

std::string path_of(const std::string& nic, const std::string& name) {
    const std::size_t star = name.find('*');
    return fmt::format("/proc/sys/net/ipv6/{}{}{}", name.substr(0, star), nic, name.substr(star + 1));
}

} // namespace

Result<LinkSettings> read_link_settings(HostOps& ops, const std::string& nic) {
    LinkSettings settings;
    for (const std::string_view folder : kFolders) {
        const auto names = ops.list_folder(fmt::format("/proc/sys/net/ipv6/{}/{}", folder, nic));
        if (!names && kernel_errno(names.error()) == ENOENT) {
            continue;
        }
        if (!names) {
            return tl::unexpected(names.error());
        }
        for (const std::string& each : *names) {
            const std::string name = fmt::format("{}/*/{}", folder, each);
            // What was never set cannot be read (stable_secret).
            if (const auto value = ops.read_file(path_of(nic, name)); value && name != kDerived) {
                settings.emplace_back(name, value->substr(0, value->find('\n')));
            }
        }
    }
    return settings;
}

Result<void> restore_link_settings(HostOps& ops, const std::string& nic, const LinkSettings& former) {
    if (former.empty()) {
        return {};
    }
    const auto now = read_link_settings(ops, nic);
    if (!now) {
        return tl::unexpected(now.error());
    }
    Result<void> outcome;
    for (const auto& each : former) {
        if (std::find(now->begin(), now->end(), each) != now->end()) {
            continue;
        }
        auto done = ops.write_file(path_of(nic, each.first), each.second);
        if (!done && outcome) {
            outcome = std::move(done);
        }
    }
    return outcome;
}

Result<std::vector<std::string>> changed_link_settings(HostOps& ops, const std::string& nic,
                                                       const LinkSettings& former) {
    std::vector<std::string> changed;
    if (former.empty()) {
        return changed;
    }
    const auto now = read_link_settings(ops, nic);
    if (!now) {
        return tl::unexpected(now.error());
    }
    for (const auto& each : former) {
        if (std::find(now->begin(), now->end(), each) == now->end()) {
            changed.push_back(each.first);
        }
    }
    return changed;
}

} // namespace railbreak::injectors
