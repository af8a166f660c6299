// The rows of the database, as the recorder takes them and the reader gives them. Names follow the tables' columns.
// All *_at times are CLOCK_MONOTONIC nanoseconds of the controller's host unless a field says otherwise; 0 means
// "did not happen".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railbreak::record {

/// RunRow::backend of a run that was simulated: no data moved and nothing was touched. Where a digest stands, the
/// schedule is proven to give the right sum on that rank. Faults are pretended (InjectionRow::realism): they prove
/// nothing about hosts and leave nothing to restore. Times are those of the simulation's own clock.
inline constexpr std::string_view kSimulatedBackend = "sim";

/// One execution of one plan.
struct RunRow {
    std::int64_t id = 0; ///< primary key, assigned by the recorder
    std::string run_id;  ///< sortable by time: "20260131T123456Z-half-rate-nic-3f9c"
    std::string scenario_name;
    std::string scenario_text; ///< the file as read
    std::string plan_json;     ///< canonical expanded plan
    std::string plan_hash;
    std::uint64_t seed = 0;
    std::string backend; ///< "lab", kSimulatedBackend, later "ssh", "slurm"
    std::string version; ///< version and commit of railbreak
    std::string command_line;
    std::string environment_json; ///< kernel, CPU, compiler, NCCL_* ...
    std::int64_t started_realtime_ns = 0;
    std::int64_t finished_realtime_ns = 0; ///< 0 while running, or when the controller died
    std::int32_t hosts = 0;
    std::int64_t bytes = 0; ///< of each rank's vector
    std::string dtype;
    std::int64_t rate_bits_per_s = 0; ///< line rate of a healthy NIC
    std::string cluster; ///< where it ran, for comparing like with like: "lab on node7", "sim"; may be empty

    bool operator==(const RunRow&) const = default;
};

struct HostRow {
    std::int64_t run = 0;  ///< RunRow::id
    std::int32_t host = 0; ///< index in the plan
    std::string name;      ///< "h0"
    std::string boot_id;
    std::string netns;                ///< inode of the network namespace
    std::int64_t clock_offset_ns = 0; ///< host's monotonic clock minus the controller's
    std::int64_t clock_error_ns = 0;  ///< half of the smallest round trip

    bool operator==(const HostRow&) const = default;
};

struct NicRow {
    std::int64_t run = 0;
    std::int32_t host = 0;
    std::int32_t nic = 0;
    std::string name;
    std::string mac;
    std::string address; ///< IPv4 of the data plane
    std::int64_t line_rate_bits_per_s = 0;
    std::int64_t send_goodput_bits_per_s = 0; ///< measured healthy payload rate
    std::int64_t receive_goodput_bits_per_s = 0;

    bool operator==(const NicRow&) const = default;
};

struct RankRow {
    std::int64_t run = 0;
    std::int32_t rank = 0;
    std::int32_t host = 0;
    std::int64_t pid = 0;

    bool operator==(const RankRow&) const = default;
};

/// One application of one fault: the evidence. One row per algorithm that the fault was applied under.
struct InjectionRow {
    std::int64_t id = 0; ///< assigned by the recorder
    std::int64_t run = 0;
    std::int32_t fault = 0; ///< index in the plan
    std::string name;
    std::string kind;      ///< "cap", "link_down", "loss", ...: see docs/scenario-format.md
    std::string algorithm; ///< algorithm running meanwhile
    std::int32_t host = 0;
    std::int32_t nic = 0;                    ///< -1: does not act on a NIC
    std::string direction;                   ///< "send", "receive", "both", or empty
    std::int64_t wanted_rate_bits_per_s = 0; ///< cap
    std::int64_t ordered_at = 0;
    std::int64_t applied_at = 0;  ///< the last kernel call returned
    std::int64_t observed_at = 0; ///< seen in read-back and, where it applies, in carrier or goodput
    std::int64_t reverted_at = 0;
    std::int64_t restored_at = 0;              ///< former state verified
    std::string mechanism;                     ///< "htb class change", "ifb + htb", "IFF_UP"
    std::string realism;                       ///< "wire", "port", "driver", "process", "pretended"
    std::string data_path;                     ///< "kernel TCP", ...
    std::string observation_json;              ///< read-back values, carrier, drops
    std::int64_t measured_send_bits_per_s = 0; ///< goodput of the port while the fault was on, 0 if not measured
    std::int64_t measured_receive_bits_per_s = 0;
    std::string error;                  ///< reason when it was not applied, not observed or not restored
    std::int32_t rank = -1;             ///< of a fault of a rank, counted over all hosts; -1: does not act on one
    std::string params_json = "{}";     ///< how strong it is wanted, beside rate and direction: {"mtu_bytes":1280}
    std::string collateral_json = "[]"; ///< what else changed on the host meanwhile, one sentence each

