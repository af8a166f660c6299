#include "tests/lab/injector_bench.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "injectors/link_state.hpp"
#include "injectors/message_parts.hpp"
#include "injectors/own_routes.hpp"
#include "injectors/real_host_ops.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

namespace {

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

/// Moves this process into a new network namespace, as a normal user inside a new user namespace. Empty on success,
/// otherwise the reason.
std::string enter_new_netns() {
    if (unshare(CLONE_NEWNET) == 0) {
        return {};
    }
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return fmt::format("no new network namespace: {}", strerrordesc_np(errno));
    }
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", fmt::format("0 {} 1", uid));
    write_file("/proc/self/gid_map", fmt::format("0 {} 1", gid));
    return {};
}

UniqueFd own_netns() {
    return UniqueFd(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

std::string address_bytes(int family, const std::string& text) {
    std::array<char, 16> bytes{};
    EXPECT_EQ(inet_pton(family, text.c_str(), bytes.data()), 1) << text;
    return {bytes.data(), family == AF_INET ? std::size_t{4} : std::size_t{16}};
}

void put_address(NetlinkMessage& message, int attribute, int family, const std::string& text) {
    const std::string bytes = address_bytes(family, text);
    message.put_bytes(attribute, bytes.data(), bytes.size());
}

std::string hex(const std::string& bytes) {
    std::string out;
    for (const char byte : bytes) {
        out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    }
    return out;
}

/// Railbreak's own routes: no part of a link's state, but not to be left behind either.
std::vector<std::string> own_route_lines(const std::string& nic, const std::string& record) {
    std::vector<std::string> lines;
    for (const Route& each : read_route(record)) {
        if (each.protocol == kOwnRouteProtocol) {
            lines.push_back(fmt::format("railbreak's route of {}: table {} {} via {}", nic, each.table,
                                        describe_prefix(each.family, each.to, each.prefix), hex(each.gateway)));
        }
    }
    return lines;
}

std::vector<std::string> rule_lines(HostOps& ops) {
    std::vector<std::string> lines;
    const auto rules = ops.rules();
    EXPECT_TRUE(rules.has_value());
    for (const std::string& each : rules.value_or(std::vector<std::string>())) {
        lines.push_back("policy rule " + hex(each.substr(NLMSG_HDRLEN)));
    }
    return lines;
}

/// Sets the counters of a rule to nought: the kernel itself sends packets at any time (neighbour discovery, multicast
/// reports), so a count says nothing of who changed what.
void forget_counts(std::string& rule) {
    constexpr int kAttributes = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(nfgenmsg));
    auto* first = reinterpret_cast<nlattr*>(rule.data() + kAttributes);
    nlattr* expressions = nla_find(first, static_cast<int>(rule.size()) - kAttributes, NFTA_RULE_EXPRESSIONS);
    if (expressions == nullptr) {
        return;
    }
    nlattr* each = nullptr;
    int left = 0;
    nla_for_each_nested(each, expressions, left) {
        nlattr* name = nla_find(static_cast<nlattr*>(nla_data(each)), nla_len(each), NFTA_EXPR_NAME);
        nlattr* data = nla_find(static_cast<nlattr*>(nla_data(each)), nla_len(each), NFTA_EXPR_DATA);
        if (name != nullptr && data != nullptr && nla_strcmp(name, "counter") == 0) {
            std::memset(nla_data(data), 0, static_cast<std::size_t>(nla_len(data)));
        }
    }
}

/// Whether the kernel is done with the interface's addresses of IPv6: there is one of the link's own, none is being
/// probed, and each has its local route.
bool has_settled(HostOps& ops, std::int32_t ifindex) {
    const auto addresses = ops.records(RecordKind::kAddresses, ifindex);
    const auto routes = ops.records(RecordKind::kRoutes, ifindex);
    if (!addresses || !routes) {
        return false;
    }
    std::set<std::string> local;
    for (const std::string& record : *routes) {
        const auto header = family_header<rtmsg>(record);
        const Parts parts = take_apart(record);
        if (const std::string* to = find(parts, RTA_DST); header.rtm_type == RTN_LOCAL && to != nullptr) {
            local.insert(*to);
        }
    }
    bool own = false;
    for (const std::string& record : *addresses) {
        const auto header = family_header<ifaddrmsg>(record);
        if (header.ifa_family != AF_INET6) {
            continue;
        }
        const Parts parts = take_apart(record);
        const std::string* address = find(parts, IFA_ADDRESS);
        if ((header.ifa_flags & IFA_F_TENTATIVE) != 0 || address == nullptr || !local.contains(*address)) {
            return false;
        }
        own = own || header.ifa_scope == RT_SCOPE_LINK;
    }
    return own;
}

/// Tables, chains, sets and rules of every family; without the headers, which count changes.
std::vector<std::string> nft_lines(HostOps& ops) {
    std::vector<std::string> lines;
    for (const int kind : {NFT_MSG_GETTABLE, NFT_MSG_GETCHAIN, NFT_MSG_GETSET, NFT_MSG_GETRULE}) {
        NetlinkMessage request((NFNL_SUBSYS_NFTABLES << 8) | kind, NLM_F_DUMP);
        request.append_header(nfgenmsg{});
        const auto found = ops.nft_list({reinterpret_cast<const char*>(request.header()), request.header()->nlmsg_len});
        EXPECT_TRUE(found.has_value()) << found.error().to_line();
        for (std::string each : found.value_or(std::vector<std::string>())) {
            if (kind == NFT_MSG_GETRULE) {
                forget_counts(each);
            }
            lines.push_back(fmt::format("nft {} {}", kind, hex(each.substr(NLMSG_HDRLEN + sizeof(nfgenmsg)))));
        }
    }
    return lines;
}

/// What the kernel forgets with a NIC's IPv6 part, and what a reroute loosens.
std::vector<std::string> sysctl_lines() {
    std::vector<std::string> lines;
    for (const char* folder :
         {"/proc/sys/net/ipv4/conf/nic0", "/proc/sys/net/ipv6/conf/nic0", "/proc/sys/net/ipv6/neigh/nic0"}) {
        std::error_code gone;
        for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
            std::ifstream file(entry.path());
            std::string value;
            std::getline(file, value);
            lines.push_back(fmt::format("sysctl {} {}", entry.path().string(), value));
        }
    }
    return lines;
}

} // namespace

