// A cgroup of our own for one process with all its threads and children: what freezers and CPU quotas act on.
//
// It is made below the cgroup that the process is in, so that every limit of that one goes on to hold, and so that the
// way back is written in the tree itself: the former cgroup is the parent folder. In cgroup v2 it is a threaded cgroup,
// for only such may stand beside processes in their cgroup and have a controller too (kernel documentation,
// "Threads"). Two faults on one process share it where they need the same hierarchy; each takes its own setting back,
// and the last one dissolves it. Nothing here remembers anything: who still uses the group is read from the group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/facet.hpp"
#include "injectors/wire.hpp"

namespace railbreak::injectors {

/// Which tree of cgroups.
enum class CgroupTree : std::uint8_t {
    kUnified, ///< cgroup v2
    kFreezer, ///< cgroup v1, the tree with the freezer
    kCpu,     ///< cgroup v1, the tree with the controller cpu
};
/// "cgroup v2", "cgroup v1".
[[nodiscard]] std::string_view to_string(CgroupTree tree);

/// Where a tree is mounted, from /proc/self/mountinfo.
struct CgroupMount {
    std::string folder; ///< mount point
    std::string root;   ///< the cgroup that is seen there, a path as in /proc/PID/cgroup
};
/// The mount of that tree among the lines of a mountinfo file; empty when there is none.
[[nodiscard]] std::optional<CgroupMount> find_mount(std::string_view mountinfo, CgroupTree tree);

/// Marks a cgroup v2 that a quota has given the controller cpu to its children (see facet_cpu.cpp).
inline constexpr std::string_view kCpuMarker = "railbreak-cpu";
/// True for the names of groups, "railbreak-RUN-PID": letters, digits, dashes and underscores. A dot is in the name of
/// every unit of systemd, and one of those may be called railbreak-recover.service.
[[nodiscard]] bool is_group_name(std::string_view name);

/// A process's group, made or not. Goes into the journal.
struct GroupPlace {
    CgroupTree tree = CgroupTree::kUnified;
    std::string former; ///< the process's own cgroup, as in /proc/PID/cgroup
    std::string name;   ///< of the group below it
};
void put_place(Encoder& out, const GroupPlace& place);
/// False when it is none.
[[nodiscard]] bool get_place(Decoder& in, GroupPlace& place);

/// Finds the place for the context's process and whether a group may be made there. kRefused with the reason when not:
/// the tree is not mounted, permission is missing, the process is in another run's group, its threads are in several
/// cgroups, or the former cgroup may have no threaded child.
[[nodiscard]] Result<GroupPlace> find_place(HostOps& ops, const FacetContext& context, CgroupTree tree);

/// Folders of the group and of the former cgroup. kHarness when the tree is no longer mounted.
[[nodiscard]] Result<std::string> group_folder(HostOps& ops, const GroupPlace& place);
[[nodiscard]] Result<std::string> former_folder(HostOps& ops, const GroupPlace& place);
[[nodiscard]] Result<bool> group_exists(HostOps& ops, const GroupPlace& place);

/// Makes the group where it is missing. Idempotent.
[[nodiscard]] Result<void> make_group(HostOps& ops, const GroupPlace& place);
/// Moves the process and its descendants from the former cgroup into the group. Idempotent. errno ESRCH when the
/// process is gone.
[[nodiscard]] Result<void> gather(HostOps& ops, const GroupPlace& place, const ProcessIdentity& process);
/// Whether this very process is in the group.
[[nodiscard]] Result<bool> holds(HostOps& ops, const GroupPlace& place, const ProcessIdentity& process);
/// Moves everything in the group back to the former cgroup and removes the group, unless a freezer or a quota is still
/// set on it. Idempotent; a group that is gone is fine.
[[nodiscard]] Result<void> dissolve(HostOps& ops, const GroupPlace& place);
/// Reads back that the group is gone (or still serves another fault) and that the process is where it was. kTeardown
/// when it stands without use.
[[nodiscard]] Result<Notes> verify_dissolved(HostOps& ops, const FacetContext& context, const GroupPlace& place);

/// Content of a file of the group without the newline at its end; empty text when the group has no such file.
[[nodiscard]] Result<std::string> read_group(HostOps& ops, const GroupPlace& place, std::string_view file);
/// Writes a file of the group. A group that is gone is fine when `gone_is_ok`.
[[nodiscard]] Result<void> write_group(HostOps& ops, const GroupPlace& place, std::string_view file,
                                       std::string_view text, bool gone_is_ok);

/// The value of a line "name value" of such a file ("populated 1"); empty when there is none.
[[nodiscard]] std::string_view flat_value(std::string_view text, std::string_view name);

} // namespace railbreak::injectors