    bool operator==(const InjectionRow&) const = default;
};

struct EventRow {
    std::int64_t run = 0;
    std::int64_t at = 0;
    std::string level;  ///< "info", "warning", "error"
    std::string source; ///< "controller", "agent h3", "rank 3"
    std::string kind;   ///< short fixed word: "agent_hello", "phase", "fault_applied", ...
    std::string text;
    std::string facts_json;

    bool operator==(const EventRow&) const = default;
};

/// One AllReduce. duration = latest end - earliest start over all ranks, clock offsets removed.
struct IterationRow {
    std::int64_t id = 0; ///< assigned by the recorder
    std::int64_t run = 0;
    std::string algorithm;
    std::string phase;          ///< "warmup", "steady", "degraded", "recovered", "comparison"
    std::int32_t iteration = 0; ///< 1-based within algorithm and phase
    std::string schedule;       ///< Schedule::name()
    std::int64_t started_at = 0;
    std::int64_t duration_ns = 0;
    std::string expected_digest; ///< of the independent reference
    bool correct = false;        ///< every rank's digest equals it
    std::string error;           ///< non-empty: the iteration failed, and why

    bool operator==(const IterationRow&) const = default;
};

struct RankIterationRow {
    std::int64_t iteration = 0; ///< IterationRow::id
    std::int32_t rank = 0;
    std::int64_t started_at = 0; ///< controller's clock
    std::int64_t ended_at = 0;
    std::int64_t bytes_sent = 0;
    std::int64_t bytes_received = 0;
    std::string digest;

    bool operator==(const RankIterationRow&) const = default;
};

struct CounterRow {
    std::int64_t run = 0;
    std::int32_t host = 0;
    std::int32_t nic = 0;
    std::int64_t at = 0;
    std::string source; ///< "rtnl_link_stats64", "qdisc htb 1:1"
    std::string name;   ///< "tx_bytes", "rx_bytes", "tx_dropped", "carrier_changes", ...
    std::int64_t value = 0;

    bool operator==(const CounterRow&) const = default;
};

/// A lower bound for one algorithm's phase at the measured goodput.
struct BoundRow {
    std::int64_t run = 0;
    std::string algorithm;
    std::string phase;
    std::string name;         ///< "Theorem 6", "fluid spanning tree"
    std::string model;        ///< "exclusive" or "fluid"
    std::string branch;       ///< which term binds
    double slowdown = 1.0;    ///< measured ell of the slowest port
    double time_over_n = 0;   ///< T/n
    std::int64_t time_ns = 0; ///< at the measured healthy goodput

    bool operator==(const BoundRow&) const = default;
};

struct VerdictRow {
    std::int64_t run = 0;
    std::string scope;   ///< "run", "teardown", "expectation", "correctness", "fault", "bound"
    std::string subject; ///< algorithm/phase or fault name; empty for scope "run"
    std::string verdict; ///< "pass", "fail", "inconclusive", "invalid", "refused", "aborted"
    std::string reason;  ///< one line; never empty for anything but pass
    std::optional<double> measured;
    std::optional<double> limit_min;
    std::optional<double> limit_max;

