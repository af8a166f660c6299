#include "harness/lab/fabric.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "injectors/netlink.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::lab {
namespace {

using injectors::NetlinkChannel;
using injectors::NetlinkMessage;

constexpr int kAdd = NLM_F_CREATE | NLM_F_EXCL;
constexpr int kLoopback = 1; ///< index of "lo" in every network namespace
constexpr int kFirstBridge = 11;
constexpr int kPrefixBits = 24;
/// Half of the kernel's default: smaller aggregates make small bursts possible, but every one costs processor time.
constexpr std::uint32_t kGsoMaximum = 32768;

/// A fresh network namespace: its descriptor, its identity, and a channel into it.
struct Namespace {
    UniqueFd netns;
    NamespaceId id;
    NetlinkChannel channel;
};

/// Writes a setting of the calling thread's network namespace; one that this kernel lacks is passed over.
void write_setting(const char* path, std::string_view value) {
    const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (fd.valid()) {
        static_cast<void>(!::write(fd.get(), value.data(), value.size()));
    }
}

void write_namespace_settings() {
    // No router solicitations or duplicate address detection between measurements.
    write_setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    // A host's firewall rules for bridged traffic must not reach into the lab.
    write_setting("/proc/sys/net/bridge/bridge-nf-call-iptables", "0");
    write_setting("/proc/sys/net/bridge/bridge-nf-call-ip6tables", "0");
    write_setting("/proc/sys/net/bridge/bridge-nf-call-arptables", "0");
    // Every iteration starts as the one before: no shrunk window after idle, no memory of earlier connections.
    write_setting("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0");
    write_setting("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    // A connection that a dead process has left holds its namespace until the peer has acknowledged the end. When the
    // peer's host is gone already, that is never, and TCP would try for 100 s. With this it is about 3 s.
    write_setting("/proc/sys/net/ipv4/tcp_orphan_retries", "2");
}

/// Moves the calling thread (a helper's) into a new network namespace and opens what is needed of it.
Result<Namespace> make_namespace() {
    if (::unshare(CLONE_NEWNET) != 0) {
        const int error = errno;
        // What is not allowed, by right or by limit, is a refusal; the rest is a failure.
        const bool refused = error == EPERM || error == ENOSPC;
        auto failure =
            fail_errno(refused ? ErrorKind::kRefused : ErrorKind::kHarness, "make a network namespace", error);
        return fail(std::move(failure.value())
                        .advise(error == ENOSPC ? "raise the sysctl user.max_net_namespaces"
                                                : "a lab needs root, or user namespaces"));
    }
    UniqueFd netns(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!netns.valid()) {
        return fail_errno(ErrorKind::kHarness, "open a network namespace", errno);
    }
    write_namespace_settings();
    auto channel = NetlinkChannel::open();
    if (!channel) {
        return fail(std::move(channel.error()));
    }
    const NamespaceId id{inode_of(netns.get()), current_netns_cookie()};
    return Namespace{std::move(netns), id, std::move(*channel)};
}

/// `count` fresh namespaces, made by one helper thread so that the caller stays where it is.
Result<std::vector<Namespace>> make_namespaces(unsigned count) {
    std::vector<Namespace> made;
    Result<void> outcome;
    try {
        std::thread([&] {
            for (unsigned i = 0; i < count && outcome; ++i) {
                auto fresh = make_namespace();
                if (fresh) {
                    made.push_back(std::move(*fresh));
                } else {
                    outcome = fail(std::move(fresh.error()));
                }
            }
        }).join();
    } catch (const std::system_error& error) {
        return fail(ErrorKind::kHarness, fmt::format("cannot start a thread: {}", error.what()));
    }
    if (!outcome) {
        return fail(std::move(outcome.error()));
    }
    return made;
}

ifinfomsg up_header(int ifindex) {
    ifinfomsg header{};
    header.ifi_index = ifindex;
    header.ifi_flags = IFF_UP;
    header.ifi_change = IFF_UP;
    return header;
}

std::array<std::uint8_t, 6> parse_mac(const std::string& text) {
    std::array<std::uint8_t, 6> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(std::stoul(text.substr(3 * i, 2), nullptr, 16));
    }
    return bytes;
}

in_addr parse_address(const std::string& text) {
    in_addr address{};
    ::inet_pton(AF_INET, text.c_str(), &address);
    return address;
}

Result<void> bring_up(Namespace& space, int ifindex, std::string_view name) {
    NetlinkMessage message(RTM_NEWLINK, 0);
    message.append_header(up_header(ifindex));
    return space.channel.request(message, fmt::format("bring {} up", name));
}

Result<void> add_bridge(Namespace& space, unsigned rail, unsigned mtu) {
    NetlinkMessage message(RTM_NEWLINK, kAdd);
    const auto name = fmt::format("sw{}", rail);
    message.append_header(up_header(kFirstBridge + static_cast<int>(rail)));
    message.put_string(IFLA_IFNAME, name);
    message.put_u32(IFLA_MTU, mtu);
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "bridge");
    nlattr* data = message.begin_nest(IFLA_INFO_DATA);
    message.put_u32(IFLA_BR_STP_STATE, 0);
    message.put_u32(IFLA_BR_FORWARD_DELAY, 0);
    message.put_u8(IFLA_BR_MCAST_SNOOPING, 0);
    message.end_nest(data);
    message.end_nest(info);
    return space.channel.request(message, fmt::format("make the bridge {}", name));
}

