#include "scenarios/summary.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/diagnostic.hpp"
#include "scenarios/fault_summary.hpp"
#include "scenarios/plan.hpp"

namespace railbreak::scenarios {

namespace {

/// Ethernet header, frame check excluded; IPv4 and TCP headers with time stamps: what a frame carries besides payload.
constexpr double kFrameHeaderBytes = 14.0;
constexpr double kTcpIpHeaderBytes = 52.0;

constexpr double kMostSeconds = 9e9; // what 64 bits of nanoseconds hold

/// NaN, of a cluster without ranks or rate, is no time at all.
Nanoseconds from_seconds(double seconds) {
    const double kept = std::isnan(seconds) ? 0 : std::clamp(seconds, 0.0, kMostSeconds);
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(kept));
}

double to_seconds(Nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

/// What the slowest port has left while a fault holds for the whole phase.
BitRate rate_during(const PlannedFault& fault, const ClusterSpec& cluster) {
    if (fault.at_iteration || is_off(fault)) {
        return cluster.rate;
    }
    if (fault.kind == FaultKind::kCap) {
        return std::min(fault.rate, cluster.rate);
    }
    if (fault.kind == FaultKind::kReroute) { // two NICs' traffic through one
        return fraction_of(cluster.rate, Rational(1, 2));
    }
    const bool others_take_over = stops_traffic(fault.kind, fault.strength) && cluster.nics_per_host > 1 &&
                                  target_kind(fault.kind) == TargetKind::kNic;
    return others_take_over ? fraction_of(cluster.rate, Rational(cluster.nics_per_host - 1, cluster.nics_per_host))
                            : cluster.rate;
}

/// By how much a fault makes that degraded iteration longer, in seconds.
double delay_in(const PlannedFault& fault, std::int32_t iteration) {
    if (is_off(fault)) {
        return 0;
    }
    if (fault.kind == FaultKind::kLate) {
        return fault.at_iteration.value_or(iteration) == iteration ? to_seconds(fault.strength.late) : 0;
    }
    if (fault.at_iteration != iteration || !fault.duration) {
        return 0;
    }
    return (stops_traffic(fault.kind, fault.strength) ? 2.0 : 1.0) * to_seconds(*fault.duration);
}

/// The degraded iterations of one algorithm, and whether they end with an error as expected.
bool append_degraded(const Plan& plan, const AlgorithmSpec& algorithm, std::vector<ExpectedIteration>& all) {
    BitRate slowest = plan.cluster.rate;
    for (const PlannedFault& fault : plan.faults) {
        slowest = std::min(slowest, rate_during(fault, plan.cluster));
    }
    const Nanoseconds time = ring_time(plan.cluster, plan.workload.bytes, slowest);
    const bool expects_error = plan.expects_error(algorithm.label);
    for (std::int32_t i = 1; i <= plan.workload.iterations.degraded; ++i) {
        double extra = 0;
        for (const PlannedFault& fault : plan.faults) {
            if (expects_error && fault.at_iteration == i && stops_traffic(fault.kind, fault.strength)) {
                const Nanoseconds end = fault.kind == FaultKind::kKill ? fault.offset : plan.workload.iteration_timeout;
                all.push_back({algorithm.label, Phase::kDegraded, end});
                return true;
            }
            extra += delay_in(fault, i);
        }
        const double most = std::max(to_seconds(plan.workload.iteration_timeout), to_seconds(time));
        all.push_back({algorithm.label, Phase::kDegraded, from_seconds(std::min(to_seconds(time) + extra, most))});
    }
    return false;
}

std::string plural(std::int64_t count, std::string_view word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// "5 % of the median of ...", "3 standard deviations above of ...".
std::string describe(const BaselineLimit& limit) {
    const double band = static_cast<double>(limit.band) / kMillion;
    return fmt::format("{}{} of the median of at least {} earlier runs",
                       limit.in_sigmas ? fmt::format("{:g} standard deviations", band)
                                       : fmt::format("{:g} %", band * 100),
                       limit.side == Side::kAbove   ? " above"
                       : limit.side == Side::kBelow ? " below"
                                                    : "",
                       limit.min_runs);
}

/// What is measured, and where.
std::string subject_of(const Expectation& expectation) {
    const std::string algorithm = expectation.algorithm.value_or("every algorithm");
    const std::string_view metric = to_string(expectation.metric);
    if (!is_of_a_fault(expectation.metric)) {
        return fmt::format("{}, {}, {}{}", algorithm, to_string(expectation.phase),
                           expectation.metric == Metric::kCorrectness ? "" : "median of ", metric);
    }
    const std::string fault = expectation.fault ? "fault " + *expectation.fault : "every fault";
    const std::string band = has_band(expectation.metric)
                                 ? fmt::format(" (band {:g} %)", static_cast<double>(expectation.band) / kMillion * 100)
                                 : "";
    return fmt::format("{}, {}, {}{}", algorithm, fault, metric, band);
}

std::string describe(const Expectation& expectation) {
    if (expectation.outcome) {
        return fmt::format("{}, {}, an iteration ends with an {}{}", expectation.algorithm.value_or("every algorithm"),
                           to_string(expectation.phase), to_string(*expectation.outcome),
                           expectation.within ? " at most " + railbreak::to_string(*expectation.within) +
                                                    " after a fault began to act in it"
                                              : "");
    }
    std::vector<std::string> limits;
    if (expectation.min) {
        limits.push_back(fmt::format("at least {}", *expectation.min));
    }
    if (expectation.min_time) {
        limits.push_back("at least " + railbreak::to_string(*expectation.min_time));
    }
    if (expectation.max) {
        limits.push_back(fmt::format("at most {}", *expectation.max));
    }
    if (expectation.max_time) {
        limits.push_back("at most " + railbreak::to_string(*expectation.max_time));
    }
    if (expectation.baseline) {
        limits.push_back("within " + describe(*expectation.baseline));
    }
    return fmt::format("{} {}", subject_of(expectation), fmt::join(limits, ", "));
}

/// Labels; where a label hides the options, with what it stands for.
std::vector<std::string> described(const std::vector<AlgorithmSpec>& algorithms) {
    std::vector<std::string> texts;
    for (const AlgorithmSpec& algorithm : algorithms) {
        const std::string full = default_label(algorithm);
        texts.push_back(algorithm.label == full ? full : fmt::format("{} = {}", algorithm.label, full));
    }
    return texts;
}

std::vector<std::string> notes_on(const Scenario& scenario) {
    std::vector<std::string> notes;
    const std::uint64_t elements = scenario.workload.bytes.bytes() / size_of(scenario.workload.dtype);
    if (elements < static_cast<std::uint64_t>(scenario.cluster.ranks())) {
        notes.push_back(fmt::format("the vector has fewer elements ({}) than there are ranks ({}): some ranks reduce "
                                    "nothing, and latency rather than bandwidth is measured",
                                    elements, scenario.cluster.ranks()));
    }
    for (const FaultSpec& fault : scenario.faults) {
        append_notes(fault, scenario.cluster, notes);
    }
    if (scenario.expectations.empty()) {
        notes.emplace_back("no expectation: the run measures, and judges only faults and results");
    }
    if (scenario.faults.empty() && scenario.workload.iterations.degraded > 0) {
        notes.emplace_back("no fault: the degraded iterations run on a healthy cluster");
    }
    return notes;
}

} // namespace

Nanoseconds ring_time(const ClusterSpec& cluster, ByteCount bytes, BitRate rate) {
    const double ranks = cluster.ranks();
    const double mtu = cluster.mtu_bytes;
    const double rails = std::max(1, std::min(cluster.ranks_per_host, cluster.nics_per_host));
    const double goodput =
        static_cast<double>(rate.bits_per_s()) * (mtu - kTcpIpHeaderBytes) / (mtu + kFrameHeaderBytes);
    return from_seconds(2.0 * (ranks - 1.0) / ranks * 8.0 * static_cast<double>(bytes.bytes()) / rails / goodput);
}

std::vector<ExpectedIteration> expected_iterations(const Plan& plan) {
    const IterationCounts& counts = plan.workload.iterations;
    const Nanoseconds healthy = ring_time(plan.cluster, plan.workload.bytes, plan.cluster.rate);
    std::vector<ExpectedIteration> all;
    for (const AlgorithmSpec& algorithm : plan.workload.algorithms) {
        const auto append = [&](Phase phase, std::int32_t count) {
            all.insert(all.end(), static_cast<std::size_t>(count), {algorithm.label, phase, healthy});
        };
        append(Phase::kWarmup, counts.warmup);
        append(Phase::kSteady, counts.steady);
        const bool new_ranks = !plan.faults.empty() && append_degraded(plan, algorithm, all);
        append(Phase::kWarmup, new_ranks && counts.recovered > 0 ? 1 : 0);
        append(Phase::kRecovered, counts.recovered);
    }
    return all;
}

Nanoseconds estimate_run_time(const Scenario& scenario) {
    const Result<Plan> plan = expand(scenario, 0); // no time depends on the seed
    double seconds = 0;
    for (const ExpectedIteration& iteration : plan ? expected_iterations(*plan) : std::vector<ExpectedIteration>()) {
        seconds += to_seconds(iteration.time);
    }
    return from_seconds(seconds);
}

Summary summarise(const Scenario& scenario) {
    const ClusterSpec& cluster = scenario.cluster;
    const WorkloadSpec& workload = scenario.workload;
    const IterationCounts& counts = workload.iterations;
    const std::int64_t each = std::int64_t{counts.warmup} + counts.steady + counts.degraded + counts.recovered;
    Summary summary;
    summary.iterations = each * static_cast<std::int64_t>(workload.algorithms.size());
    summary.estimated_run_time = estimate_run_time(scenario);
    auto& lines = summary.lines;
    lines.emplace_back("scenario", scenario.name);
    lines.emplace_back("cluster",
                       fmt::format("{}, {}{} each, {}, MTU {} bytes{}", plural(cluster.hosts, "host"),
                                   cluster.ranks_per_host > 1 ? plural(cluster.ranks_per_host, "rank") + ", " : "",
                                   plural(cluster.nics_per_host, "NIC"), to_string(cluster.rate), cluster.mtu_bytes,
                                   cluster.local_rate.bits_per_s() > 0
                                       ? fmt::format(", {} inside a host", to_string(cluster.local_rate))
                                       : ""));
    lines.emplace_back("workload",
                       fmt::format("allreduce of {} ({} bytes of {}) on each rank", to_string(workload.bytes),
                                   workload.bytes.bytes(), to_string(workload.dtype)));
    lines.emplace_back("algorithms", fmt::format("{}", fmt::join(described(workload.algorithms), ", ")));
    lines.emplace_back("iterations", fmt::format("{} in all; each algorithm: {} warmup, {} steady, {} degraded, {} "
                                                 "recovered; time-out {} each",
                                                 summary.iterations, counts.warmup, counts.steady, counts.degraded,
                                                 counts.recovered, railbreak::to_string(workload.iteration_timeout)));
    lines.emplace_back("lease", railbreak::to_string(scenario.lease));
    for (const FaultSpec& fault : scenario.faults) {
        lines.emplace_back("fault " + fault.name, describe(fault, cluster.rate));
    }
    for (const Expectation& expectation : scenario.expectations) {
        lines.emplace_back("expect", describe(expectation));
    }
    lines.emplace_back("estimate", fmt::format("about {} in iterations, if every algorithm were as slow as the ring",
                                               railbreak::to_string(summary.estimated_run_time)));
    summary.notes = notes_on(scenario);
    return summary;
}

std::string to_text(const Summary& summary) {
    std::string text;
    for (const auto& [label, value] : summary.lines) {
        text += fmt::format("{}: {}\n", label, value);
    }
    for (const std::string& note : summary.notes) {
        text += fmt::format("note: {}\n", note);
    }
    return text;
}

} // namespace railbreak::scenarios
