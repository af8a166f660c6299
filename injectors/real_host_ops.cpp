#include "injectors/real_host_ops.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "injectors/netlink.hpp"
#include "injectors/port_cap.hpp"

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
        case IFLA_LINKINFO:
            if (const nlattr* kind = nla_find(static_cast<const nlattr*>(nla_data(&a)), nla_len(&a), IFLA_INFO_KIND)) {
                link.kind = text_of(*kind);
            }
            break;
        default: break;
        }
    });
    return link;
}

TcRecord tc_of(const nlmsghdr& message) {
    TcRecord record;
    const auto& header = header_of<tcmsg>(message);
    record.handle = header.tcm_handle;
    record.parent = header.tcm_parent;
    record.info = header.tcm_info;
    for_each_attribute<tcmsg>(message, [&](const nlattr& a) {
        if (nla_type(&a) == TCA_KIND) {
            record.kind = text_of(a);
        } else if (nla_type(&a) == TCA_OPTIONS) {
            record.options = bytes_of(a);
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

NetlinkMessage tc_message(int type, int flags, const TcObject& object) {
    NetlinkMessage message(type, flags);
    tcmsg header{};
    header.tcm_ifindex = object.ifindex;
    header.tcm_parent = object.parent;
    header.tcm_handle = object.handle;
    message.append_header(header);
    if (!object.kind.empty()) {
        message.put_string(TCA_KIND, object.kind);
    }
    if (!object.options.empty()) {
        message.put_bytes(TCA_OPTIONS, object.options.data(), object.options.size());
    }
    return message;
}

std::string tc_words(std::string_view verb, const TcObject& object) {
    return fmt::format("{} {} {:x}:{:x} on interface {}", verb, object.kind, object.handle >> 16,
                       object.handle & 0xffff, object.ifindex);
}

/// A tcmsg that names the ingress redirect on a device.
tcmsg redirect_header(std::int32_t ifindex) {
    tcmsg header{};
    header.tcm_ifindex = ifindex;
    header.tcm_parent = kIngressHandle;
    header.tcm_handle = kRedirectNode;
    header.tcm_info = TC_H_MAKE(kRedirectPriority << 16, htons(ETH_P_ALL));
    return header;
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

    Result<std::vector<TcRecord>> qdiscs(std::int32_t ifindex) override {
        return dump_tc(RTM_GETQDISC, ifindex, 0, "list the qdiscs");
    }
    Result<std::vector<TcRecord>> classes(std::int32_t ifindex) override {
        return dump_tc(RTM_GETTCLASS, ifindex, 0, "list the traffic classes");
    }
    Result<std::vector<TcRecord>> filters(std::int32_t ifindex, std::uint32_t parent) override {
        return dump_tc(RTM_GETTFILTER, ifindex, parent, "list the filters");
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

    Result<bool> wait_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t want,
                                 Deadline deadline) override {
        const int group = RTNLGRP_LINK;
        if (setsockopt(events_.fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
            return fail_errno(ErrorKind::kHarness, "listen to link events", errno);
        }
        for (;;) {
            // Joined before reading, so that no change falls between the two.
            auto all = links();
            if (!all) {
                return fail(std::move(all.error()));
            }
            const auto link = std::find_if(all->begin(), all->end(),
                                           [&](const LinkRecord& each) { return each.ifindex == ifindex; });
            if (link == all->end()) {
                return fail_errno(ErrorKind::kHarness, fmt::format("watch interface {}", ifindex), ENODEV);
            }
            if ((link->flags & mask) == want) {
                return true;
            }
            if (deadline.passed()) {
                return false;
            }
            pollfd waiter{events_.fd(), POLLIN, 0};
            if (poll(&waiter, 1, deadline.poll_timeout_ms()) < 0 && errno != EINTR) {
                return fail_errno(ErrorKind::kHarness, "wait for link events", errno);
            }
            std::array<char, 8192> drain{};
            while (recv(events_.fd(), drain.data(), drain.size(), MSG_DONTWAIT) > 0) {
            }
        }
    }

    Result<void> set_link_flags(std::int32_t ifindex, std::uint32_t mask, std::uint32_t flags) override {
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        header.ifi_change = mask;
        header.ifi_flags = flags;
        message.append_header(header);
        return channel_.request(message, fmt::format("set interface {} {}", ifindex,
                                                     (flags & IFF_UP) != 0 ? "up" : "down"));
    }

    Result<void> add_ifb(std::string_view name) override {
        NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
        message.append_header(ifinfomsg{});
        message.put_string(IFLA_IFNAME, name);
        nlattr* info = message.begin_nest(IFLA_LINKINFO);
        message.put_string(IFLA_INFO_KIND, "ifb");
        message.end_nest(info);
        return channel_.request(message, fmt::format("create the ifb device {}", name));
    }

    Result<void> set_alias(std::int32_t ifindex, std::string_view alias) override {
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        message.append_header(header);
        message.put_string(IFLA_IFALIAS, alias);
        return channel_.request(message, fmt::format("set the alias of interface {}", ifindex));
    }

    Result<void> delete_link(std::int32_t ifindex) override {
        NetlinkMessage message(RTM_DELLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        message.append_header(header);
        return channel_.request(message, fmt::format("delete interface {}", ifindex));
    }

    Result<void> replay(std::string_view raw, int flags) override {
        NetlinkMessage message(raw);
        message.header()->nlmsg_flags = static_cast<std::uint16_t>(flags);
        return channel_.request(message, fmt::format("put back a record of type {}", message.header()->nlmsg_type));
    }

    Result<void> add_qdisc(const TcObject& qdisc) override {
        NetlinkMessage message = tc_message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, qdisc);
        return channel_.request(message, tc_words("add qdisc", qdisc));
    }
    Result<void> delete_qdisc(std::int32_t ifindex, std::uint32_t parent, std::uint32_t handle) override {
        const TcObject qdisc{ifindex, parent, handle, "", ""};
        NetlinkMessage message = tc_message(RTM_DELQDISC, 0, qdisc);
        return channel_.request(message, tc_words("delete qdisc", qdisc));
    }
    Result<void> add_class(const TcObject& traffic_class) override {
        NetlinkMessage message = tc_message(RTM_NEWTCLASS, NLM_F_CREATE | NLM_F_EXCL, traffic_class);
        return channel_.request(message, tc_words("add class", traffic_class));
    }
    Result<void> change_class(const TcObject& traffic_class) override {
        NetlinkMessage message = tc_message(RTM_NEWTCLASS, 0, traffic_class);
        return channel_.request(message, tc_words("change class", traffic_class));
    }

    Result<void> add_ingress_redirect(std::int32_t ifindex, std::int32_t to) override {
        NetlinkMessage message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL);
        message.append_header(redirect_header(ifindex));
        message.put_string(TCA_KIND, "u32");
        nlattr* options = message.begin_nest(TCA_OPTIONS);
        struct {
            tc_u32_sel selector{};
            tc_u32_key key{}; // mask 0: matches everything
        } match;
        match.selector.flags = TC_U32_TERMINAL;
        match.selector.nkeys = 1;
        message.put_bytes(TCA_U32_SEL, &match, sizeof match);
        nlattr* actions = message.begin_nest(TCA_U32_ACT);
        nlattr* action = message.begin_nest(1);
        message.put_string(TCA_ACT_KIND, "mirred");
        nlattr* action_options = message.begin_nest(TCA_ACT_OPTIONS);
        tc_mirred redirect{};
        redirect.eaction = TCA_EGRESS_REDIR;
        redirect.action = TC_ACT_STOLEN;
        redirect.ifindex = static_cast<std::uint32_t>(to);
        message.put_bytes(TCA_MIRRED_PARMS, &redirect, sizeof redirect);
        message.end_nest(action_options);
        message.end_nest(action);
        message.end_nest(actions);
        message.end_nest(options);
        return channel_.request(message, fmt::format("redirect what interface {} receives", ifindex));
    }

    Result<void> delete_ingress_redirect(std::int32_t ifindex) override {
        NetlinkMessage message(RTM_DELTFILTER, 0);
        tcmsg header = redirect_header(ifindex);
        header.tcm_handle = 0; // everything at our priority
        message.append_header(header);
        message.put_string(TCA_KIND, "u32");
        return channel_.request(message, fmt::format("delete the redirect on interface {}", ifindex));
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

    Result<UniqueFd> create_file(const std::string& path) override {
        UniqueFd fd(open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) {
            return fail_errno(ErrorKind::kHarness, "create " + path, errno);
        }
        return fd;
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

    Result<std::vector<TcRecord>> dump_tc(int type, std::int32_t ifindex, std::uint32_t parent,
                                          std::string_view what) {
        std::vector<TcRecord> found;
        NetlinkMessage message(type, 0);
        tcmsg header{};
        header.tcm_ifindex = ifindex;
        header.tcm_parent = parent;
        message.append_header(header);
        auto done = channel_.dump(
            message, what,
            [&](const nlmsghdr& each) {
                if (header_of<tcmsg>(each).tcm_ifindex == ifindex) {
                    found.push_back(tc_of(each));
                }
            },
            [&] { found.clear(); });
        if (!done) {
            return fail(std::move(done.error()));
        }
        return found;
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