void put_end_of_cable(NetlinkMessage& message, const std::string& name, unsigned mtu) {
    message.put_string(IFLA_IFNAME, name);
    message.put_u32(IFLA_MTU, mtu);
    message.put_u32(IFLA_GSO_MAX_SIZE, kGsoMaximum);
}

/// One veth: the port in the switch, up and enslaved, and the NIC in the host, still down.
Result<void> add_cable(Namespace& fabric_switch, const Namespace& host, const LabNic& nic, unsigned rail,
                       unsigned mtu) {
    NetlinkMessage message(RTM_NEWLINK, kAdd);
    message.append_header(up_header(nic.switch_ifindex));
    put_end_of_cable(message, nic.switch_port, mtu);
    message.put_u32(IFLA_MASTER, static_cast<std::uint32_t>(kFirstBridge) + rail);
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "veth");
    nlattr* data = message.begin_nest(IFLA_INFO_DATA);
    nlattr* peer = message.begin_nest(VETH_INFO_PEER);
    // Not up yet: the kernel opens the peer before the two ends know each other, and that fails.
    ifinfomsg peer_header{};
    peer_header.ifi_index = nic.ifindex;
    message.append_header(peer_header);
    put_end_of_cable(message, nic.name, mtu);
    const auto mac = parse_mac(nic.mac);
    message.put_bytes(IFLA_ADDRESS, mac.data(), mac.size());
    message.put_u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(host.netns.get()));
    message.end_nest(peer);
    message.end_nest(data);
    message.end_nest(info);
    return fabric_switch.channel.request(message, fmt::format("make the veth {}", nic.switch_port));
}

Result<void> add_address(Namespace& host, const LabNic& nic) {
    NetlinkMessage message(RTM_NEWADDR, kAdd);
    ifaddrmsg header{};
    header.ifa_family = AF_INET;
    header.ifa_prefixlen = kPrefixBits;
    header.ifa_index = static_cast<std::uint32_t>(nic.ifindex);
    message.append_header(header);
    const in_addr address = parse_address(nic.address);
    message.put_bytes(IFA_LOCAL, &address, sizeof address);
    message.put_bytes(IFA_ADDRESS, &address, sizeof address);
    message.put_u32(IFA_FLAGS, IFA_F_NOPREFIXROUTE); // the route is ours, with its congestion control
    return host.channel.request(message, fmt::format("give {} to {}", nic.address, nic.name));
}

