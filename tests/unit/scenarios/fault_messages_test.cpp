// Messages about faults of every kind, against a golden file. See error_messages_test.cpp.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/unit/scenarios/fault_kinds.hpp"

namespace railbreak::scenarios {
namespace {

using testing::errors_of;
using testing::kEveryKind;
using testing::load;
using testing::with;
using testing::with_faults;

struct BadFault {
    std::string_view name;
    std::string_view from; ///< in kEveryKind; empty: `to` stands alone
    std::string_view to;
};

constexpr BadFault kBadFaults[] = {
    {"key of another kind", "mtu: 1280B", "mtu: 1280B, delay: 1ms"},
    {"key of a kind that has none", "kind: pause,", "kind: pause, share: 1/2,"},
    {"missing key", "mtu: 1280B, ", ""},
    {"missing key of several", "probability: 25%, ", ""},
    {"rank as the target of a NIC's fault", "target: {host: 0}", "target: {host: 0, rank: 1}"},
    {"NIC as the target of a rank's fault", "target: {host: 13, rank: 1}", "target: {host: 13, nic: 1}"},
    {"rank missing", "target: {host: 13, rank: 1}", "target: {host: 13}"},
    {"host missing", "target: {host: 3, nic: 1}", "target: {nic: 1}"},
    {"rank beyond all", "{rank: 29}", "{rank: 32}"},
    {"rank beyond those of a host", "{host: 13, rank: 1}", "{host: 13, rank: 2}"},
    {"recorder as the target of a NIC's fault", "target: {host: 11}", "target: recorder"},
    {"NIC as the target of a disk", "target: recorder", "target: {host: 0}"},
    {"target that is another word", "target: recorder", "target: database"},
    {"probability above 1", "probability: 1%", "probability: 101%"},
    {"probability negative", "probability: 1%", "probability: -1%"},
    {"probability finer than a millionth", "probability: 1%", "probability: 1/3"},
    {"probability that is a word", "probability: 1%", "probability: often"},
    {"probability with a space", "probability: 1%", "probability: 1 %"},
    {"loss without a strength", "probability: 1%, ", ""},
    {"loss with both", "probability: 1%", "probability: 1%, bursts: {good_to_bad: 1%, bad_to_good: 1%}"},
    {"bursts with an unknown key", "good_to_bad: 1/1000", "good_to_bat: 1/1000"},
    {"bursts without an end", "bad_to_good: 0.25, ", ""},
    {"delay without a unit", "delay: 5ms", "delay: 5"},
    {"delay too long", "delay: 5ms", "delay: 11s"},
    {"jitter above the delay", "jitter: 1ms", "jitter: 6ms"},
    {"jitter of a delay as a part", "jitter: 1ms", "jitter: 1/2"},
    {"reorder without holding back", "delay: 2ms", "delay: 0ms"},
    {"flap without a length", "duty: 1/4, ", ""},
    {"flap with two lengths", "duty: 1/4", "duty: 1/4, down: 100ms"},
    {"flap down too short", "duty: 1/4", "down: 49ms"},
    {"flap duty too short", "duty: 1/4", "duty: 1/10"},
    {"flap that never comes back", "duty: 1/4", "duty: 9/10"},
    {"flap whose jitter overlaps", "duty: 1/4", "duty: 1/4, jitter: 3/4"},
    {"flap period too short", "period: 400ms", "period: 90ms"},
    {"flap without end", "count: 3", "count: 101"},
    {"flap with for", "count: 3, ", "count: 3, for: 1s, "},
    {"flap during a phase", "at: {iteration: 1, offset: 10ms}", "during: degraded"},
    {"flap beyond the time-out", "count: 3", "count: 13"},
    {"partition from itself", "peers: [3, 1]", "peers: [3, 10]"},
    {"partition from a host twice", "peers: [3, 1]", "peers: [3, 3]"},
    {"partition from a host that is not there", "peers: [3, 1]", "peers: [3, 16]"},
    {"partition from nobody", "peers: [3, 1]", "peers: []"},
    {"partition of a random host", "target: {host: 10, nic: 1}", "target: {host: random, nic: 1}"},
    {"mtu above the cluster's", "mtu: 1280B", "mtu: 1501B"},
    {"mtu too small", "mtu: 1280B", "mtu: 575B"},
    {"reroute through itself", "via: 1", "via: 0"},
    {"reroute through a NIC that is not there", "via: 1", "via: 2"},
    {"share above 1", "share: 1/3", "share: 2"},
    {"share too small", "share: 1/3", "share: 0.001"},
    {"late with an offset", "by: 50ms, during: degraded", "by: 50ms, at: {iteration: 1, offset: 1ms}"},
    {"late beyond the time-out", "by: 50ms", "by: 5s"},
    {"kill with for", "{rank: 29}, ", "{rank: 29}, for: 1s, "},
    {"kill during a phase", "at: {iteration: 3, offset: 50ms}", "during: degraded"},
    {"pause during a phase", "at: {iteration: 3, offset: 1ms}, for: 300ms", "during: degraded"},
    {"blackhole of the last NIC during a phase", "direction: send, at: {iteration: 1}, for: 200ms}",
     "direction: send, during: degraded}\n- {name: other, kind: link_down, target: {host: 9, nic: 1}, during: "
     "degraded}"},
    {"loss of everything during a phase", "probability: 1%, at: {iteration: 2}, for: 1s}",
     "probability: 1, during: degraded}\n- {name: other, kind: link_down, target: {host: 4, nic: 1}, during: "
     "degraded}"},
    {"two reroutes of a NIC", "via: 1, during: degraded}",
     "via: 1, during: degraded}\n- {name: again, kind: reroute, target: {host: 12}, via: 1, at: {iteration: 1}, for: "
     "1s}"},
    {"bursts beside another loss", "direction: receive\n  during: degraded\n",
     "direction: receive\n  during: degraded\n- {name: more, kind: loss, target: {host: 5}, probability: 1%, during: "
     "degraded}\n"},
    {"link down where a reroute goes", "via: 1, during: degraded}",
     "via: 1, during: degraded}\n- {name: gone, kind: link_down, target: {host: 12, nic: 1}, at: {iteration: 1}, for: "
     "1s}"},
    {"fault after a kill", "at: {iteration: 3, offset: 50ms}}",
     "at: {iteration: 3, offset: 50ms}}\n- {name: dead, kind: pause, target: {rank: 29}, at: {iteration: 3, offset: "
     "60ms}, for: 10ms}"},
    {"two kills of a rank", "at: {iteration: 3, offset: 50ms}}",
     "at: {iteration: 3, offset: 50ms}}\n- {name: dead, kind: kill, target: {rank: 29}, at: {iteration: 1}}"},
    {"two late in an iteration", "by: 50ms, during: degraded}",
     "by: 50ms, during: degraded}\n- {name: later, kind: late, target: {rank: 31}, by: 10ms, at: {iteration: 2}}"},
    {"flap and link_down together", "at: {iteration: 1, offset: 10ms}}",
     "at: {iteration: 1, offset: 10ms}}\n- {name: too, kind: link_down, target: {host: 2}, at: {iteration: 1, offset: "
     "1s}, for: 10ms}"},
    {"outcome with a metric", "", "expect: [{phase: degraded, outcome: error, metric: vs_steady, max: 2}]\n"},
    {"outcome of another phase", "", "expect: [{phase: recovered, outcome: error}]\n"},
    {"outcome unknown", "", "expect: [{phase: degraded, outcome: errors}]\n"},
    {"within of a metric", "", "expect: [{phase: degraded, metric: vs_steady, max: 2, within: 1s}]\n"},
    {"expectation of nothing", "", "expect: [{phase: degraded}]\n"},
};

std::string all_fault_messages() {
    std::string text;
    for (const BadFault& bad : kBadFaults) {
        const std::string faults =
            bad.from.empty() ? std::string(kEveryKind) + std::string(bad.to) : with(kEveryKind, bad.from, bad.to);
        const auto result = load(with_faults(faults));
        EXPECT_FALSE(result) << bad.name << " was accepted";
        text += "# " + std::string(bad.name) + "\n" + errors_of(result) + "\n";
    }
    return text;
}

TEST(FaultMessages, AreThoseOfTheGoldenFile) {
    const auto path = testing::source_dir() / "tests" / "golden" / "scenarios" / "fault-messages.txt";
    const std::string messages = all_fault_messages();
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << messages;
    }
    EXPECT_EQ(messages, testing::read_file(path));
}

TEST(FaultMessages, WhatComposesIsNotRefused) {
    const auto result = load(with_faults(R"(
- {name: a, kind: cap, target: {host: 1}, fraction: 1/2, during: degraded}
- {name: b, kind: delay, target: {host: 1}, delay: 1ms, during: degraded}
- {name: c, kind: loss, target: {host: 1}, probability: 1%, during: degraded}
- {name: d, kind: loss, target: {host: 1}, probability: 2%, during: degraded}
- {name: e, kind: mtu, target: {host: 1}, mtu: 1400B, during: degraded}
- {name: f, kind: link_down, target: {host: 1}, at: {iteration: 1}, for: 100ms}
- {name: g, kind: link_down, target: {host: 1}, at: {iteration: 1, offset: 100ms}, for: 100ms}
- {name: h, kind: partition, target: {host: 1}, peers: [2], at: {iteration: 1}, for: 100ms}
- {name: i, kind: blackhole, target: {host: 1}, at: {iteration: 1}, for: 100ms}
- {name: j, kind: reroute, target: {host: 1}, via: 1, at: {iteration: 1}, for: 1s}
- {name: k, kind: reroute, target: {host: 1}, via: 1, at: {iteration: 2}, for: 1s}
- {name: l, kind: cpu, target: {host: 1, rank: 0}, share: 1/2, during: degraded}
- {name: m, kind: pause, target: {host: 1, rank: 0}, at: {iteration: 1}, for: 100ms}
- {name: n, kind: kill, target: {host: 1, rank: 0}, at: {iteration: 3, offset: 1s}}
- {name: o, kind: loss, target: {host: 2}, bursts: {good_to_bad: 1%, bad_to_good: 1%}, direction: send,
   during: degraded}
- {name: p, kind: loss, target: {host: 2}, probability: 1%, direction: receive, during: degraded}
)"));
    EXPECT_EQ(errors_of(result), "no error\n");
}

TEST(FaultMessages, RerouteNeedsASecondNic) {
    const auto result =
        load(with(with_faults("- {name: r, kind: reroute, target: {host: 1}, via: 1, during: degraded}\n"),
                  "nics_per_host: 2, ", ""));
    EXPECT_EQ(errors_of(result), "test.yaml:11:3: faults[0]: a host with one NIC has no other to send through; set "
                                 "cluster.nics_per_host above 1\n");
}

} // namespace
} // namespace railbreak::scenarios
