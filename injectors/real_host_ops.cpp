#include "injectors/real_host_ops.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "injectors/netlink.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

namespace {

#ifndef SO_NETNS_COOKIE
constexpr int SO_NETNS_COOKIE = 71;
#endif

/// Calls each(attribute) for the attributes behind a fixed header of type Header.
template <class Header, class Each> void for_each_attribute(const nlmsghdr& message, Each each) {
    int left = static_cast<int>(message.nlmsg_len) - static_cast<int>(NLMSG_SPACE(sizeof(Header)));
    const auto* first = reinterpret_cast<const char*>(&message) + NLMSG_SPACE(sizeof(Header));
    for (auto* a = reinterpret_cast<const nlattr*>(first); nla_ok(a, left); a = nla_next(a, &left)) {
        each(*a);
    }
}

template <class Header> const Header& header_of(const nlmsghdr& message) {
    return *static_cast<const Header*>(NLMSG_DATA(&message));
}

std::string text_of(const nlattr& attribute) {
    const auto* text = static_cast<const char*>(nla_data(&attribute));
    return std::string(text, strnlen(text, static_cast<std::size_t>(nla_len(&attribute))));
}

std::string bytes_of(const nlattr& attribute) {
    return std::string(static_cast<const char*>(nla_data(&attribute)), static_cast<std::size_t>(nla_len(&attribute)));
}

std::string mac_of(const nlattr& attribute) {
    std::string text;
    for (const char byte : bytes_of(attribute)) {
        text += fmt::format("{}{:02x}", text.empty() ? "" : ":", static_cast<unsigned char>(byte));
    }
    return text;
}

LinkRecord link_of(const nlmsghdr& message) {
    LinkRecord link;
    const auto& header = header_of<ifinfomsg>(message);
    link.ifindex = header.ifi_index;
    link.flags = header.ifi_flags;
    for_each_attribute<ifinfomsg>(message, [&](const nlattr& a) {
        switch (nla_type(&a)) {
        case IFLA_IFNAME: link.name = text_of(a); break;
        case IFLA_IFALIAS: link.alias = text_of(a); break;
        case IFLA_ADDRESS: link.mac = mac_of(a); break;
        case IFLA_PERM_ADDRESS: link.permanent_mac = mac_of(a); break;
        case IFLA_MTU: link.mtu = nla_get_u32(&a); break;
        case IFLA_MASTER: link.master = static_cast<std::int32_t>(nla_get_u32(&a)); break;
        case IFLA_STATS64: {
            rtnl_link_stats64 counters{};
            const std::string bytes = bytes_of(a);
            std::memcpy(&counters, bytes.data(), std::min(bytes.size(), sizeof counters));
            link.sent_bytes = counters.tx_bytes;
            link.received_bytes = counters.rx_bytes;
            break;
        }
        case IFLA_LINKINFO:
            if (const nlattr* kind = nla_find(static_cast<const nlattr*>(nla_data(&a)), nla_len(&a), IFLA_INFO_KIND)) {
                link.kind = text_of(*kind);
            }
            break;
        default: break; // foreign enum: IFLA_* of the kernel
        }
    });
    return link;
}

FilterRecord filter_of(const nlmsghdr& message) {
    FilterRecord record;
    const auto& header = header_of<tcmsg>(message);
    record.parent = header.tcm_parent;
    record.priority = static_cast<std::uint16_t>(header.tcm_info >> 16);
    for_each_attribute<tcmsg>(message, [&](const nlattr& a) {
        if (nla_type(&a) == TCA_KIND) {
            record.kind = text_of(a);
        }
    });
    return record;
}

/// Output devices of a route: RTA_OIF and every hop of RTA_MULTIPATH.
std::vector<std::int32_t> route_devices(const nlmsghdr& message) {
    std::vector<std::int32_t> devices;
    for_each_attribute<rtmsg>(message, [&](const nlattr& a) {
        if (nla_type(&a) == RTA_OIF) {
            devices.push_back(static_cast<std::int32_t>(nla_get_u32(&a)));
        } else if (nla_type(&a) == RTA_MULTIPATH) {
            int left = nla_len(&a);
            for (auto* hop = static_cast<const rtnexthop*>(nla_data(&a));
                 left >= static_cast<int>(sizeof *hop) && RTNH_OK(hop, left);) {
                devices.push_back(hop->rtnh_ifindex);
                left -= static_cast<int>(RTNH_ALIGN(hop->rtnh_len));
                hop = RTNH_NEXT(hop);
            }
        }
    });
    return devices;
}

Nanoseconds read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

class RealHostOps final : public HostOps {
public:
    RealHostOps(NetlinkChannel channel, NetlinkChannel events, NetnsIdentity netns)
        : channel_(std::move(channel)), events_(std::move(events)), netns_(netns) {}