bool readable(int fd, Nanoseconds patience) {
    const Deadline deadline = Deadline::after(patience);
    for (;;) {
        pollfd waiter{fd, POLLIN, 0};
        const int ready = poll(&waiter, 1, deadline.poll_timeout_ms());
        if (ready != 0 || deadline.passed()) {
            return ready > 0;
        }
    }
}

int wait_ended(pid_t pid, Nanoseconds patience) {
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (process.valid() && !readable(process.get(), patience)) {
        ADD_FAILURE() << "process " << pid << " does not end";
        return -1;
    }
    int status = 0;
    waitpid(pid, &status, WNOHANG);
    return status;
}

void InjectorBench::SetUp() {
    prctl(PR_SET_CHILD_SUBREAPER, 1); // so that guards of killed agents can be waited for
    const std::string reason = enter_new_netns();
    if (!reason.empty()) {
        GTEST_SKIP() << reason;
    }
    peer_netns_ = own_netns();
    ASSERT_EQ(enter_new_netns(), "");
    host_netns_ = own_netns();
    auto opened = open_host_ops();
    ASSERT_TRUE(opened.has_value()) << opened.error().to_line();
    ops_ = std::move(*opened);
    (void)ops_->features(); // once, for all agents that a test forks
    auto channel = NetlinkChannel::open();
    ASSERT_TRUE(channel.has_value());
    channel_ = std::make_unique<NetlinkChannel>(std::move(*channel));
    std::string pattern = ::testing::TempDir() + "railbreak-injector-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    // Looking for duplicate addresses takes a second, in which the state changes by itself.
    write_file("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
    ASSERT_TRUE(ops_->set_link_flags(1, IFF_UP, IFF_UP));
    make_pair_of_nics("nic0", "peer0", 9);
    make_pair_of_nics("nic1", "peer1", 10);
    if (HasFatalFailure()) {
        return;
    }
    make_more_nics();
    nic_ = index_of("nic0");
    nic1_ = index_of("nic1");
    fill_host();
}

void InjectorBench::TearDown() {
    if (!folder_.empty()) {
        std::filesystem::remove_all(folder_);
    }
}

void InjectorBench::send(NetlinkMessage& message, const char* what) {
    const auto done = channel_->request(message, what);
    ASSERT_TRUE(done.has_value()) << done.error().to_line();
}

void InjectorBench::make_pair_of_nics(const char* name, const char* peer, int number) {
    NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, name);
    nlattr* info = message.begin_nest(IFLA_LINKINFO);
    message.put_string(IFLA_INFO_KIND, "veth");
    nlattr* data = message.begin_nest(IFLA_INFO_DATA);
    nlattr* other = message.begin_nest(VETH_INFO_PEER);
    message.append_header(ifinfomsg{});
    message.put_string(IFLA_IFNAME, peer);
    message.put_u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_netns_.get()));
    message.end_nest(other);
    message.end_nest(data);
    message.end_nest(info);
    ASSERT_NO_FATAL_FAILURE(send(message, "create a veth pair"));
    auto far = NetlinkChannel::open_in(peer_netns_.get());
    ASSERT_TRUE(far.has_value());
    auto far_ops = open_host_ops_in(peer_netns_.get());
    ASSERT_TRUE(far_ops.has_value());
    const auto far_index = interface_index(*far, peer);
    ASSERT_TRUE(far_index.has_value());
    ASSERT_TRUE((*far_ops)->set_link_flags(*far_index, IFF_UP, IFF_UP));
    const std::int32_t index = index_of(name);
    ASSERT_TRUE(ops_->set_link_flags(index, IFF_UP, IFF_UP));
    ASSERT_TRUE(wait_running(*ops_, index, Deadline::after(std::chrono::seconds(5))).value_or(false));
    const std::string net = fmt::format("10.{}.0.", number);
    const std::string net6 = fmt::format("fd{:02}::", number);
    add_address(*channel_, index, AF_INET, net + "1", 24, 0);
    add_address(*channel_, index, AF_INET6, net6 + "1", 64, IFA_F_NODAD);
    add_address(*far, *far_index, AF_INET, net + "2", 24, 0);
    add_address(*far, *far_index, AF_INET6, net6 + "2", 64, IFA_F_NODAD);
}