/// The route to the rail's subnet; `congestion_control` may be empty for the kernel's default.
Result<void> add_route(Namespace& host, const LabNic& nic, std::string_view congestion_control) {
    NetlinkMessage message(RTM_NEWROUTE, kAdd);
    rtmsg header{};
    header.rtm_family = AF_INET;
    header.rtm_dst_len = kPrefixBits;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    message.append_header(header);
    const in_addr source = parse_address(nic.address);
    const in_addr subnet{source.s_addr & htonl(0xFFFFFF00U)};
    message.put_bytes(RTA_DST, &subnet, sizeof subnet);
    message.put_bytes(RTA_PREFSRC, &source, sizeof source);
    message.put_u32(RTA_OIF, static_cast<std::uint32_t>(nic.ifindex));
    if (!congestion_control.empty()) {
        nlattr* metrics = message.begin_nest(RTA_METRICS);
        message.put_string(RTAX_CC_ALGO, congestion_control);
        message.end_nest(metrics);
    }
    return host.channel.request(message, fmt::format("add the route of {}", nic.name));
}

Result<void> add_neighbour(Namespace& host, const LabNic& nic, const LabNic& peer) {
    NetlinkMessage message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    ndmsg header{};
    header.ndm_family = AF_INET;
    header.ndm_ifindex = nic.ifindex;
    header.ndm_state = NUD_PERMANENT;
    message.append_header(header);
    const in_addr address = parse_address(peer.address);
    const auto mac = parse_mac(peer.mac);
    message.put_bytes(NDA_DST, &address, sizeof address);
    message.put_bytes(NDA_LLADDR, mac.data(), mac.size());
    return host.channel.request(message, fmt::format("add the neighbour {} of {}", peer.address, nic.name));
}

/// htb with one class and a bfifo behind it: the line rate of one direction of a link.
Result<void> shape(NetlinkChannel& channel, int ifindex, BitRate rate) {
    using namespace injectors;
    const HtbClass parameters = make_htb_class(rate, lab_burst(), kLabQuantum);
    return add_htb(channel, ifindex, kLabHtb, kLabHtbClass & 0xFFFFU)
        .and_then([&] { return add_htb_class(channel, ifindex, kLabHtb, kLabHtbClass, parameters); })
        .and_then([&] { return add_bfifo(channel, ifindex, kLabHtbClass, kLabFifo, lab_queue_limit(rate)); });
}

Result<void> configure_nic(Namespace& host, const LabHost& self, unsigned rail, const std::vector<LabHost>& hosts) {
    const LabNic& nic = self.nics[rail];
    if (auto up = bring_up(host, nic.ifindex, nic.name); !up) {
        return up;
    }
    if (auto added = add_address(host, nic); !added) {
        return added;
    }
    // bbr, the default of some kernels, gives larger and noisier times at a cap; a kernel without cubic keeps its own.
    if (auto added = add_route(host, nic, "cubic"); !added) {
        if (added = add_route(host, nic, ""); !added) {
            return added;
        }
    }
    for (const auto& other : hosts) {
        if (other.index == self.index) {
            continue;
        }
        if (auto added = add_neighbour(host, nic, other.nics[rail]); !added) {
            return added;
        }
    }
    return {};
}

Result<void> configure_host(Namespace& fabric_switch, Namespace& host, const LabHost& self,
                            const std::vector<LabHost>& hosts, const LabSpec& spec) {
    if (auto up = bring_up(host, kLoopback, "lo"); !up) {
        return up;
    }
    for (unsigned rail = 0; rail < spec.nics_per_host; ++rail) {
        const LabNic& nic = self.nics[rail];
        auto ready = add_cable(fabric_switch, host, nic, rail, spec.mtu_bytes)
                         .and_then([&] { return configure_nic(host, self, rail, hosts); })
                         .and_then([&] { return shape(host.channel, nic.ifindex, spec.rate); })
                         .and_then([&] { return shape(fabric_switch.channel, nic.switch_ifindex, spec.rate); });
        if (!ready) {
            return fail(std::move(ready.error()).during(self.name));
        }
    }
    return {};
}

