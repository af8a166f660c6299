// The only door between the injectors and a host.
//
// Every reading and every effect (a change of the kernel's network state or of the journal's files) goes through
// HostOps, so that tests can fail or kill the process at each effect in turn, and a dry run can record them instead.
// One object acts in one network namespace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "injectors/fault.hpp"
#include "injectors/hardware/dcb.hpp"
#include "injectors/hardware/devlink_rate.hpp"
#include "injectors/hardware/ib_port.hpp"
#include "injectors/hardware/link_modes.hpp"
#include "injectors/hardware/privileges.hpp"
#include "injectors/hardware/sysfs.hpp"
#include "injectors/hardware/vf.hpp"
#include "injectors/kernel_features.hpp"
#include "injectors/packet_program.hpp"
#include "injectors/traffic_control.hpp"

namespace railbreak::injectors {

/// One network interface as the kernel describes it.
struct LinkRecord {
    std::int32_t ifindex = 0;
    std::string name;
    std::string alias;
    std::string kind; ///< "veth", "ifb", ...; empty for hardware
    std::string mac;
    std::string permanent_mac;
    std::uint32_t flags = 0; ///< IFF_*
    std::uint32_t mtu = 0;
    std::uint32_t smallest_mtu = 0;   ///< that the device takes
    std::uint32_t largest_mtu = 0;    ///< the same; 0: no limit known
    std::int32_t master = 0;          ///< ifindex of the bridge or bond above, 0 for none
    std::int32_t lower = 0;           ///< VLANs and their like: ifindex of the device that they ride on, 0 for none
    std::uint64_t sent_bytes = 0;     ///< IFLA_STATS64, since the device exists
    std::uint64_t received_bytes = 0; ///< the same; counted before an ingress queue
};

/// One address of an interface.
struct AddressRecord {
    std::int32_t ifindex = 0;
    std::string address; ///< "10.0.0.1", "fd00::1"
};

/// One filter of a clsact qdisc.
struct FilterRecord {
    TcHandle parent = 0; ///< ffff:fff2 for arriving, ffff:fff3 for leaving packets
    std::uint16_t priority = 0;
    std::string kind;
};

/// A process as /proc describes it.
struct ProcessRecord {
    ProcessIdentity identity;
    /// Of its first thread: 'R', 'S', 'T' (stopped), ...; 'Z' once all have ended, '?' while others go on without it.
    char state = '?';
    std::uint32_t uid = 0;      ///< effective user
    std::int32_t parent = 0;    ///< its parent's pid, 0 when that lies outside of the pid namespace
    bool kernel_thread = false; ///< not a program's process at all
    /// Lines of /proc/PID/cgroup: controllers ("" for cgroup v2, else "cpu,cpuacct") and path within the hierarchy.
    std::vector<std::pair<std::string, std::string>> cgroups;
};

/// The file system that holds a path.
struct FileSystemRecord {
    std::string path;            ///< the path that was asked for: absolute, without symbolic links
    bool is_folder = false;      ///< it is a folder
    std::uint64_t device_id = 0; ///< st_dev
    std::uint64_t type = 0;      ///< f_type of statfs(2), a *_MAGIC of linux/magic.h
    ByteCount total;
    ByteCount available;     ///< to this user
    bool holds_root = false; ///< it is the one of "/"
};

/// A network namespace.
struct NetnsIdentity {
    std::uint64_t inode = 0;
    std::uint64_t cookie = 0; ///< 0 when the kernel does not tell
    /// Owner of the user namespace that it belongs to, see owner_of_netns(); no part of what makes it this one.
    std::optional<std::uint32_t> user;
    bool operator==(const NetnsIdentity& other) const { return inode == other.inode && cookie == other.cookie; }
};

/// Kinds of raw records that describe a device.
enum class RecordKind : std::uint8_t { kAddresses, kRoutes, kNeighbours };

class HostOps {
public:
    HostOps() = default;
    HostOps(const HostOps&) = delete;
    HostOps& operator=(const HostOps&) = delete;
    virtual ~HostOps() = default;

    /// CLOCK_MONOTONIC and CLOCK_BOOTTIME.
    [[nodiscard]] virtual Nanoseconds monotonic() = 0;
    [[nodiscard]] virtual Nanoseconds boottime() = 0;
    /// The kernel's random boot id.
    [[nodiscard]] virtual Result<std::string> boot_id() = 0;
    /// The namespace that this object acts in.
    [[nodiscard]] virtual Result<NetnsIdentity> netns() = 0;