void InjectorBench::add_address(NetlinkChannel& channel, std::int32_t ifindex, int family, const std::string& text,
                                int prefix, std::uint32_t flags) {
    NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
    ifaddrmsg header{};
    header.ifa_family = static_cast<std::uint8_t>(family);
    header.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
    header.ifa_index = static_cast<std::uint32_t>(ifindex);
    header.ifa_flags = static_cast<std::uint8_t>(flags);
    message.append_header(header);
    put_address(message, IFA_LOCAL, family, text);
    put_address(message, IFA_ADDRESS, family, text);
    const auto done = channel.request(message, "add an address");
    ASSERT_TRUE(done.has_value()) << done.error().to_line();
}

void InjectorBench::add_route(int family, const std::string& to, int prefix, const std::string& via,
                              std::uint32_t table, std::uint32_t ifindex) {
    NetlinkMessage message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    rtmsg header{};
    header.rtm_family = static_cast<std::uint8_t>(family);
    header.rtm_dst_len = static_cast<std::uint8_t>(prefix);
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_type = RTN_UNICAST;
    header.rtm_scope = via.empty() ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
    message.append_header(header);
    if (prefix > 0) {
        put_address(message, RTA_DST, family, to);
    }
    message.put_u32(RTA_OIF, ifindex);
    message.put_u32(RTA_TABLE, table);
    if (!via.empty()) {
        put_address(message, RTA_GATEWAY, family, via);
    }
    send(message, "add a route");
}

