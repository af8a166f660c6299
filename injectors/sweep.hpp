// What railbreak made and no journal knows any more: found by its tags and removed by its handles.
//
// Everything that an injector makes carries a mark: qdiscs the major numbers fa01 to fa0f, filters and packet programs
// the priorities fa00 and fa01, ifb devices an alias that begins with "railbreak ", policy rules and routes the
// protocol 202, nftables tables the name "railbreak", cgroups a name like "railbreak-RUN-PID", ballast files one that
// begins with ".railbreak-ballast-". A value that was changed in place (the rate of a lab's htb class, an MTU, a link
// that is down, a process that was stopped by a signal) carries none: of those only the journal knows.
//
// Looks at one network namespace and, if asked, at the cgroups and file systems of the whole machine. The caller sees
// to it that no run is at work there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// One thing with our tag.
struct TaggedObject {
    std::string what;     ///< "eth1: qdisc htb fa01:"
    bool removed = false; ///< and seen to be gone
    std::string error;    ///< why it could not be removed
};

/// Where to look.
enum class SweepScope : std::uint8_t {
    kNetwork, ///< the network namespace of the HostOps
    kMachine, ///< and every cgroup and every file system of the machine
};

/// Lists what carries our tags; with `remove` removes it, looks again and tells of each whether it is gone. An Error
/// only when the host cannot be looked at.
[[nodiscard]] Result<std::vector<TaggedObject>> sweep(HostOps& ops, SweepScope scope, bool remove);

} // namespace railbreak::injectors