    // Readings. A failed reading is an Error, never an empty list.
    [[nodiscard]] virtual Result<std::vector<LinkRecord>> links() = 0;
    /// Raw netlink messages of both address families that belong to the device: every address; every route of every
    /// table with the device as its output or one of its hops; every neighbour. Kernel order.
    [[nodiscard]] virtual Result<std::vector<std::string>> records(RecordKind kind, std::int32_t ifindex) = 0;
    [[nodiscard]] virtual Result<std::vector<QdiscRecord>> qdiscs(std::int32_t ifindex) = 0;
    [[nodiscard]] virtual Result<std::vector<HtbClassRecord>> htb_classes(std::int32_t ifindex) = 0;
    /// Filters on the device's clsact (or ingress) qdisc, both directions.
    [[nodiscard]] virtual Result<std::vector<FilterRecord>> filters(std::int32_t ifindex) = 0;
    /// Success when this process may change the device: asked of the kernel by a request that changes nothing. kRefused
    /// otherwise.
    [[nodiscard]] virtual Result<void> may_change(std::int32_t ifindex) = 0;
    /// Interfaces over which a default route of either family goes, or one of a prefix of up to 3 bits, without
    /// duplicates.
    [[nodiscard]] virtual Result<std::vector<std::int32_t>> default_route_devices() = 0;
    /// Every address of both families.
    [[nodiscard]] virtual Result<std::vector<AddressRecord>> addresses() = 0;
    /// Interfaces over which what is sent to an address leaves, all hops of the route; empty when no route leads there.
    [[nodiscard]] virtual Result<std::vector<std::int32_t>> route_devices(const std::string& address) = 0;
    /// The modes that a port can do and offers its partner. kRefused when its driver tells none.
    [[nodiscard]] virtual Result<hardware::LinkModes> link_modes(std::int32_t ifindex) = 0;
    /// Limits of a port's traffic classes. kRefused when its driver has no DCB.
    [[nodiscard]] virtual Result<hardware::DcbState> dcb(std::int32_t ifindex) = 0;
    /// The virtual functions of a physical one; empty when it has none.
    [[nodiscard]] virtual Result<std::vector<hardware::VfRecord>> vfs(std::int32_t ifindex) = 0;
    /// Ports and rate objects of the host's devlink devices. kRefused when the kernel has no devlink.
    [[nodiscard]] virtual Result<std::vector<hardware::DevlinkPort>> devlink_ports() = 0;
    [[nodiscard]] virtual Result<std::vector<hardware::RateObject>> devlink_rates() = 0;
    /// An InfiniBand port, by a management packet. kRefused without libibumad or access to the node.
    [[nodiscard]] virtual Result<hardware::IbPortInfo> ib_port(const hardware::IbPortAddress& port) = 0;
    /// The tree that tells of PCI functions, RDMA and cooling devices. It is only read; write_file() changes it.
    [[nodiscard]] virtual const hardware::Sysfs& sysfs() const = 0;
    [[nodiscard]] virtual hardware::Privileges privileges() = 0;
    /// Waits for the next change of any link, address or route in the namespace since the last call. False when the
    /// deadline passed first. Wakes more often than needed; look again after each.
    [[nodiscard]] virtual Result<bool> wait_event(Deadline deadline) = 0;