    Nanoseconds monotonic() override { return read_clock(CLOCK_MONOTONIC); }
    Nanoseconds boottime() override { return read_clock(CLOCK_BOOTTIME); }

    Result<std::string> boot_id() override {
        std::ifstream file("/proc/sys/kernel/random/boot_id");
        std::string id;
        if (!(file >> id)) {
            return fail(ErrorKind::kHarness, "cannot read /proc/sys/kernel/random/boot_id");
        }
        return id;
    }

    Result<NetnsIdentity> netns() override { return netns_; }

    Result<std::vector<LinkRecord>> links() override {
        std::vector<LinkRecord> found;
        NetlinkMessage message(RTM_GETLINK, 0);
        message.append_header(ifinfomsg{});
        auto done = channel_.dump(
            message, "list the interfaces", [&](const nlmsghdr& each) { found.push_back(link_of(each)); },
            [&] { found.clear(); });
        if (!done) {
            return fail(std::move(done.error()));
        }
        return found;
    }

    Result<std::vector<std::string>> records(RecordKind kind, std::int32_t ifindex) override {
        std::vector<std::string> found;
        for (const int family : {AF_INET, AF_INET6}) {
            auto done = dump_family(kind, family, ifindex, found);
            // A kernel or namespace without IPv6 has none of its records.
            if (!done && !(family == AF_INET6 && kernel_errno(done.error()) == EAFNOSUPPORT)) {
                return fail(std::move(done.error()));
            }
        }
        return found;
    }

    Result<std::vector<QdiscRecord>> qdiscs(std::int32_t ifindex) override { return list_qdiscs(channel_, ifindex); }
    Result<std::vector<HtbClassRecord>> htb_classes(std::int32_t ifindex) override {
        return list_htb_classes(channel_, ifindex);
    }
    Result<std::vector<FilterRecord>> filters(std::int32_t ifindex) override {
        std::vector<FilterRecord> found;
        for (const TcHandle parent :
             {TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)}) {
            if (auto done = dump_filters(ifindex, parent, found); !done) {
                return fail(std::move(done.error()));
            }
        }
        return found;
    }