void InjectorBench::add_multipath(int family, const std::string& to, int prefix, const std::string& via0,
                                  const std::string& via1) {
    NetlinkMessage message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
    rtmsg header{};
    header.rtm_family = static_cast<std::uint8_t>(family);
    header.rtm_dst_len = static_cast<std::uint8_t>(prefix);
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_type = RTN_UNICAST;
    message.append_header(header);
    put_address(message, RTA_DST, family, to);
    std::string hops;
    for (const auto& [via, index] : {std::pair{via0, nic_}, std::pair{via1, nic1_}}) {
        const std::string gateway = address_bytes(family, via);
        nlattr attribute{};
        attribute.nla_type = RTA_GATEWAY;
        attribute.nla_len = static_cast<std::uint16_t>(NLA_HDRLEN + gateway.size());
        rtnexthop hop{};
        hop.rtnh_ifindex = index;
        hop.rtnh_len = static_cast<std::uint16_t>(sizeof hop + attribute.nla_len);
        hops.append(reinterpret_cast<const char*>(&hop), sizeof hop);
        hops.append(reinterpret_cast<const char*>(&attribute), sizeof attribute);
        hops.append(gateway);
    }
    message.put_bytes(RTA_MULTIPATH, hops.data(), hops.size());
    send(message, "add a multipath route");
}

void InjectorBench::add_neighbour(int family, const std::string& address) {
    NetlinkMessage message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_EXCL);
    ndmsg header{};
    header.ndm_family = static_cast<std::uint8_t>(family);
    header.ndm_ifindex = nic_;
    header.ndm_state = NUD_PERMANENT;
    message.append_header(header);
    put_address(message, NDA_DST, family, address);
    const std::array<unsigned char, 6> mac{2, 0, 0, 0, 9, 9};
    message.put_bytes(NDA_LLADDR, mac.data(), mac.size());
    send(message, "add a neighbour");
}

void InjectorBench::fill_host() {
    const auto nic = static_cast<std::uint32_t>(nic_);
    add_address(*channel_, nic_, AF_INET, "10.9.0.77", 24, 0); // a secondary address
    add_address(*channel_, nic_, AF_INET6, "fd77::1", 64, IFA_F_NODAD);
    add_route(AF_INET, "192.168.50.0", 24, "10.9.0.2", RT_TABLE_MAIN, nic);
    add_route(AF_INET, "192.168.51.0", 24, "", 77, nic);
    add_route(AF_INET, "192.168.53.0", 24, "", RT_TABLE_MAIN, nic);
    add_route(AF_INET, "192.168.52.0", 24, "192.168.53.9", 0x1234, nic); // comes back only after the one above
    add_route(AF_INET6, "fd50::", 64, "fd09::2", RT_TABLE_MAIN, nic);
    add_route(AF_INET6, "fd51::", 64, "fd09::2", 77, nic);
    add_multipath(AF_INET, "192.168.60.0", 24, "10.9.0.2", "10.10.0.2");
    add_multipath(AF_INET6, "fd60::", 64, "fd09::2", "fd10::2");
    add_neighbour(AF_INET, "10.9.0.99");
    add_neighbour(AF_INET6, "fd09::99");
    settle();
}

void InjectorBench::settle() {
    // The kernel's workers finish addresses of IPv6 when they get to it; a snapshot must not fall into that.
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    for (;;) {
        const bool quiet = !ops_->wait_event(Deadline::after(std::chrono::milliseconds(100))).value_or(false);
        if (quiet && has_settled(*ops_, nic_) && has_settled(*ops_, nic1_)) {
            return;
        }
        ASSERT_FALSE(deadline.passed()) << "the addresses of the NICs do not settle";
    }
}

