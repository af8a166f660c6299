#include "injectors/real_host_ops.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include <fmt/format.h>

#include "injectors/find_netns.hpp"
#include "injectors/host_files.hpp"
#include "injectors/host_records.hpp"
#include "injectors/netfilter.hpp"
#include "injectors/netlink.hpp"
#include "injectors/netns_scope.hpp"
#include "injectors/process_control.hpp"
#include "injectors/program_loader.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

namespace {

#ifndef SO_NETNS_COOKIE
constexpr int SO_NETNS_COOKIE = 71;
#endif

/// A management agent answers in milliseconds; one that the fabric keeps away from us never does.
constexpr auto kManagementAnswer = std::chrono::seconds(2);

Nanoseconds read_clock(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

class RealHostOps final : public HostOps {
public:
    RealHostOps(NetlinkChannel channel, NetlinkChannel events, NetnsIdentity netns, UniqueFd netns_fd)
        : channel_(std::move(channel)), events_(std::move(events)), netns_(netns), netns_fd_(std::move(netns_fd)) {}

    Nanoseconds monotonic() override { return read_clock(CLOCK_MONOTONIC); }
    Nanoseconds boottime() override { return read_clock(CLOCK_BOOTTIME); }

    Result<std::string> boot_id() override {
        return host_files::read_file("/proc/sys/kernel/random/boot_id").map([](std::string id) {
            id.erase(id.find_last_not_of('\n') + 1);
            return id;
        });
    }

    Result<NetnsIdentity> netns() override { return netns_; }

    Result<std::vector<LinkRecord>> links() override { return list_links(channel_); }
    Result<std::vector<std::string>> records(RecordKind kind, std::int32_t ifindex) override {
        return list_records(channel_, kind, ifindex);
    }
    Result<std::vector<QdiscRecord>> qdiscs(std::int32_t ifindex) override { return list_qdiscs(channel_, ifindex); }
    Result<std::vector<HtbClassRecord>> htb_classes(std::int32_t ifindex) override {
        return list_htb_classes(channel_, ifindex);
    }
    Result<std::vector<FilterRecord>> filters(std::int32_t ifindex) override { return list_filters(channel_, ifindex); }
    Result<std::vector<std::int32_t>> default_route_devices() override { return list_default_route_devices(channel_); }
    Result<void> may_change(std::int32_t ifindex) override {
        // No flag is to be changed: the kernel checks the permission and is done.
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        message.append_header(header);
        auto asked = channel_.request(message, fmt::format("change interface {}", ifindex));
        if (!asked && asked.error().kind() == ErrorKind::kRefused) {
            return fail(Error(ErrorKind::kRefused, "this process may not change network interfaces")
                            .with("errno", "EPERM")
                            .advise("Run as root, or with CAP_NET_ADMIN in the namespace's user namespace."));
        }
        return asked;
    }
    Result<std::vector<AddressRecord>> addresses() override { return list_addresses(channel_); }
    Result<std::vector<std::int32_t>> route_devices(const std::string& address) override {
        return list_route_devices(channel_, address);
    }
    Result<hardware::LinkModes> link_modes(std::int32_t ifindex) override {
        return ask_ethtool(ifindex,
                           [](NetlinkChannel& channel, const hardware::GenericFamily& ethtool, const std::string& nic) {
                               return hardware::read_link_modes(channel, ethtool, nic);
                           });
    }
    Result<void> set_advertised_modes(std::int32_t ifindex, const std::vector<std::uint32_t>& modes) override {
        return ask_ethtool(
            ifindex, [&](NetlinkChannel& channel, const hardware::GenericFamily& ethtool, const std::string& nic) {
                auto message = hardware::link_modes_set_request(ethtool, nic, {true, modes, {}, {}});
                return channel.request(message, fmt::format("set the link modes of {}", nic));
            });
    }
    Result<hardware::DcbState> dcb(std::int32_t ifindex) override {
        return name_of(ifindex).and_then([&](const std::string& nic) { return hardware::read_dcb(channel_, nic); });
    }
    Result<void> set_class_rates(std::int32_t ifindex, const hardware::ClassRates& rates) override {
        return name_of(ifindex).and_then(
            [&](const std::string& nic) { return hardware::write_class_rates(channel_, nic, rates); });
    }
    Result<std::vector<hardware::VfRecord>> vfs(std::int32_t ifindex) override {
        return hardware::read_vfs(channel_, ifindex);
    }
    Result<void> set_vf_rates(std::int32_t ifindex, std::uint32_t vf, BitRate min, BitRate max) override {
        return hardware::write_vf_rates(channel_, ifindex, vf, min, max);
    }
    Result<std::vector<hardware::DevlinkPort>> devlink_ports() override {
        return ask_family("devlink", hardware::list_devlink_ports);
    }
    Result<std::vector<hardware::RateObject>> devlink_rates() override {
        return ask_family("devlink", hardware::list_rates);
    }
    Result<void> set_devlink_rate(const hardware::RateKey& key, BitRate max) override {
        return ask_family("devlink", [&](NetlinkChannel& channel, const hardware::GenericFamily& devlink) {
            return hardware::write_rate_max(channel, devlink, key, max);
        });
    }
    Result<hardware::IbPortInfo> ib_port(const hardware::IbPortAddress& port) override {
        return hardware::IbPort::open(port).and_then(
            [](hardware::IbPort open) { return open.query(Deadline::after(kManagementAnswer)); });
    }
    Result<void> change_ib_port(const hardware::IbPortAddress& port, const hardware::IbPortChange& change) override {
        return hardware::IbPort::open(port).and_then(
            [&](hardware::IbPort open) { return open.set(change, Deadline::after(kManagementAnswer)); });
    }
    const hardware::Sysfs& sysfs() const override { return sysfs_; }
    hardware::Privileges privileges() override { return hardware::read_privileges(); }
    Result<std::vector<std::string>> rules() override { return list_rules(channel_); }
    Result<std::vector<std::string>> nft_list(std::string_view request) override {
        return list_nft(netns_fd_.get(), request);
    }
    Result<std::optional<PacketProgramRecord>> packet_program(std::int32_t ifindex, TcDirection direction,
                                                              std::uint16_t priority) override {
        return read_packet_program(channel_, ifindex, direction, priority);
    }
    Result<KernelFeatures> features() override {
        if (!features_) {
            features_ = probe_kernel_features();
        }
        return *features_;
    }
    Result<std::optional<ProcessRecord>> process(std::int32_t pid) override { return read_process(pid); }
    Result<std::string> read_file(const std::string& path) override {
        return where_seen(path, [&] { return host_files::read_file(path); });
    }
    Result<std::vector<std::string>> list_folder(const std::string& path) override {
        return where_seen(path, [&] { return host_files::list_folder(path); });
    }
    Result<FileSystemRecord> file_system(const std::string& path) override { return host_files::file_system(path); }
    Result<bool> may_write(const std::string& path) override { return host_files::may_write(path); }
    Result<void> may_signal(const ProcessIdentity& process) override { return send_signal(process, 0); }
    Result<bool> wait_file(const std::string& path, std::string_view text, Deadline deadline) override {
        return host_files::wait_file(path, text, deadline);
    }
    Result<std::optional<ByteCount>> allocated(const std::string& path) override { return host_files::allocated(path); }
    Result<void> may_allocate(const std::string& folder) override { return host_files::may_allocate(folder); }

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

    Result<void> set_mtu(std::int32_t ifindex, std::uint32_t mtu_bytes) override {
        NetlinkMessage message(RTM_NEWLINK, 0);
        ifinfomsg header{};
        header.ifi_index = ifindex;
        message.append_header(header);
        message.put_u32(IFLA_MTU, mtu_bytes);
        return channel_.request(message, fmt::format("set the MTU of interface {} to {}", ifindex, mtu_bytes));
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
    Result<void> make_redirect(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                               std::int32_t to) override {
        return add_redirect(channel_, ifindex, direction, priority, to);
    }
    Result<void> remove_redirect(std::int32_t ifindex, TcDirection direction, std::uint16_t priority) override {
        return delete_redirect(channel_, ifindex, direction, priority);
    }
    Result<void> make_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle, const NetemShape& shape) override {
        return add_netem(channel_, ifindex, parent, handle, shape);
    }
    Result<void> change_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                              const NetemShape& shape) override {
        return injectors::change_netem(channel_, ifindex, parent, handle, shape);
    }
    Result<void> attach_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                                const PacketProgram& program) override {
        return attach_packet_program(channel_, ifindex, direction, priority, program);
    }
    Result<void> change_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority,
                                const PacketProgram& program) override {
        return change_packet_program(channel_, ifindex, direction, priority, program);
    }
    Result<void> remove_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority) override {
        return delete_packet_program(channel_, ifindex, direction, priority);
    }
    Result<void> nft(const std::vector<std::string>& messages, std::string_view what) override {
        return commit_nft(netns_fd_.get(), messages, what);
    }

    Result<void> signal_process(const ProcessIdentity& process, int signal) override {
        return send_signal(process, signal);
    }
    Result<void> write_file(const std::string& path, std::string_view text) override {
        return where_seen(path, [&] { return host_files::write_file(path, text); });
    }
    Result<void> make_cgroup(const std::string& path) override { return host_files::make_cgroup(path); }
    Result<void> remove_cgroup(const std::string& path) override { return host_files::remove_cgroup(path); }
    Result<void> make_ballast(const std::string& path, ByteCount size) override {
        return host_files::make_ballast(path, size);
    }

    Result<void> make_folder(const std::string& path) override { return host_files::make_folder(path); }
    Result<UniqueFd> create_file(const std::string& folder) override { return host_files::create_file(folder); }
    Result<void> publish_file(int fd, const std::string& path) override { return host_files::publish_file(fd, path); }
    Result<void> append(int fd, std::string_view bytes) override { return host_files::append_to_file(fd, bytes); }
    Result<void> sync_file(int fd) override { return host_files::sync_file(fd); }
    Result<void> sync_folder(const std::string& path) override { return host_files::sync_folder(path); }
    Result<void> truncate_file(int fd, std::uint64_t size) override { return host_files::truncate_file(fd, size); }
    Result<void> remove_file(const std::string& path) override { return host_files::remove_file(path); }

