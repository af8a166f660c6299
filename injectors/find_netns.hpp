// Finding a network namespace again by its number, which is all that a journal can keep of it.
//
// A namespace lives as long as a process is in it, a mount shows it (ip netns) or somebody holds a descriptor of it.
// Not to find it is therefore a proof that it is gone only for whoever can look everywhere. The kernel can be asked
// since Linux 6.18; before, every process and every mount is looked at, and whatever may not be looked at leaves the
// question open.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "injectors/host_ops.hpp"

namespace railbreak::injectors {

/// For tests: how to look.
struct NetnsSearch {
    bool ask_kernel = true;
};

/// A descriptor of the network namespace that has the identity's inode now. Only one can have it at a time: when its
/// cookie is another one, the number was given again and the namespace that is meant is gone. Invalid: it is proven
/// that no namespace has it. kTeardown with the fact "netns" when there may be one that this process may not see or
/// open; the Error says why, and who can.
[[nodiscard]] Result<UniqueFd> find_netns(const NetnsIdentity& identity, const NetnsSearch& search = {});

/// The number of this process's pid namespace, in which the pids that it knows count; 0 when /proc does not tell.
[[nodiscard]] std::uint64_t own_pid_namespace();
/// Whether any process is in the pid namespace of that number; without one it is gone. kTeardown as find_netns().
[[nodiscard]] Result<bool> is_inhabited_pid_namespace(std::uint64_t inode);

/// The user who owns the user namespace that a network namespace belongs to, as seen from outside: whoever that user
/// is may do everything there. Nothing for the machine's own user namespace, and where it cannot be told.
[[nodiscard]] std::optional<uid_t> owner_of_netns(int netns_fd);

} // namespace railbreak::injectors