    bool operator==(const VerdictRow&) const = default;
};

struct ArtefactRow {
    std::int64_t run = 0;
    std::string name;
    std::string media_type;
    std::string content;

    bool operator==(const ArtefactRow&) const = default;
};

/// One execution of a suite: a list of scenarios with parameters.
struct SuiteRow {
    std::int64_t id = 0;  ///< primary key, assigned by the recorder
    std::string suite_id; ///< sortable by time: "20260131T123456Z-nightly-3f9c"
    std::string name;
    std::string text;      ///< the file as read
    std::string plan_json; ///< canonical expansion: every item with its scenario, parameters and plan hash
    std::string plan_hash; ///< of plan_json; a suite is resumed only with the same
    std::uint64_t seed = 0;
    std::string backend;
    std::string cluster; ///< as RunRow::cluster
    std::string version;
    std::string command_line;
    std::string environment_json;
    std::int64_t started_realtime_ns = 0;
    std::int64_t finished_realtime_ns = 0; ///< 0 while it goes on, or when it was interrupted

    bool operator==(const SuiteRow&) const = default;
};

/// What stays of an item's run when that is pruned: as much as the reports of its suite need.
struct PrunedOutcome {
    std::string run_id;  ///< empty: nothing was pruned
    std::string verdict; ///< of scope "run"; empty: the run never ended
    std::string reason;
    std::int64_t started_realtime_ns = 0;
    std::int64_t finished_realtime_ns = 0;
    std::string figures_json = "[]"; ///< its statistics, as figures_json() writes them

    bool operator==(const PrunedOutcome&) const = default;
};

/// What became of one item of a suite. Its verdict is that of its run.
struct SuiteItemRow {
    std::int64_t suite = 0; ///< SuiteRow::id
    std::int32_t item = 0;  ///< index in the expansion, from 0
    std::string name;       ///< "half-rate[host=3,fraction=1/2]#2"
    std::string scenario_name;
    std::string params_json = "{}"; ///< what the matrix set: {"host":"3"}
    std::int32_t repeat = 1;        ///< 1-based
    std::string plan_hash;          ///< of the expanded scenario
    std::string state;              ///< "waiting", "running", "done", "skipped"
    std::int64_t run = 0;           ///< RunRow::id of the last attempt, 0: none, or it was pruned
    std::int32_t attempts = 0;
    std::string reason;     ///< why it was skipped, or refused before a run began, or what is left of its teardown
    PrunedOutcome pruned{}; ///< of the last attempt

    bool operator==(const SuiteItemRow&) const = default;
};

/// One run that stands for "how it should be" under a tag. A tag has one or more runs.
struct BaselineRow {
    std::string tag;
    std::int64_t run = 0; ///< RunRow::id
    std::string run_id;   ///< of that run; filled in when read
    std::int64_t set_realtime_ns = 0;
    std::string note;

    bool operator==(const BaselineRow&) const = default;
};

/// A suite with its items in order.
struct SuiteData {
    SuiteRow suite;
    std::vector<SuiteItemRow> items;
    std::vector<std::string> run_ids;  ///< of each item's run, empty where there is none
    std::vector<std::string> verdicts; ///< of each item's run ("pass", ...), pruned or not; empty where there is none
    std::vector<std::string> reasons;  ///< the run's, or the item's own
};

/// Everything of one run.
struct RunData {
    RunRow run;
    std::vector<HostRow> hosts;
    std::vector<NicRow> nics;
    std::vector<RankRow> ranks;
    std::vector<InjectionRow> injections;
    std::vector<EventRow> events;
    std::vector<IterationRow> iterations;
    std::vector<RankIterationRow> rank_iterations;
    std::vector<CounterRow> counters;
    std::vector<BoundRow> bounds;
    std::vector<VerdictRow> verdicts;
    std::vector<ArtefactRow> artefacts;
};

} // namespace railbreak::record
