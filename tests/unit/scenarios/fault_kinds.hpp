// A scenario with a fault of every kind, for the tests of faults.
#pragma once

#include <string>
#include <string_view>

#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios::testing {

/// What stands before the faults.
inline constexpr std::string_view kCluster = R"(railbreak: 1
name: kinds
cluster: {hosts: 16, ranks_per_host: 2, nics_per_host: 2, rate: 1Gbit/s}
workload:
  collective: allreduce
  bytes: 1MiB
  algorithms: [ring]
  iterations: {warmup: 1, steady: 1, degraded: 3, recovered: 1}
  iteration_timeout: 5s
faults:
)";

/// One fault of every kind, each on a host of its own.
inline constexpr std::string_view kEveryKind = R"(
- {name: cap, kind: cap, target: {host: 0}, fraction: 1/2, during: degraded}
- {name: down, kind: link_down, target: {host: 1}, at: {iteration: 1}, for: 100ms}
- {name: flap, kind: flap, target: {host: 2}, period: 400ms, duty: 1/4, count: 3, at: {iteration: 1, offset: 10ms}}
- {name: delay, kind: delay, target: {host: 3, nic: 1}, delay: 5ms, jitter: 1ms, direction: send, during: degraded}
- {name: loss, kind: loss, target: {host: 4}, probability: 1%, at: {iteration: 2}, for: 1s}
- name: bursts
  kind: loss
  target: {host: 5}
  bursts: {good_to_bad: 1/1000, bad_to_good: 0.25, loss_in_bad: 50%, loss_in_good: 0.000001}
  direction: receive
  during: degraded
- {name: corrupt, kind: corrupt, target: {host: 6}, probability: 1/1000, during: degraded}
- {name: duplicate, kind: duplicate, target: {host: 7}, probability: 0.02, during: degraded}
- {name: reorder, kind: reorder, target: {host: 8}, probability: 25%, delay: 2ms, during: degraded}
- {name: blackhole, kind: blackhole, target: {host: 9}, direction: send, at: {iteration: 1}, for: 200ms}
- {name: partition, kind: partition, target: {host: 10, nic: 1}, peers: [3, 1], during: degraded}
- {name: mtu, kind: mtu, target: {host: 11}, mtu: 1280B, during: degraded}
- {name: reroute, kind: reroute, target: {host: 12}, via: 1, during: degraded}
- {name: pause, kind: pause, target: {host: 13, rank: 1}, at: {iteration: 3, offset: 1ms}, for: 300ms}
- {name: kill, kind: kill, target: {rank: 29}, at: {iteration: 3, offset: 50ms}}
- {name: cpu, kind: cpu, target: {host: 15, rank: 0}, share: 1/3, during: degraded}
- {name: late, kind: late, target: {rank: 31}, by: 50ms, during: degraded}
- {name: disk, kind: disk_full, target: recorder, leave: 64KiB, at: {iteration: 2}, for: 1s}
)";

/// The cluster with these faults.
inline std::string with_faults(std::string_view faults) {
    return std::string(kCluster) + std::string(faults);
}

} // namespace railbreak::scenarios::testing