    /// Policy rules of both address families, raw netlink messages in kernel order.
    [[nodiscard]] virtual Result<std::vector<std::string>> rules() = 0;
    /// Objects of an nft table: raw messages (NFT_MSG_GETTABLE, GETCHAIN, GETRULE, GETSETELEM, ... of nfnetlink) that
    /// answer `request`. errno ENOENT when there is no such table.
    [[nodiscard]] virtual Result<std::vector<std::string>> nft_list(std::string_view request) = 0;
    /// The packet program of that priority on the device; empty when there is none.
    [[nodiscard]] virtual Result<std::optional<PacketProgramRecord>>
    packet_program(std::int32_t ifindex, TcDirection direction, std::uint16_t priority) = 0;
    /// What the running kernel can do and this process may ask of it; probed once.
    [[nodiscard]] virtual Result<KernelFeatures> features() = 0;
    /// A process; empty when there is none of that pid.
    [[nodiscard]] virtual Result<std::optional<ProcessRecord>> process(std::int32_t pid) = 0;
    /// A small file of proc, sysfs or cgroup, whole (those below /proc/sys/net as seen in this network namespace); and
    /// the names in a folder, sorted. Errors carry errno.
    [[nodiscard]] virtual Result<std::string> read_file(const std::string& path) = 0;
    [[nodiscard]] virtual Result<std::vector<std::string>> list_folder(const std::string& path) = 0;
    [[nodiscard]] virtual Result<FileSystemRecord> file_system(const std::string& path) = 0;
    /// Whether this process may write the file or make something in the folder (access(2) with its effective ids).
    /// False when there is no such thing.
    [[nodiscard]] virtual Result<bool> may_write(const std::string& path) = 0;
    /// Success when this process may signal that one. errno EPERM, ESRCH.
    [[nodiscard]] virtual Result<void> may_signal(const ProcessIdentity& process) = 0;
    /// Waits until a small file of proc, sysfs or cgroup says something else than `text`, or is gone. False when the
    /// deadline passed first. Files that give notice of a change (poll(2) with POLLPRI) are seen to change at once,
    /// others within some milliseconds.
    [[nodiscard]] virtual Result<bool> wait_file(const std::string& path, std::string_view text, Deadline deadline) = 0;
    /// Room that a regular file takes on its disk; empty when there is nothing of that name. kRefused for what is no
    /// regular file.
    [[nodiscard]] virtual Result<std::optional<ByteCount>> allocated(const std::string& path) = 0;
    /// Success when a file in that folder can be given room in advance: tried with an unnamed file that ends with the
    /// call (O_TMPFILE). Errors carry errno: EOPNOTSUPP, EROFS, EACCES, EDQUOT.
    [[nodiscard]] virtual Result<void> may_allocate(const std::string& folder) = 0;

    // Effects on the network.
    [[nodiscard]] virtual Result<void> set_mtu(std::int32_t ifindex, std::uint32_t mtu_bytes) = 0;
    /// Sets the IFF_* bits in `mask` to those in `flags`.
    [[nodiscard]] virtual Result<void> set_link_flags(std::int32_t ifindex, std::uint32_t mask,
                                                      std::uint32_t flags) = 0;
    /// Switches auto-negotiation on and offers exactly these modes, by ETHTOOL_LINK_MODE_*_BIT. The link trains anew.
    [[nodiscard]] virtual Result<void> set_advertised_modes(std::int32_t ifindex,
                                                            const std::vector<std::uint32_t>& modes) = 0;
    /// Writes the limits of all traffic classes, the two rates of a virtual function, the largest rate of a devlink
    /// object, and what the change names of an InfiniBand port. Success is no proof.
    [[nodiscard]] virtual Result<void> set_class_rates(std::int32_t ifindex, const hardware::ClassRates& rates) = 0;
    [[nodiscard]] virtual Result<void> set_vf_rates(std::int32_t ifindex, std::uint32_t vf, BitRate min,
                                                    BitRate max) = 0;
    [[nodiscard]] virtual Result<void> set_devlink_rate(const hardware::RateKey& key, BitRate max) = 0;
    [[nodiscard]] virtual Result<void> change_ib_port(const hardware::IbPortAddress& port,
                                                      const hardware::IbPortChange& change) = 0;
    /// Creates an ifb device that is up and carries the alias. Its existence is EEXIST.
    [[nodiscard]] virtual Result<void> make_ifb(std::string_view name, std::string_view alias) = 0;
    [[nodiscard]] virtual Result<void> remove_link(std::int32_t ifindex) = 0;
    /// Sends a prepared route-netlink message with these NLM_F_* flags.
    [[nodiscard]] virtual Result<void> replay(std::string_view message, int flags) = 0;
    /// As the functions of the same meaning in traffic_control.hpp: create and change never stand in for each other.
    [[nodiscard]] virtual Result<void> make_htb(std::int32_t ifindex, TcHandle handle) = 0;
    [[nodiscard]] virtual Result<void> make_class(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                                                  const HtbClass& parameters) = 0;
    [[nodiscard]] virtual Result<void> change_class(std::int32_t ifindex, TcHandle handle,
                                                    const HtbClass& parameters) = 0;
    [[nodiscard]] virtual Result<void> make_bfifo(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                                                  ByteCount limit) = 0;
    [[nodiscard]] virtual Result<void> remove_qdisc(std::int32_t ifindex, TcHandle parent, TcHandle handle) = 0;
    [[nodiscard]] virtual Result<void> make_clsact(std::int32_t ifindex) = 0;
    /// Sends everything that arrives on `ifindex` through the device `to`. Needs the clsact qdisc.
    [[nodiscard]] virtual Result<void> make_redirect(std::int32_t ifindex, TcDirection direction,
                                                     std::uint16_t priority, std::int32_t to) = 0;
    [[nodiscard]] virtual Result<void> remove_redirect(std::int32_t ifindex, TcDirection direction,
                                                       std::uint16_t priority) = 0;
    /// A netem qdisc; change sends every attribute, for what is not sent would stay.
    [[nodiscard]] virtual Result<void> make_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                                                  const NetemShape& shape) = 0;
    [[nodiscard]] virtual Result<void> change_netem(std::int32_t ifindex, TcHandle parent, TcHandle handle,
                                                    const NetemShape& shape) = 0;
    /// Hangs the packet program into the device's clsact qdisc, or gives the one that hangs there another setting.
    [[nodiscard]] virtual Result<void> attach_program(std::int32_t ifindex, TcDirection direction,
                                                      std::uint16_t priority, const PacketProgram& program) = 0;
    [[nodiscard]] virtual Result<void> change_program(std::int32_t ifindex, TcDirection direction,
                                                      std::uint16_t priority, const PacketProgram& program) = 0;
    [[nodiscard]] virtual Result<void> remove_program(std::int32_t ifindex, TcDirection direction,
                                                      std::uint16_t priority) = 0;
    /// Sends raw nfnetlink messages as one transaction: all take effect or none. `what` stands in the Error.
    [[nodiscard]] virtual Result<void> nft(const std::vector<std::string>& messages, std::string_view what) = 0;

