// Plain TCP flows between lab hosts, and children that act as somebody else: tools of the lab's tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/clock.hpp"
#include "base/fd.hpp"

namespace railbreak::lab {

/// A connected TCP pair: `sender` in one network namespace, `receiver` (which has `address`) in another.
struct Flow {
    UniqueFd sender;
    UniqueFd receiver;
};
/// Connects; nullopt when any step fails within five seconds.
std::optional<Flow> connect_flow(int sender_netns, int receiver_netns, const std::string& address);

/// Congestion control of a socket ("cubic").
std::string congestion_control_of(int socket);

/// Sends as fast as possible for `duration` and gives the receiver's goodput in bits per second, measured over the
/// part after `skip` (the start, where the queue fills).
double measure_goodput(const Flow& flow, Nanoseconds skip, Nanoseconds duration);

/// Runs `body` in a forked child, as uid and gid `user` when that is not 0, and gives its exit code; the child's result
/// is `body`'s. -1 when it died of a signal or did not end within 30 s.
int run_in_child(uid_t user, const std::function<int()>& body);
/// The same without waiting: the child's pid.
pid_t start_child(uid_t user, const std::function<int()>& body);
/// Waits for a child of start_child().
int finish_child(pid_t child);

} // namespace railbreak::lab