/// Number of veths in the channel's namespace.
Result<unsigned> count_ports(NetlinkChannel& channel) {
    unsigned count = 0;
    NetlinkMessage message(RTM_GETLINK, 0);
    message.append_header(ifinfomsg{});
    const auto take = [&count](const nlmsghdr& record) {
        std::array<nlattr*, IFLA_MAX + 1> attributes{};
        std::array<nlattr*, IFLA_INFO_MAX + 1> info{};
        if (nlmsg_parse(const_cast<nlmsghdr*>(&record), sizeof(ifinfomsg), attributes.data(), IFLA_MAX, nullptr) == 0 &&
            attributes[IFLA_LINKINFO] != nullptr &&
            nla_parse_nested(info.data(), IFLA_INFO_MAX, attributes[IFLA_LINKINFO], nullptr) == 0 &&
            info[IFLA_INFO_KIND] != nullptr) {
            count += std::string_view(nla_get_string(info[IFLA_INFO_KIND])) == "veth" ? 1U : 0U;
        }
    };
    if (auto dumped = channel.dump(message, "list the ports of the switch", take, [&count] { count = 0; }); !dumped) {
        return fail(std::move(dumped.error()));
    }
    return count;
}

} // namespace

Result<Fabric> build_fabric(const LabSpec& spec) {
    auto made = make_namespaces(spec.hosts + 1);
    if (!made) {
        return fail(std::move(made.error()));
    }
    const auto hosts = hosts_of(spec);
    Namespace& fabric_switch = made->front();
    if (auto up = bring_up(fabric_switch, kLoopback, "lo"); !up) {
        return fail(std::move(up.error()));
    }
    for (unsigned rail = 0; rail < spec.nics_per_host; ++rail) {
        if (auto added = add_bridge(fabric_switch, rail, spec.mtu_bytes); !added) {
            return fail(std::move(added.error()));
        }
    }
    for (const auto& host : hosts) {
        if (auto ready = configure_host(fabric_switch, (*made)[host.index + 1], host, hosts, spec); !ready) {
            return fail(std::move(ready.error()));
        }
    }
    Fabric fabric;
    fabric.switch_netns = std::move(fabric_switch.netns);
    for (auto& space : *made) {
        fabric.ids.push_back(space.id);
        if (&space != &fabric_switch) {
            fabric.host_netns.push_back(std::move(space.netns));
        }
    }
    return fabric;
}

Result<void> wait_until_ports_gone(const Deadline& deadline) {
    auto events = NetlinkChannel::open();
    auto channel = NetlinkChannel::open();
    if (!events || !channel) {
        return fail(std::move(events ? channel.error() : events.error()));
    }
    const int group = RTNLGRP_LINK;
    if (::setsockopt(events->fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0) {
        return fail_errno(ErrorKind::kHarness, "watch the ports of the switch", errno);
    }
    while (true) {
        auto left = count_ports(*channel);
        if (!left) {
            return fail(std::move(left.error()));
        }
        if (*left == 0) {
            return {};
        }
        pollfd waiter{events->fd(), POLLIN, 0};
        const int ready = ::poll(&waiter, 1, deadline.poll_timeout_ms());
        if (deadline.passed() && ready <= 0) {
            return fail(Error(ErrorKind::kTeardown, "the lab's ports are still there")
                            .with("ports", std::to_string(*left))
                            .advise("a process outside of the lab holds a socket in a host, or its namespace, open"));
        }
        // Only the fact that something changed matters; overflow (ENOBUFS) means the same.
        std::array<char, 16384> ignored{};
        while (::recv(events->fd(), ignored.data(), ignored.size(), MSG_DONTWAIT) > 0) {
        }
    }
}

Result<void> wait_until_ports_gone_in(int switch_netns_fd, const Deadline& deadline) {
    Result<void> outcome;
    try {
        std::thread([&outcome, &deadline, switch_netns_fd] {
            if (::setns(switch_netns_fd, CLONE_NEWNET) == 0) {
                outcome = wait_until_ports_gone(deadline);
            } else {
                outcome = fail_errno(errno == EPERM ? ErrorKind::kRefused : ErrorKind::kHarness,
                                     "enter the switch's namespace", errno);
            }
        }).join();
    } catch (const std::system_error& error) {
        return fail(ErrorKind::kHarness, fmt::format("cannot start a thread: {}", error.what()));
    }
    return outcome;
}

} // namespace railbreak::lab