    Result<std::vector<std::int32_t>> default_route_devices() override {
        std::vector<std::int32_t> found;
        for (const int family : {AF_INET, AF_INET6}) {
            const auto each = [&](const nlmsghdr& message) {
                const auto& route = header_of<rtmsg>(message);
                if (route.rtm_dst_len == 0 && route.rtm_type == RTN_UNICAST) {
                    const auto devices = route_devices(message);
                    found.insert(found.end(), devices.begin(), devices.end());
                }
            };
            auto done = dump_routes(family, each, [&] { found.clear(); });
            if (!done) {
                return fail(std::move(done.error()));
            }
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    Result<bool> wait_event(Deadline deadline) override {
        pollfd waiter{events_.fd(), POLLIN, 0};
        const int ready = poll(&waiter, 1, deadline.poll_timeout_ms());
        if (ready < 0 && errno != EINTR) {
            return fail_errno(ErrorKind::kHarness, "wait for network events", errno);
        }
        std::array<char, 8192> drain{};
        // Overflow (ENOBUFS) is an event like any other: the caller looks again.
        while (recv(events_.fd(), drain.data(), drain.size(), MSG_DONTWAIT) > 0) {
        }
        return ready != 0;
    }

    Result<void> set_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t flags) override {
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        header.ifi_change = mask;
        header.ifi_flags = flags;
        message.append_header(header);
        return channel_.request(message,
                                fmt::format("set interface {} {}", ifindex, (flags & IFF_UP) != 0 ? "up" : "down"));
    }

    Result<void> make_ifb(std::string_view name, std::string_view alias) override {
        return add_ifb(channel_, name, alias).map([](int) {});
    }
    Result<void> remove_link(std::int32_t ifindex) override { return delete_link(channel_, ifindex); }

    Result<void> replay(std::string_view raw, int flags) override {
        NetlinkMessage message(raw);
        message.header()->nlmsg_flags = static_cast<std::uint16_t>(flags);
        return channel_.request(message, fmt::format("put back a record of type {}", message.header()->nlmsg_type));
    }

    Result<void> make_htb(std::int32_t ifindex, TcHandle handle) override {
        return add_htb(channel_, ifindex, handle, 1);
    }
    Result<void> make_class(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                            const HtbClass& parameters) override {
        return add_htb_class(channel_, ifindex, parent, handle, parameters);
    }
    Result<void> change_class(std::int32_t ifindex, TcHandle handle, const HtbClass& parameters) override {
        return change_htb_class(channel_, ifindex, handle, parameters);
    }
    Result<void> make_bfifo(std::int32_t ifindex, TcHandle parent, TcHandle handle, ByteCount limit) override {
        return add_bfifo(channel_, ifindex, parent, handle, limit);
    }
    Result<void> remove_qdisc(std::int32_t ifindex, TcHandle parent, TcHandle handle) override {
        return delete_qdisc(channel_, ifindex, parent, handle);
    }
    Result<void> make_clsact(std::int32_t ifindex) override { return add_clsact(channel_, ifindex); }
    Result<void> make_redirect(std::int32_t ifindex, std::uint16_t priority, std::int32_t to) override {
        return add_redirect(channel_, ifindex, TcDirection::kIngress, priority, to);
    }
    Result<void> remove_redirect(std::int32_t ifindex, std::uint16_t priority) override {
        return delete_redirect(channel_, ifindex, TcDirection::kIngress, priority);
    }

    Result<void> make_folder(const std::string& path) override {
        for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
            const std::string part = path.substr(0, end);
            if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
                return fail_errno(ErrorKind::kHarness, "make the folder " + part, errno);
            }
            if (end == std::string::npos) {
                return {};
            }
        }
    }

    Result<UniqueFd> create_file(const std::string& folder) override {
        UniqueFd fd(open(folder.c_str(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
        if (!fd.valid()) {
            return fail_errno(ErrorKind::kHarness, "create a file in " + folder, errno);
        }
        return fd;
    }

    Result<void> publish_file(int fd, const std::string& path) override {
        const std::string unnamed = "/proc/self/fd/" + std::to_string(fd);
        if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
            return fail_errno(ErrorKind::kHarness, "create " + path, errno);
        }
        return {};
    }

    Result<void> append(int fd, std::string_view bytes) override {
        while (!bytes.empty()) {
            const ssize_t put = write(fd, bytes.data(), bytes.size());
            if (put < 0 && errno != EINTR) {
                return fail_errno(ErrorKind::kHarness, "write the journal", errno);
            }
            bytes.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : 0);
        }
        return {};
    }

    Result<void> sync_file(int fd) override {
        if (fsync(fd) != 0) {
            return fail_errno(ErrorKind::kHarness, "bring the journal to disk", errno);
        }
        return {};
    }

    Result<void> sync_folder(const std::string& path) override {
        const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!folder.valid() || fsync(folder.get()) != 0) {
            return fail_errno(ErrorKind::kHarness, "bring the folder " + path + " to disk", errno);
        }
        return {};
    }

    Result<void> truncate_file(int fd, std::uint64_t size) override {
        if (ftruncate(fd, static_cast<off_t>(size)) != 0) {
            return fail_errno(ErrorKind::kHarness, "cut the journal's damaged tail", errno);
        }
        return {};
    }

    Result<void> remove_file(const std::string& path) override {
        if (unlink(path.c_str()) != 0 && errno != ENOENT) {
            return fail_errno(ErrorKind::kHarness, "delete " + path, errno);
        }
        return {};
    }

