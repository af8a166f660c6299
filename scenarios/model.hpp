// The scenario as typed values (what the YAML says, with defaults filled in) and the plan (what will be done, with
// every random choice made). The plan is stored with its hash: the same hash means the same experiment.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "kernels/dtype.hpp"
#include "scenarios/fault_model.hpp"

namespace railbreak::scenarios {

/// Phases of an algorithm's run. Warm-up iterations are recorded but never judged.
enum class Phase : std::uint8_t { kWarmup, kSteady, kDegraded, kRecovered };
/// Every Phase, in the order in which they run.
inline constexpr std::array kPhases{Phase::kWarmup, Phase::kSteady, Phase::kDegraded, Phase::kRecovered};
/// "warmup", "steady", "degraded", "recovered".
[[nodiscard]] std::string_view to_string(Phase phase);

/// The cluster the scenario wants.
struct ClusterSpec {
    std::int32_t hosts = 0;          ///< 2..64 in the lab
    std::int32_t ranks_per_host = 1; ///< g; rank r runs on host r / g
    std::int32_t nics_per_host = 1;  ///< K rails; unless a schedule says otherwise rank r uses NIC (r mod g) mod K
    BitRate rate;                    ///< line rate of every NIC, each direction
    BitRate local_rate;              ///< of a rank's intra-host port, each direction; zero: no limit
    std::int32_t mtu_bytes = 1500;

    [[nodiscard]] std::int32_t ranks() const { return hosts * ranks_per_host; }
};

/// Iterations of one algorithm by phase.
struct IterationCounts {
    std::int32_t warmup = 1;
    std::int32_t steady = 3;
    std::int32_t degraded = 3;
    std::int32_t recovered = 3;
};

/// One way of doing the collective.
struct AlgorithmSpec {
    std::string name; ///< in the algorithm registry
    /// Forced plan parameters in the order of the file, each once: {"plan", "bs"}, {"k", "4"}.
    std::vector<std::pair<std::string, std::string>> options{};
    std::string label{}; ///< what it is called in the database, in reports and in expectations; unique in a scenario
    bool operator==(const AlgorithmSpec&) const = default;
};
/// The label of an algorithm that was given none: "optcc", or "optcc(plan=bs,k=4)".
[[nodiscard]] std::string default_label(const AlgorithmSpec& algorithm);

/// What runs on the cluster.
struct WorkloadSpec {
    ByteCount bytes; ///< size of each rank's vector; a multiple of the element size
    Dtype dtype = Dtype::kFloat32;
    std::vector<AlgorithmSpec> algorithms; ///< in the order in which they run
    IterationCounts iterations;
    Nanoseconds iteration_timeout{0}; ///< an iteration that takes longer is a failure

