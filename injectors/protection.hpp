// Interfaces that no fault may touch, because the way to the host, or the host's own life, goes through them.
//
// It starts from interfaces with a reason of their own:
//   - named by the caller;
//   - of the control connection: the local address of standard input or output when they are sockets, and that of
//     SSH_CONNECTION; the device that has the address (what arrives) and the one that leads to the peer (what leaves);
//   - of default routes of both address families, with all hops;
//   - of established TCP connections of the services that hold a node together (sshd, slurmd, kubelet, NFS, iSCSI,
//   ...);
//   - that lead to the server of a network file system that is mounted;
//   - whose name or alias says that they are for management (mgmt0, bmc, idrac, oob, ...): a guess, on purpose a narrow
//     one.
// and closes the set:
//   - upwards: the bond, bridge, team or vrf that a protected interface is a member of;
//   - sideways: every member of a protected bridge, and of a protected bond or team the last member that is usable
//     (up, with carrier, and not under a fault);
//   - downwards: what a protected VLAN, macvlan or ipvlan hangs on, if it is in the same namespace;
//   - the physical function of a protected virtual function, and all functions of the same PCI device.
//
// The answer is good for one moment: it is computed anew before each injection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// Both ends of a connection, as addresses without ports; empty where it is unknown.
struct Connection {
    std::string local;
    std::string peer;
    std::string carries; ///< "the control connection", "a connection of sshd": for the sentence of a refusal
    bool operator==(const Connection&) const = default;
};

/// The control connection of this process, by standard input and output and by SSH_CONNECTION. Connections of the
/// loopback interface are none: they need no NIC.
[[nodiscard]] std::vector<Connection> control_connections();
/// The addresses in the text of SSH_CONNECTION ("CLIENT PORT SERVER PORT"); empty when it is none.
[[nodiscard]] std::optional<Connection> parse_ssh_connection(std::string_view text);
/// Established connections of known services in the text of /proc/net/tcp or tcp6.
[[nodiscard]] std::vector<Connection> service_connections(std::string_view proc_net_tcp);
/// Servers of the network file systems in the text of /proc/self/mountinfo, as far as they are written as addresses.
[[nodiscard]] std::vector<Connection> file_servers(std::string_view mountinfo);
/// True for a name or an alias with a word that stands for management ("mgmt0", "Dell iDRAC").
[[nodiscard]] bool sounds_like_management(std::string_view text);

/// What is known about one interface beyond its record.
struct PciFacts {
    std::string device;                          ///< "0000:03:00", without the function; empty for no PCI device
    std::vector<std::string> physical_functions; ///< names, for a virtual function
};

/// The protected set at one moment.
class Protection {
public:
    /// One interface with a reason of its own; `why` goes on from its name: "carries the default route".
    struct Seed {
        std::int32_t ifindex = 0;
        std::string why;
    };
    /// Closes the set over `seeds`. `pci` by ifindex; `under_fault` are interfaces that a fault acts on now.
    Protection(std::vector<LinkRecord> links, const std::vector<Seed>& seeds,
               const std::map<std::int32_t, PciFacts>& pci, std::span<const std::int32_t> under_fault,
               bool control_is_here);

    /// kRefused with the reason when the interface may not be touched.
    [[nodiscard]] Result<void> check(const LinkRecord& link) const;
    /// Why an interface is protected, going on from its name; empty when it is not.
    [[nodiscard]] std::string why(std::int32_t ifindex) const;

private:
    struct Entry {
        std::string why;
        bool takes_members = true; ///< false when it is protected only for the sake of a member
    };
    void add(std::int32_t ifindex, std::string why, bool takes_members);
    void close_over(std::int32_t ifindex, const std::map<std::int32_t, PciFacts>& pci);
    void add_members(const LinkRecord& master, const std::string& why);
    [[nodiscard]] bool usable(const LinkRecord& link) const;
    [[nodiscard]] bool is_last_way(const LinkRecord& link) const;

    std::vector<LinkRecord> links_;
    std::vector<std::int32_t> under_fault_;
    bool control_is_here_;
    std::map<std::int32_t, Entry> entries_;
    std::vector<std::int32_t> to_do_;
};

/// Looks at the host and computes the set. `named`: interfaces that the caller wants protected.
[[nodiscard]] Result<Protection> find_protection(HostOps& ops, std::span<const std::string> named,
                                                 std::span<const std::int32_t> under_fault);

} // namespace railbreak::injectors