private:
    Result<void> dump_routes(int family, const std::function<void(const nlmsghdr&)>& each,
                             const std::function<void()>& restart) {
        NetlinkMessage message(RTM_GETROUTE, 0);
        rtmsg header{};
        header.rtm_family = static_cast<unsigned char>(family);
        message.append_header(header);
        auto done = channel_.dump(message, "list the routes", each, restart);
        if (!done && family == AF_INET6 && kernel_errno(done.error()) == EAFNOSUPPORT) {
            return {};
        }
        return done;
    }

    Result<void> dump_family(RecordKind kind, int family, std::int32_t ifindex, std::vector<std::string>& found) {
        const std::size_t before = found.size();
        const auto restart = [&] { found.resize(before); };
        const auto keep = [&](const nlmsghdr& message) {
            found.emplace_back(reinterpret_cast<const char*>(&message), message.nlmsg_len);
        };
        switch (kind) {
        case RecordKind::kAddresses: {
            NetlinkMessage message(RTM_GETADDR, 0);
            ifaddrmsg header{};
            header.ifa_family = static_cast<unsigned char>(family);
            header.ifa_index = static_cast<std::uint32_t>(ifindex);
            message.append_header(header);
            const auto ours = [&](const nlmsghdr& each) {
                if (header_of<ifaddrmsg>(each).ifa_index == header.ifa_index) {
                    keep(each);
                }
            };
            return channel_.dump(message, "list the addresses", ours, restart);
        }
        case RecordKind::kRoutes: {
            const auto ours = [&](const nlmsghdr& each) {
                const auto devices = route_devices(each);
                if (std::find(devices.begin(), devices.end(), ifindex) != devices.end()) {
                    keep(each);
                }
            };
            return dump_routes(family, ours, restart);
        }
        case RecordKind::kNeighbours: {
            NetlinkMessage message(RTM_GETNEIGH, 0);
            ndmsg header{};
            header.ndm_family = static_cast<unsigned char>(family);
            message.append_header(header);
            const auto ours = [&](const nlmsghdr& each) {
                if (header_of<ndmsg>(each).ndm_ifindex == ifindex) {
                    keep(each);
                }
            };
            return channel_.dump(message, "list the neighbours", ours, restart);
        }
        }
        return {};
    }

    Result<void> dump_filters(std::int32_t ifindex, TcHandle parent, std::vector<FilterRecord>& found) {
        const std::size_t before = found.size();
        NetlinkMessage message(RTM_GETTFILTER, 0);
        tcmsg header{};
        header.tcm_ifindex = ifindex;
        header.tcm_parent = parent;
        message.append_header(header);
        return channel_.dump(
            message, "list the filters", [&](const nlmsghdr& each) { found.push_back(filter_of(each)); },
            [&] { found.resize(before); });
    }

    NetlinkChannel channel_;
    NetlinkChannel events_;
    NetnsIdentity netns_;
};

Result<std::unique_ptr<HostOps>> make_ops(Result<NetlinkChannel> channel, Result<NetlinkChannel> events, int netns_fd) {
    if (!channel || !events) {
        return fail(std::move(channel ? events.error() : channel.error()));
    }
    struct stat status {};
    if (fstat(netns_fd, &status) != 0) {
        return fail_errno(ErrorKind::kHarness, "look at the network namespace", errno);
    }
    // Joined from the start, so that no change falls between a reading and the wait that follows it.
    for (const int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV6_ROUTE}) {
        if (setsockopt(events->fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
            return fail_errno(ErrorKind::kHarness, "listen to network events", errno);
        }
    }
    NetnsIdentity netns{status.st_ino, 0};
    socklen_t size = sizeof netns.cookie;
    if (getsockopt(channel->fd(), SOL_SOCKET, SO_NETNS_COOKIE, &netns.cookie, &size) != 0) {
        netns.cookie = 0; // before Linux 5.14
    }
    return std::make_unique<RealHostOps>(std::move(*channel), std::move(*events), netns);
}

} // namespace

Result<std::unique_ptr<HostOps>> open_host_ops() {
    const UniqueFd own(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!own.valid()) {
        return fail_errno(ErrorKind::kHarness, "open /proc/thread-self/ns/net", errno);
    }
    return make_ops(NetlinkChannel::open(), NetlinkChannel::open(), own.get());
}

Result<std::unique_ptr<HostOps>> open_host_ops_in(int netns_fd) {
    return make_ops(NetlinkChannel::open_in(netns_fd), NetlinkChannel::open_in(netns_fd), netns_fd);
}

} // namespace railbreak::injectors