    /// The labels of the algorithms.
    [[nodiscard]] std::vector<std::string> labels() const;
};

/// A measured quantity that an expectation may limit.
enum class Metric : std::uint8_t {
    kOverheadExclusive, ///< time / lower bound in the paper's port model
    kOverheadFluid,     ///< time / lower bound in the fluid port model
    kVsHealthy,         ///< time / median time of the ring in its steady phase
    kVsSteady,          ///< time / median time of the same algorithm in its steady phase
    kTime,              ///< time
    kCorrectness,       ///< share of the iterations with the right result on every rank
    kRecoveryTime,      ///< from the end of a fault to the end of the first iteration that is fast again
    kDetectionTime,     ///< from when a fault is in force to the first sign that the system under test noticed
    kCollateral,        ///< NICs that no fault acts on and that changed while a fault was in force
};
/// Every Metric.
inline constexpr std::array kMetrics{Metric::kOverheadExclusive, Metric::kOverheadFluid, Metric::kVsHealthy,
                                     Metric::kVsSteady,          Metric::kTime,          Metric::kCorrectness,
                                     Metric::kRecoveryTime,      Metric::kDetectionTime, Metric::kCollateral};
/// "overhead_exclusive", "overhead_fluid", "vs_healthy", "vs_steady", "time", "correctness", "recovery_time", ...
[[nodiscard]] std::string_view to_string(Metric metric);
/// Whether the metric is measured once for each fault, rather than over the iterations of a phase.
[[nodiscard]] bool is_of_a_fault(Metric metric);
/// Whether the metric's limits are durations.
[[nodiscard]] bool is_duration(Metric metric);
/// Whether the metric compares iterations with the steady ones of the same algorithm, up to Expectation::band.
[[nodiscard]] bool has_band(Metric metric);

/// Expectation::band without a word about it: 5 %.
inline constexpr Millionths kDefaultBand = 50'000;

/// How the iterations of a phase are expected to end, where that is not with the right result.
enum class Outcome : std::uint8_t {
    kError, ///< an iteration of the phase ends with an error that names where it stands; the phase ends with it
};
/// Every Outcome.
inline constexpr std::array kOutcomes{Outcome::kError};
/// "error".
[[nodiscard]] std::string_view to_string(Outcome outcome);

/// Which side of a baseline a value may not leave.
enum class Side : std::uint8_t { kBoth, kAbove, kBelow };
/// Every Side.
inline constexpr std::array kSides{Side::kBoth, Side::kAbove, Side::kBelow};
/// "both", "above", "below".
[[nodiscard]] std::string_view to_string(Side side);

/// A limit that stands on earlier runs of the same plan on the same cluster: their median, plus and minus a band.
struct BaselineLimit {
    /// Of the median, or (in_sigmas) of the standard deviation of the earlier runs' values. 50'000 is 5 %, or 0.05
    /// sigma.
    std::uint32_t band = 0;
    bool in_sigmas = false;
    std::int32_t min_runs = 5; ///< fewer earlier runs are no baseline
    Side side = Side::kBoth;   ///< kAbove: only what is above the band misses it
    bool operator==(const BaselineLimit&) const = default;
};

/// What is expected of one phase or fault of one algorithm (or of every algorithm): limits on a metric, or an outcome.
/// Limits have at most six decimals, so that the plan can store them as exact integers (millionths).
struct Expectation {
    std::optional<std::string> algorithm{};     ///< a label; empty: each algorithm of the scenario
    Phase phase = Phase::kDegraded;             ///< unless is_of_a_fault(metric)
    Metric metric = Metric::kOverheadExclusive; ///< unless there is an outcome
    std::optional<double> min{};                ///< unless is_duration(metric)
    std::optional<double> max{};                ///< at least one limit, unless there is an outcome
    std::optional<Outcome> outcome{};
    /// kError: the longest time from the moment when a fault acts within the iteration until the error is known.
    std::optional<Nanoseconds> within{};
    std::optional<std::string> fault{};    ///< is_of_a_fault(metric): its name; empty: each fault of the scenario
    std::optional<Nanoseconds> min_time{}; ///< is_duration(metric)
    std::optional<Nanoseconds> max_time{};
    std::optional<BaselineLimit> baseline{};
    Millionths band = kDefaultBand; ///< has_band(metric): by how much an iteration may take longer than the steady ones
    std::int32_t place = 0;         ///< index in the file's list; no part of the plan
};

/// A whole scenario file.
struct Scenario {
    std::int32_t version = 1;
    std::string name;
    std::string description;
    ClusterSpec cluster;
    WorkloadSpec workload;
    std::vector<FaultSpec> faults;
    std::vector<Expectation> expectations;
    Nanoseconds lease{0};    ///< time limit of every fault without renewal
    std::string source_text; ///< the file as read
    std::string source_name; ///< path or "-" as given
};

/// What will be done.
struct Plan {
    std::string scenario_name;
    std::uint64_t seed = 0;
    ClusterSpec cluster;
    WorkloadSpec workload;
    std::vector<PlannedFault> faults;
    std::vector<Expectation> expectations;
    Nanoseconds lease{0};
    std::string canonical_json; ///< keys sorted, no spaces; same plan, same bytes
    std::string hash;           ///< hex digest (XXH3-128) of canonical_json

    /// Whether the degraded phase of that algorithm is expected to end with an error.
    [[nodiscard]] bool expects_error(std::string_view algorithm) const;
};

} // namespace railbreak::scenarios