    // Effects on processes and files of the kernel.
    /// By pidfd, so that it is this very process. errno ESRCH when it is gone.
    [[nodiscard]] virtual Result<void> signal_process(const ProcessIdentity& process, int signal) = 0;
    /// One write(2) to an existing file of proc, sysfs or cgroup, found as by read_file(). Errors carry errno.
    [[nodiscard]] virtual Result<void> write_file(const std::string& path, std::string_view text) = 0;
    /// mkdir and rmdir of one folder (a cgroup); errno EEXIST, ENOENT, EBUSY.
    [[nodiscard]] virtual Result<void> make_cgroup(const std::string& path) = 0;
    [[nodiscard]] virtual Result<void> remove_cgroup(const std::string& path) = 0;
    /// Makes a new file of that size, its blocks allocated (fallocate). errno EEXIST, ENOSPC. remove_file undoes it.
    [[nodiscard]] virtual Result<void> make_ballast(const std::string& path, ByteCount size) = 0;

    // Effects on the journal's files.
    /// Creates the folder and its parents (mode 0700) when missing.
    [[nodiscard]] virtual Result<void> make_folder(const std::string& path) = 0;
    /// Creates a new file without a name in a folder, for appending (mode 0600; open(2), O_TMPFILE). Nobody else can
    /// find it, and it is gone with its last descriptor, until publish_file() names it. Where a file system knows no
    /// such files it is hidden instead, and stays behind when it is not published.
    [[nodiscard]] virtual Result<UniqueFd> create_file(const std::string& folder) = 0;
    /// Gives a file made by create_file() its name. A file of that name is EEXIST.
    [[nodiscard]] virtual Result<void> publish_file(int fd, const std::string& path) = 0;
    [[nodiscard]] virtual Result<void> append(int fd, std::string_view bytes) = 0;
    [[nodiscard]] virtual Result<void> sync_file(int fd) = 0;
    [[nodiscard]] virtual Result<void> sync_folder(const std::string& path) = 0;
    [[nodiscard]] virtual Result<void> truncate_file(int fd, std::uint64_t size) = 0;
    [[nodiscard]] virtual Result<void> remove_file(const std::string& path) = 0;
};

} // namespace railbreak::injectors
