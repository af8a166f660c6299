// The lab: a cluster of hosts on one machine, each a network namespace with one NIC per rail.
//
// Every NIC is a veth whose other end is a port of the rail's bridge in a switch namespace. Both ends carry an htb of
// the lab's rate: the host's end limits sending, the port limits receiving, as on a full-duplex link. The namespaces
// have no names; descriptors hold them. A small keeper process ("rb-lab:NAME") holds a second set, so that other
// commands can find and enter the lab, and so that somebody tidies up when the owner is killed. When the owner and the
// keeper are gone, the kernel removes everything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace railbreak::lab {

inline constexpr unsigned kMaximumHosts = 64;
inline constexpr unsigned kMaximumNics = 8;

/// What to build.
struct LabSpec {
    std::string name;           ///< 1 to 32 of [A-Za-z0-9._-], not starting with a dot
    unsigned hosts = 0;         ///< 2 to 64
    unsigned nics_per_host = 1; ///< 1 to 8, one per rail
    BitRate rate;               ///< line rate of every NIC in each direction, at least 8 bit/s
    unsigned mtu_bytes = 1500;  ///< 576 to 65535
    bool operator==(const LabSpec&) const = default;
};

/// One NIC of a lab host. Names and numbers follow from the spec, so they are known before the lab is up.
struct LabNic {
    std::string name;        ///< in the host's namespace: "rail0"
    std::string mac;         ///< "02:72:62:00:00:03"
    std::string address;     ///< "10.77.RAIL.(HOST+1)", in a /24 of the rail
    std::string switch_port; ///< in the switch namespace: "h3r0"
    int ifindex = 0;         ///< of `name`
    int switch_ifindex = 0;  ///< of `switch_port`
};

/// One host of a lab.
struct LabHost {
    unsigned index = 0;
    std::string name; ///< "h3"
    std::vector<LabNic> nics;
};

/// Checks the spec's limits: kInput names the field that is out of range.
[[nodiscard]] Result<void> check_spec(const LabSpec& spec);
/// The hosts that a valid spec describes.
[[nodiscard]] std::vector<LabHost> hosts_of(const LabSpec& spec);
/// Burst, and limit of the queue behind it, that every htb of a lab of that rate has: 16 kB; 20 ms, at least 200 kB.
[[nodiscard]] ByteCount lab_burst();
[[nodiscard]] ByteCount lab_queue_limit(BitRate rate);
/// The htb quantum of the lab's classes, in bytes.
inline constexpr std::uint32_t kLabQuantum = 60000;

/// A lab that ends with this process: whatever way it ends, the keeper and the kernel remove the lab.
class Lab {
public:
    /// Builds the lab. kInput: bad spec; kRefused: the name is in use (facts: owner, keeper) or the privilege is
    /// missing (as root, or after become_namespace_root()); kHarness: the kernel refused a step. Nothing remains on
    /// failure.
    [[nodiscard]] static Result<Lab> up(const LabSpec& spec);
    Lab(Lab&&) noexcept;
    Lab& operator=(Lab&&) noexcept;
    Lab(const Lab&) = delete;
    Lab& operator=(const Lab&) = delete;
    /// As down() with five seconds; a failure is dropped, so call down() where it matters.
    ~Lab();

    [[nodiscard]] const LabSpec& spec() const;
    [[nodiscard]] const std::vector<LabHost>& hosts() const;
    /// Network namespace of a host, for setns(); owned by the lab, close-on-exec.
    [[nodiscard]] int host_netns_fd(unsigned host) const;
    /// Network namespace of the switch: the bridges "sw0"... and the ports "h0r0"...
    [[nodiscard]] int switch_netns_fd() const;
    [[nodiscard]] pid_t keeper_pid() const;
    /// Ends whatever still runs inside (SIGTERM, then SIGKILL), removes the lab and waits until its ports are gone.
    /// kTeardown when that is not so by the deadline. A second call does nothing.
    [[nodiscard]] Result<void> down(Deadline deadline);

private:
    struct State;
    explicit Lab(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// A line of `lab list`.
struct LabSummary {
    LabSpec spec;
    bool kept = false;    ///< by `lab up`, until `lab down`; otherwise it ends with its owner
    pid_t owner_pid = 0;  ///< of an owned lab's process; of the keeper when kept
    pid_t keeper_pid = 0; ///< 0 while the lab is being built
    Nanoseconds age{0};
    bool alive = false;      ///< false: stale, only its record (and perhaps processes) are left
    bool has_record = false; ///< false: found by its keeper only
};

/// Builds a lab that outlives this process, until lab_down(). Errors as Lab::up().
[[nodiscard]] Result<LabSummary> lab_up_kept(const LabSpec& spec);
/// Takes a kept or stale lab down and ends the processes inside it. kInput: no such lab; kRefused: it belongs to a
/// running process (fact "owner"); kTeardown: something is left at the deadline.
[[nodiscard]] Result<void> lab_down(std::string_view name, Deadline deadline);
/// What lab_down_all() did with one lab.
struct LabDownOutcome {
    std::string name;
    Result<void> result;
};
/// lab_down() for every lab of this user that has a record or a keeper.
[[nodiscard]] Result<std::vector<LabDownOutcome>> lab_down_all(Deadline deadline);
/// lab_down() for every lab of this user that was to end with its owner and whose owner and keeper are both dead.
/// `state_folder`: where their records are; empty: in the folder of this process's environment.
[[nodiscard]] Result<std::vector<LabDownOutcome>> lab_clear_orphans(Deadline deadline,
                                                                    const std::string& state_folder = "");
/// Every lab of this user, by record and by keeper, ordered by name. Records with nothing behind them, which killed
/// processes or an earlier boot have left, are removed here and by every Lab::up() and lab_up_kept().
[[nodiscard]] Result<std::vector<LabSummary>> lab_list();
/// Replaces this process by `command` inside a host ("h3" or "3"); returns only on failure. The process must be
/// single-threaded, and must not have called become_namespace_root(): the lab's own user namespace is entered.
[[nodiscard]] Result<void> lab_exec(std::string_view name, std::string_view host,
                                    const std::vector<std::string>& command);

/// Moves the calling thread into a host's network namespace and, where the kernel lets it, into a mount namespace whose
/// /sys shows that host's devices (cgroups stay visible). For a child process before exec.
[[nodiscard]] Result<void> enter_host(int netns_fd);

} // namespace railbreak::lab