void InjectorBench::shape_like_the_lab(std::uint64_t bits_per_s) {
    const BitRate rate = BitRate::bits_per_s(bits_per_s);
    ASSERT_TRUE(add_htb(*channel_, nic_, kLabHtb, 1));
    ASSERT_TRUE(
        add_htb_class(*channel_, nic_, kLabHtb, kLabHtbClass, make_htb_class(rate, ByteCount::bytes(16'000), 60'000)));
    ASSERT_TRUE(add_bfifo(*channel_, nic_, kLabHtbClass, kLabFifo, ByteCount::bytes(1'000'000)));
}

std::int32_t InjectorBench::index_of(const std::string& name) const {
    const auto links = ops_->links();
    EXPECT_TRUE(links.has_value());
    for (const LinkRecord& link : links.value_or(std::vector<LinkRecord>())) {
        if (link.name == name) {
            return link.ifindex;
        }
    }
    return 0;
}

std::vector<std::string> InjectorBench::snapshot() const {
    std::vector<std::string> lines;
    const auto links = ops_->links();
    EXPECT_TRUE(links.has_value());
    for (const LinkRecord& link : links.value_or(std::vector<LinkRecord>())) {
        const auto& name = link.name;
        lines.push_back(fmt::format("link {} {} alias '{}' {} flags {:x} mtu {}", link.ifindex, name, link.alias,
                                    link.kind, link.flags, link.mtu));
        for (const RecordKind kind : {RecordKind::kAddresses, RecordKind::kRoutes, RecordKind::kNeighbours}) {
            const auto records = ops_->records(kind, link.ifindex);
            EXPECT_TRUE(records.has_value());
            for (const std::string& record : records.value_or(std::vector<std::string>())) {
                if (const std::string same = comparable_record(record); !same.empty()) {
                    lines.push_back(fmt::format("record of {}: {}", name, hex(same)));
                } else if (kind == RecordKind::kRoutes) {
                    const auto own = own_route_lines(name, record);
                    lines.insert(lines.end(), own.begin(), own.end());
                }
            }
        }
        const auto qdiscs = ops_->qdiscs(link.ifindex);
        const auto classes = ops_->htb_classes(link.ifindex);
        const auto filters = ops_->filters(link.ifindex);
        EXPECT_TRUE(qdiscs.has_value() && classes.has_value() && filters.has_value());
        if (!qdiscs || !classes || !filters) {
            continue;
        }
        for (const QdiscRecord& each : *qdiscs) {
            lines.push_back(fmt::format("qdisc of {}: {} {} parent {} limit {}", name, each.kind,
                                        to_tc_string(each.handle), to_tc_string(each.parent),
                                        each.fifo_limit ? each.fifo_limit->bytes() : 0));
        }
        for (const HtbClassRecord& each : *classes) {
            const HtbClass& it = each.parameters;
            lines.push_back(fmt::format("class of {}: {} rate {} ceil {} buffer {} cbuffer {} quantum {}", name,
                                        to_tc_string(each.handle), it.rate.bits_per_s(), it.ceil.bits_per_s(),
                                        it.buffer_ticks, it.cbuffer_ticks, it.quantum));
        }
        for (const FilterRecord& each : *filters) {
            lines.push_back(fmt::format("filter of {}: {} parent {} priority {}", name, each.kind,
                                        to_tc_string(each.parent), each.priority));
        }
    }
    for (const auto& more : {rule_lines(*ops_), nft_lines(*ops_), sysctl_lines()}) {
        lines.insert(lines.end(), more.begin(), more.end());
    }
    std::sort(lines.begin(), lines.end());
    return lines;
}

} // namespace railbreak::injectors