private:
    /// The present name of an interface.
    Result<std::string> name_of(std::int32_t ifindex) {
        const auto links = list_links(channel_);
        if (!links) {
            return tl::unexpected(links.error());
        }
        const auto link =
            std::find_if(links->begin(), links->end(), [&](const LinkRecord& each) { return each.ifindex == ifindex; });
        return link == links->end()
                   ? Result<std::string>(
                         fail_errno(ErrorKind::kHarness, fmt::format("find the name of interface {}", ifindex), ENODEV))
                   : Result<std::string>(link->name);
    }

    /// Speaks to a generic netlink family, over a socket of its own: it is seldom needed.
    template <class Action> std::invoke_result_t<Action, NetlinkChannel&, const hardware::GenericFamily&>
    ask_family(std::string_view name, Action action) {
        auto channel = NetlinkChannel::open_in(netns_fd_.get(), NETLINK_GENERIC);
        if (!channel) {
            return tl::unexpected(channel.error());
        }
        const auto family = hardware::find_family(*channel, name);
        return family ? action(*channel, *family) : tl::unexpected(family.error());
    }

    /// Speaks to ethtool about an interface.
    template <class Action>
    std::invoke_result_t<Action, NetlinkChannel&, const hardware::GenericFamily&, const std::string&>
    ask_ethtool(std::int32_t ifindex, Action action) {
        const auto nic = name_of(ifindex);
        if (!nic) {
            return tl::unexpected(nic.error());
        }
        return ask_family("ethtool", [&](NetlinkChannel& channel, const hardware::GenericFamily& ethtool) {
            return action(channel, ethtool, *nic);
        });
    }

    /// Does it where the path means what is asked for: settings of the network belong to the namespace of whoever
    /// looks.
    template <class Action> std::invoke_result_t<Action> where_seen(const std::string& path, Action action) {
        if (!path.starts_with("/proc/sys/net/")) {
            return action();
        }
        std::optional<std::invoke_result_t<Action>> result;
        if (auto entered = run_in_netns(netns_fd_.get(), [&] { result = action(); }); !entered) {
            return tl::unexpected(entered.error());
        }
        return std::move(*result);
    }

    NetlinkChannel channel_;
    NetlinkChannel events_;
    NetnsIdentity netns_;
    UniqueFd netns_fd_; ///< for sockets of other protocols
    hardware::Sysfs sysfs_;
    std::optional<Result<KernelFeatures>> features_;
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
    NetnsIdentity netns{status.st_ino, 0, owner_of_netns(netns_fd)};
    socklen_t size = sizeof netns.cookie;
    if (getsockopt(channel->fd(), SOL_SOCKET, SO_NETNS_COOKIE, &netns.cookie, &size) != 0) {
        netns.cookie = 0; // before Linux 5.14
    }
    UniqueFd kept(fcntl(netns_fd, F_DUPFD_CLOEXEC, 0));
    if (!kept.valid()) {
        return fail_errno(ErrorKind::kHarness, "keep the network namespace", errno);
    }
    return std::make_unique<RealHostOps>(std::move(*channel), std::move(*events), netns, std::move(kept));
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
