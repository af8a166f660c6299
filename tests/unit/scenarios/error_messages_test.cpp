// Every message that a user can meet, against a golden file that people can read. To accept new messages, run
// the test with RAILBREAK_UPDATE_GOLDEN=1 and review the difference.
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/unit/scenarios/support.hpp"

namespace railbreak::scenarios {
namespace {

using testing::errors_of;
using testing::kFull;
using testing::load;
using testing::with;

/// A bad input: the full scenario with one text replaced by another (everything, if `from` is empty).
struct BadInput {
    std::string_view name;
    std::string_view from;
    std::string_view to;
};

constexpr BadInput kBadInputs[] = {
    {"empty file", "", ""},
    {"only comments", "", "# nothing here\n"},
    {"a list instead of a map", "", "- a\n- b\n"},
    {"a plain word", "", "hello\n"},
    {"not UTF-8", "uses every key", "uses \xff every key"},
    {"UTF-16", "", std::string_view("r\0a\0", 4)},
    {"control character", "uses every key", "uses \x07 every key"},
    {"two documents", "lease: 15s", "---\nlease: 15s"},
    {"anchor", "rate: 500Mbit/s", "rate: &r 500Mbit/s"},
    {"alias", "description: uses every key", "description: &d uses\nlease: *d"},
    {"tag", "hosts: 8", "hosts: !!int 8"},
    {"bracket not closed", "[ring, optcc]", "[ring, optcc"},
    {"tab as indentation", "  collective:", "\tcollective:"},
    {"nested too deep", "description: uses every key",
     "description: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"},
    {"key that is a list", "description:", "? [a]\n:"},
    {"wrong version", "railbreak: 1", "railbreak: 2"},
    {"version as text", "railbreak: 1", "railbreak: latest"},
    {"missing version", "railbreak: 1\n", ""},
    {"missing name", "name: full\n", ""},
    {"missing workload keys", "  bytes: 32MiB\n", ""},
    {"unknown key at the top", "lease:", "leese:"},
    {"unknown key without likeness", "mtu: 9000B", "bandwidth: 9000B"},
    {"unknown key in a fault", "direction: send", "directon: send"},
    {"duplicate key", "hosts: 8", "hosts: 8, hosts: 9"},
    {"name with capitals", "name: full", "name: Full Scenario"},
    {"name empty", "name: full", "name: ''"},
    {"name without value", "name: full", "name:"},
    {"name is a list", "name: full", "name: [full]"},
    {"map expected",
     "{hosts: 8, nics_per_host: 2, rate: 500Mbit/s, mtu: 9000B, ranks_per_host: 2, local_rate: 2Gbit/s}", "8"},
    {"list expected", "algorithms: [ring, optcc]", "algorithms: ring"},
    {"hosts too few", "hosts: 8", "hosts: 1"},
    {"hosts too many", "hosts: 8", "hosts: 65"},
    {"hosts negative", "hosts: 8", "hosts: -8"},
    {"hosts huge", "hosts: 8", "hosts: 99999999999999999999"},
    {"hosts octal", "hosts: 8", "hosts: 010"},
    {"hosts hexadecimal", "hosts: 8", "hosts: 0x8"},
    {"hosts as boolean", "hosts: 8", "hosts: no"},
    {"hosts with decimals", "hosts: 8", "hosts: 8.0"},
    {"hosts in quotes", "hosts: 8", "hosts: \"8\""},
    {"rate without unit", "rate: 500Mbit/s", "rate: 500"},
    {"rate with unknown unit", "rate: 500Mbit/s", "rate: 500mbps"},
    {"rate negative", "rate: 500Mbit/s", "rate: -500Mbit/s"},
    {"rate zero", "rate: 500Mbit/s", "rate: 0bit/s"},
    {"rate too large", "rate: 500Mbit/s", "rate: 99999999Gbit/s"},
    {"mtu too small", "mtu: 9000B", "mtu: 100B"},
    {"collective unknown", "collective: allreduce", "collective: allgather"},
    {"bytes without unit", "bytes: 32MiB", "bytes: 33554432"},
    {"bytes zero", "bytes: 32MiB", "bytes: 0B"},
    {"bytes no multiple of the element", "bytes: 32MiB", "bytes: 1001B"},
    {"bytes no whole number", "bytes: 32MiB", "bytes: 0.3B"},
    {"bytes too large", "bytes: 32MiB", "bytes: 2TiB"},
    {"dtype unknown", "dtype: float32", "dtype: float23"},
    {"algorithm unknown", "[ring, optcc]", "[ring, optc]"},
    {"algorithm twice", "[ring, optcc]", "[ring, optcc, ring]"},
    {"no algorithm", "[ring, optcc]", "[]"},
    {"unknown option", "[ring, optcc]", "[ring, {name: optcc, lan: bs}]"},
    {"option of an algorithm that has none", "[ring, optcc]", "[{name: ring, k: 4}, optcc]"},
    {"option twice", "[ring, optcc]", "[ring, {name: optcc, k: 4, k: 5}]"},
    {"option that is a list", "[ring, optcc]", "[ring, {name: optcc, k: [4]}]"},
    {"option with a bad value", "[ring, optcc]", "[ring, optcc, {name: optcc, plan: tar}]"},
    {"options without a name", "[ring, optcc]", "[ring, {plan: bs}]"},
    {"options of an unknown algorithm", "[ring, optcc]", "[ring, {name: optc, plan: bs}]"},
    {"label twice", "[ring, optcc]", "[ring, optcc, {name: optcc, k: 4, as: a}, {name: optcc, k: 5, as: a}]"},
    {"options twice without labels", "[ring, optcc]", "[ring, optcc, {name: optcc, k: 4}, {name: optcc, k: 4}]"},
    {"label of another algorithm", "[ring, optcc]", "[ring, optcc, {name: optcc, k: 4, as: optcc-shared}]"},
    {"options under the plain name", "[ring, optcc]", "[ring, {name: optcc, k: 4, as: optcc}]"},
    {"label with a space", "[ring, optcc]", "[ring, optcc, {name: optcc, as: my optcc}]"},
    {"too many ranks on a host", "ranks_per_host: 2", "ranks_per_host: 9"},
    {"rate inside a host of one rank", "ranks_per_host: 2", "ranks_per_host: 1"},
    {"rate inside a host without unit", "local_rate: 2Gbit/s", "local_rate: 2"},
    {"optcc with two hosts", "hosts: 8", "hosts: 2"},
    {"iterations negative", "steady: 4", "steady: -1"},
    {"iterations too many", "steady: 4", "steady: 100001"},
    {"no measured iteration", "steady: 4, degraded: 5, recovered: 6", "steady: 0, degraded: 0, recovered: 0"},
    {"time-out without unit", "iteration_timeout: 20s", "iteration_timeout: 20"},
    {"time-out too long", "iteration_timeout: 20s", "iteration_timeout: 61min"},
    {"lease too short", "lease: 15s", "lease: 500ms"},
    {"lease too long", "lease: 15s", "lease: 11min"},
    {"fault kind unknown", "kind: link_down", "kind: linkdown"},
    {"fault name twice", "name: third", "name: half-rate"},
    {"fault without target", "    target: {host: random}\n", ""},
    {"host does not exist", "host: 3", "host: 8"},
    {"host is a word", "host: random", "host: rnd"},
    {"host negative", "host: 3", "host: -1"},
    {"NIC does not exist", "nic: 1", "nic: 2"},
    {"direction unknown", "direction: send", "direction: sending"},
    {"cap above the NIC's rate", "rate: 250Mbit/s", "rate: 501Mbit/s"},
    {"cap with rate and fraction", "    rate: 250Mbit/s\n", "    rate: 250Mbit/s\n    fraction: 1/2\n"},
    {"cap without rate", "    rate: 250Mbit/s\n", ""},
    {"fraction above 1", "fraction: 1/3", "fraction: 3/2"},
    {"fraction zero", "fraction: 1/3", "fraction: 0"},
    {"fraction by zero", "fraction: 1/3", "fraction: 1/0"},
    {"fraction with percent", "fraction: 1/3", "fraction: 33%"},
    {"fraction that leaves nothing", "fraction: 1/3", "fraction: 1/1000000000"},
    {"link_down with a rate", "kind: link_down", "kind: link_down\n    rate: 1Mbit/s"},
    {"link_down with a direction", "kind: link_down", "kind: link_down\n    direction: send"},
    {"every link of a host down during a phase",
     "    target: {host: random}\n    at: {iteration: 2, offset: 200ms}\n    for: 300ms\n",
     "    target: {host: 5}\n    during: degraded\n  - name: other\n    kind: link_down\n"
     "    target: {host: 5, nic: 1}\n    during: degraded\n"},
    {"during another phase", "during: degraded", "during: steady"},
    {"during and at", "    for: 300ms\n", "    for: 300ms\n    during: degraded\n"},
    {"neither during nor at", "    rate: 250Mbit/s\n    during: degraded\n", "    rate: 250Mbit/s\n"},
    {"during with for", "    fraction: 1/3\n", "    fraction: 1/3\n    for: 1s\n"},
    {"at without for", "    for: 300ms\n", ""},
    {"at an iteration that does not exist", "iteration: 2", "iteration: 6"},
    {"at iteration zero", "iteration: 2", "iteration: 0"},
    {"for zero", "for: 300ms", "for: 0ms"},
    {"for beyond the time-out", "for: 300ms", "for: 19.8s"},
    {"faults without degraded iterations", "degraded: 5", "degraded: 0"},
    {"the same link down twice", "host: random}\n",
     "host: 5}\n    at: {iteration: 2, offset: 400ms}\n    for: 1s\n  - name: again\n    kind: link_down\n"
     "    target: {host: 5}\n"},
    {"a link down within a phase that it is down for", "host: random}\n",
     "host: 5}\n    at: {iteration: 2, offset: 400ms}\n    for: 1s\n  - name: again\n    kind: link_down\n"
     "    target: {host: 5}\n    during: degraded\n  - name: third-again\n    kind: link_down\n"
     "    target: {host: 6}\n"},
    {"more random faults than free hosts", "hosts: 8, nics_per_host: 2", "hosts: 2, nics_per_host: 2"},
    {"expectation without limit", ", max: 1.10", ""},
    {"expectation with min above max", "min: 0.97", "min: 1.97"},
    {"expectation of an algorithm that does not run", "algorithm: optcc,", "algorithm: optcc-shared,"},
    {"expectation of the warm-up", "phase: degraded", "phase: warmup"},
    {"expectation of an unknown phase", "phase: degraded", "phase: broken"},
    {"expectation of an unknown metric", "metric: vs_steady", "metric: vs_stedy"},
    {"expectation of a phase without iterations", "recovered: 6", "recovered: 0"},
    {"vs_steady without steady iterations", "steady: 4", "steady: 0"},
    {"vs_healthy without the ring", "algorithms: [ring, optcc]\n", "algorithms: [optcc]\n# no ring\n"},
    {"vs_steady of the steady phase", "phase: recovered", "phase: steady"},
    {"overhead without a port model", "metric: overhead_exclusive, max: 1.10", "metric: overhead, max: 1.10"},
    {"port model of another metric", "metric: overhead_exclusive, max: 1.10",
     "metric: vs_healthy, model: fluid, max: 1.10"},
    {"port model unknown", "metric: overhead_exclusive, max: 1.10", "metric: overhead, model: fluids, max: 1.10"},
    {"expectation without a phase", "phase: degraded, metric", "metric"},
    {"time as a bare number", "metric: overhead_exclusive, max: 1.10", "metric: time, max: 1.10"},
    {"correctness above 1", "metric: overhead_exclusive, max: 1.10", "metric: correctness, min: 1.5"},
    {"correctness with a maximum", "metric: overhead_exclusive, max: 1.10", "metric: correctness, max: 1"},
    {"recovery time of a phase", "metric: overhead_exclusive, max: 1.10", "metric: recovery_time, max: 2s"},
    {"recovery time of a fault that is not there", "phase: degraded, metric: overhead_exclusive, max: 1.10",
     "fault: halve, metric: recovery_time, max: 2s"},
    {"a fault for a metric of a phase", "metric: overhead_exclusive, max: 1.10",
     "metric: vs_steady, fault: half-rate, max: 1.10"},
    {"a band for a metric without one", "metric: overhead_exclusive, max: 1.10",
     "metric: vs_steady, band: 5%, max: 1.10"},
    {"band in standard deviations", "phase: degraded, metric: overhead_exclusive, max: 1.10",
     "metric: detection_time, band: 3sigma, max: 2s"},
    {"collateral that is no whole number", "phase: degraded, metric: overhead_exclusive, max: 1.10",
     "metric: collateral, max: 0.5"},
    {"collateral on a baseline", "phase: degraded, metric: overhead_exclusive, max: 1.10",
     "metric: collateral, baseline: 5%"},
    {"baseline without unit or sense", "max: 1.10", "baseline: five"},
    {"baseline of nothing", "max: 1.10", "baseline: 0%"},
    {"baseline too wide", "max: 1.10", "baseline: 1000sigma"},
    {"baseline without a band", "max: 1.10", "baseline: {min_runs: 5}"},
    {"baseline of too few runs", "max: 1.10", "baseline: {band: 3sigma, min_runs: 2}"},
    {"baseline with an unknown side", "max: 1.10", "baseline: {band: 3sigma, side: over}"},
    {"baseline of an outcome", "metric: overhead_exclusive, max: 1.10", "outcome: error, baseline: 5%"},
    {"limit not a number", "max: 1.10", "max: .nan"},
    {"limit negative", "max: 1.10", "max: -1.10"},
    {"limit with exponent", "max: 1.10", "max: 1e3"},
    {"limit with too many decimals", "max: 1.10", "max: 1.0000001"},
    {"limit in quotes", "max: 1.10", "max: '1.10'"},
};

std::string all_messages() {
    std::string text;
    for (const BadInput& bad : kBadInputs) {
        std::string input = bad.from.empty() ? std::string(bad.to) : with(kFull, bad.from, bad.to);
        if (bad.name == "vs_healthy without the ring") {
            input = with(input, "metric: vs_steady", "metric: vs_healthy");
        }
        const auto result = load(input);
        EXPECT_FALSE(result) << bad.name << " was accepted";
        text += "# " + std::string(bad.name) + "\n" + errors_of(result) + "\n";
    }
    return text;
}

TEST(ErrorMessages, AreThoseOfTheGoldenFile) {
    const auto path = testing::source_dir() / "tests" / "golden" / "scenarios" / "error-messages.txt";
    const std::string messages = all_messages();
    if (std::getenv("RAILBREAK_UPDATE_GOLDEN") != nullptr) {
        std::ofstream(path, std::ios::binary) << messages;
    }
    EXPECT_EQ(messages, testing::read_file(path));
}

TEST(ErrorMessages, StayOnOneLineWhateverTheValueAndTheName) {
    const auto result =
        load_scenario(with(kFull, "name: full", "name: \"two\\nlines\\r\\e[31m\""), "odd\nname", testing::algorithms());
    ASSERT_FALSE(result);
    EXPECT_EQ(errors_of(result), "odd\\nname:2:7: name: \"two\\nlines\\x0d\\x1b[31m\" is not a name; "
                                 "allowed: 1 to 64 of the characters a-z, 0-9 and -\n");
}

} // namespace
} // namespace railbreak::scenarios
