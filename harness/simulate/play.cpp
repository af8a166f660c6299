#include "harness/simulate/play.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "collective/verify.hpp"
#include "harness/analyse/analyse.hpp"
#include "harness/controller/gantt_artefact.hpp"
#include "harness/simulate/fault_script.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::simulate {

using collective::SimulationResult;
using scenarios::Phase;

namespace {

/// What stands for the digest of a rank whose sum is proven from the schedule.
constexpr std::string_view kProven = "proven";
/// A proof takes about 100 bytes a step; longer schedules are played without.
constexpr std::int64_t kMostProvenSteps = 20'000'000;

BitRate payload_rate(const scenarios::ClusterSpec& cluster) {
    return BitRate::bits_per_s(static_cast<std::uint64_t>(
        std::llround(static_cast<double>(cluster.rate.bits_per_s()) * analyse::payload_share(cluster.mtu_bytes))));
}

std::int64_t steps_of(const collective::Schedule& schedule) {
    std::int64_t steps = 0;
    for (collective::Rank rank = 0; rank < schedule.ranks(); ++rank) {
        for (collective::Lane lane = 0; lane < schedule.lanes(); ++lane) {
            steps += schedule.send_count(rank, lane) + schedule.receive_count(rank, lane);
        }
    }
    return steps;
}

std::int64_t elements_of(const scenarios::WorkloadSpec& workload) {
    return static_cast<std::int64_t>(workload.bytes.bytes() / size_of(workload.dtype));
}

/// When TCP resends what nobody answers, and says so: its smallest time-out.
constexpr Nanoseconds kTcpResend = std::chrono::milliseconds(200);

} // namespace

Play::Play(const Context& context) : context_(context), goodput_(payload_rate(context.plan.cluster)) {}

void Play::event(std::string_view kind, std::string text, std::optional<Nanoseconds> at) {
    Result<void> stored = context_.recorder.add_event({.run = context_.run,
                                                       .at = at.value_or(now_).count(),
                                                       .level = "info",
                                                       .source = "simulator",
                                                       .kind = std::string(kind),
                                                       .text = std::move(text),
                                                       .facts_json = "{}"});
    if (!stored && !unrecorded_) {
        unrecorded_ = std::move(stored.error());
    }
}

Result<void> Play::cluster() {
    const scenarios::ClusterSpec& cluster = context_.plan.cluster;
    for (std::int32_t host = 0; host < cluster.hosts; ++host) {
        Result<void> stored =
            context_.recorder.add_host({.run = context_.run, .host = host, .name = fmt::format("h{}", host)});
        for (std::int32_t nic = 0; stored && nic < cluster.nics_per_host; ++nic) {
            stored = context_.recorder.add_nic(
                {.run = context_.run,
                 .host = host,
                 .nic = nic,
                 .name = fmt::format("rail{}", nic),
                 .line_rate_bits_per_s = static_cast<std::int64_t>(cluster.rate.bits_per_s()),
                 .send_goodput_bits_per_s = static_cast<std::int64_t>(goodput_.bits_per_s()),
                 .receive_goodput_bits_per_s = static_cast<std::int64_t>(goodput_.bits_per_s())});
        }
        if (!stored) {
            return stored;
        }
    }
    for (std::int32_t rank = 0; rank < cluster.ranks(); ++rank) {
        const std::int32_t host = rank / cluster.ranks_per_host;
        if (Result<void> stored = context_.recorder.add_rank({.run = context_.run, .rank = rank, .host = host});
            !stored) {
            return stored;
        }
    }
    const SimulateOptions& options = context_.options;
    const bool fluid = options.model == collective::PortModel::kFluid;
    event("simulation", fmt::format("{} ports{}{}, overhead {}, latency {}: nothing is touched and no data moves",
                                    to_string(options.model), options.cut_through ? " with cut-through" : "",
                                    fluid ? fmt::format(", shared by {}, {} to send and {} received ahead",
                                                        to_string(options.sharing), to_string(options.send_buffer),
                                                        to_string(options.receive_buffer))
                                          : "",
                                    to_string(options.flow_overhead), to_string(options.flow_latency)));
    return {};
}

collective::Topology Play::topology(bool damaged) const {
    const scenarios::ClusterSpec& cluster = context_.plan.cluster;
    return controller::plan_topology(cluster, damaged ? phase_damage(context_.plan) : controller::no_damage(cluster),
                                     goodput_);
}

Result<void> Play::all_algorithms() {
    for (const scenarios::AlgorithmSpec& algorithm : context_.plan.workload.algorithms) {
        if (Result<void> done = one_algorithm(algorithm); !done) {
            return done;
        }
    }
    return unrecorded_ ? Result<void>(tl::unexpected<Error>(*unrecorded_)) : Result<void>();
}

Result<void> Play::one_algorithm(const scenarios::AlgorithmSpec& spec) {
    const std::string& algorithm = spec.label;
    const scenarios::IterationCounts& counts = context_.plan.workload.iterations;
    Result<Prepared> steady = prepare({spec.name, spec.options}, false);
    if (!steady && steady.error().kind() == ErrorKind::kInput) {
        // Not for this cluster: its phases stay empty.
        event("no_plan", fmt::format("{}: {}", algorithm, steady.error().to_line()));
        return {};
    }
    if (!steady) {
        return fail(std::move(steady.error()).during("preparing " + algorithm));
    }
    event("plan", fmt::format("{} steady: {} ({})", algorithm, steady->schedule->name(), steady->reason));
    Result<void> done = store_bounds(algorithm, Phase::kSteady, false);
    if (done) {
        done = healthy_iterations(algorithm, Phase::kWarmup, *steady, counts.warmup);
    }
    if (done) {
        done = healthy_iterations(algorithm, Phase::kSteady, *steady, counts.steady);
    }
    if (done && !context_.plan.faults.empty() && counts.degraded > 0) {
        done = degraded_phase(spec, *steady);
    }
    if (done) {
        done = store_bounds(algorithm, Phase::kRecovered, false);
    }
    if (done) {
        done = healthy_iterations(algorithm, Phase::kRecovered, *steady, counts.recovered);
    }
    return done ? draw_schedule(algorithm, *steady, false) : std::move(done);
}

Result<void> Play::degraded_phase(const scenarios::AlgorithmSpec& spec, Prepared& steady) {
    const std::string& algorithm = spec.label;
    const Nanoseconds began = now_;
    Result<void> done = store_bounds(algorithm, Phase::kDegraded, true);
    if (!done) {
        return done;
    }
    Result<std::vector<Prepared>> plans = candidates(spec);
    if (!plans && plans.error().kind() == ErrorKind::kInput) {
        // No schedule for this damage: a finding, not a failure. The degraded phase stays empty.
        event("no_plan", fmt::format("{}: {}", algorithm, plans.error().to_line()));
    } else if (!plans) {
        done = fail(std::move(plans.error()));
    } else if (same_plan(*plans->front().schedule, *steady.schedule)) {
        done = degraded_iterations(algorithm, steady); // nothing is degraded for this algorithm
    } else if (Result<std::size_t> best = fastest(algorithm, *plans); best) {
        done = degraded_iterations(algorithm, (*plans)[*best]);
    } else {
        done = fail(std::move(best.error()));
    }
    Result<void> stored = record_phase_faults(algorithm, began);
    return done ? std::move(stored) : std::move(done);
}

Result<void> Play::degraded_iterations(const std::string& algorithm, Prepared& prepared) {
    event("plan", fmt::format("{} degraded: {} ({})", algorithm, prepared.schedule->name(), prepared.reason));
    if (Result<void> drawn = draw_schedule(algorithm, prepared, true); !drawn) {
        return drawn;
    }
    for (std::int32_t i = 1; i <= context_.plan.workload.iterations.degraded; ++i) {
        const Nanoseconds started_at = now_;
        const Result<Nanoseconds> time =
            iterate(algorithm, to_string(Phase::kDegraded), i, prepared, Damage::kPhaseFaults);
        Result<void> stored = record_timed_faults(algorithm, i, started_at, now_ - started_at);
        if (!time && time.error().kind() == ErrorKind::kOutcome && context_.plan.expects_error(algorithm)) {
            event("expected_error", fmt::format("{}: {}", algorithm, time.error().to_line()));
            return stored; // the phase ends with it
        }
        if (!time) {
            return tl::unexpected(time.error());
        }
        if (!stored) {
            return stored;
        }
    }
    return {};
}

Result<std::vector<Play::Prepared>> Play::candidates(const scenarios::AlgorithmSpec& algorithm) {
    std::vector<Prepared> found;
    for (const controller::Form& form : controller::forms_of(algorithm)) {
        Result<Prepared> prepared = prepare(form, true);
        if (!prepared && form.optional && prepared.error().kind() == ErrorKind::kInput) {
            continue;
        }
        if (!prepared) {
            return fail(std::move(prepared.error()).during("preparing " + form.algorithm));
        }
        const auto same = [&](const Prepared& other) { return same_plan(*other.schedule, *prepared->schedule); };
        if (std::none_of(found.begin(), found.end(), same)) {
            found.push_back(std::move(*prepared));
        }
    }
    return found;
}

/// Plays each form once, unless there is only one.
Result<std::size_t> Play::fastest(const std::string& algorithm, std::vector<Prepared>& candidates) {
    std::size_t best = 0;
    Nanoseconds best_time = Nanoseconds::max();
    for (std::size_t i = 0; i < candidates.size() && candidates.size() > 1; ++i) {
        const Result<Nanoseconds> time =
            iterate(algorithm, "comparison", static_cast<std::int32_t>(i) + 1, candidates[i], Damage::kPhaseFaults);
        if (!time) {
            return tl::unexpected(time.error());
        }
        if (*time < best_time) {
            best_time = *time;
            best = i;
        }
    }
    return best;
}

Result<Play::Prepared> Play::prepare(const controller::Form& form, bool damaged) {
    const Result<const collective::Algorithm*> algorithm = collective::find_algorithm(form.algorithm);
    if (!algorithm) {
        return tl::unexpected(algorithm.error());
    }
    Result<collective::Plan> plan = (*algorithm)
                                        ->plan({.topology = topology(damaged),
                                                .elements = elements_of(context_.plan.workload),
                                                .element_bytes = size_of(context_.plan.workload.dtype),
                                                .healthy_goodput = goodput_,
                                                .flow_overhead = context_.options.flow_overhead,
                                                .flow_latency = context_.options.flow_latency,
                                                .options = form.options});
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    Prepared prepared{.schedule = std::move(plan->schedule), .reason = std::move(plan->reason)};
    prove(prepared);
    return prepared;
}

void Play::prove(Prepared& prepared) {
    const collective::Schedule& schedule = *prepared.schedule;
    if (const std::int64_t steps = steps_of(schedule); steps > kMostProvenSteps) {
        event("no_proof", fmt::format("{} has {} steps, too many to prove it here", schedule.name(), steps));
        prepared.proof_skipped = true;
        return;
    }
    const std::vector<collective::Violation> violations = collective::verify(schedule, 1);
    if (violations.empty()) {
        prepared.proof = kProven;
    } else {
        event("violation", fmt::format("{}: {}", schedule.name(), to_string(violations.front())));
    }
}

Result<void> Play::healthy_iterations(const std::string& algorithm, Phase phase, Prepared& prepared,
                                      std::int32_t count) {
    for (std::int32_t i = 1; i <= count; ++i) {
        if (const Result<Nanoseconds> time = iterate(algorithm, to_string(phase), i, prepared, Damage::kNone); !time) {
            return tl::unexpected(time.error());
        }
    }
    return {};
}

collective::SimulationOptions Play::simulation(bool damaged) const {
    const bool fluid = context_.options.model == collective::PortModel::kFluid;
    return {.model = context_.options.model,
            .topology = topology(damaged),
            .healthy_goodput = goodput_,
            .element_bytes = size_of(context_.plan.workload.dtype),
            .cut_through = context_.options.cut_through,
            .sharing = fluid ? context_.options.sharing : collective::PortSharing::kMaxMin,
            .send_buffer = fluid ? context_.options.send_buffer : ByteCount{},
            .receive_buffer = fluid ? context_.options.receive_buffer : ByteCount{},
            .flow_overhead = context_.options.flow_overhead,
            .flow_latency = context_.options.flow_latency};
}

Result<void> Play::draw_schedule(const std::string& algorithm, const Prepared& prepared, bool damaged) {
    if (drawn_ == algorithm) {
        return {};
    }
    drawn_ = algorithm;
    return controller::store_gantt(context_.recorder, context_.run, algorithm, *prepared.schedule, simulation(damaged));
}

Result<SimulationResult> Play::simulated(Prepared& prepared, Damage damage, std::int32_t iteration) {
    const std::vector<scenarios::PlannedFault>& faults = context_.plan.faults;
    std::vector<Nanoseconds> starts;
    if (damage != Damage::kNone) {
        starts = rank_starts(context_.plan, iteration);
    }
    const bool timed = std::any_of(faults.begin(), faults.end(), [&](const auto& fault) {
        return fault.at_iteration && fault.at_iteration == iteration;
    });
    const bool hit = damage != Damage::kNone && (timed || !starts.empty());
    std::optional<SimulationResult>& known = damage == Damage::kNone ? prepared.healthy : prepared.damaged;
    if (known && !hit) {
        return *known;
    }
    // What the faults change is in the timeline.
    collective::SimulationOptions options = simulation(false);
    if (damage != Damage::kNone) {
        options.timeline = rate_changes(context_.plan, iteration);
        options.rank_start = std::move(starts);
    }
    Result<SimulationResult> result = collective::simulate(*prepared.schedule, options);
    if (result && !hit) {
        known = *result;
    }
    return result;
}

Result<Nanoseconds> Play::iterate(const std::string& algorithm, std::string_view phase, std::int32_t iteration,
                                  Prepared& prepared, Damage damage) {
    record::IterationRow row{.run = context_.run,
                             .algorithm = algorithm,
                             .phase = std::string(phase),
                             .iteration = iteration,
                             .schedule = prepared.schedule->name(),
                             .started_at = now_.count(),
                             .expected_digest = std::string(prepared.proof_skipped ? "" : kProven),
                             .correct = !prepared.proof.empty()};
    // Comparisons take place between the phases' iterations: no timed fault hits them.
    Result<SimulationResult> result = simulated(prepared, damage, phase == "comparison" ? 0 : iteration);
    const Nanoseconds limit = context_.plan.workload.iteration_timeout;
    if (result && result->makespan > limit) {
        result = fail(ErrorKind::kOutcome, fmt::format("takes {}, longer than the time limit of {}",
                                                       to_string(result->makespan), to_string(limit)));
    }
    if (!result && result.error().kind() != ErrorKind::kOutcome) {
        return fail(std::move(result.error()).during(fmt::format("{} {} iteration {}", algorithm, phase, iteration)));
    }
    std::vector<record::RankIterationRow> ranks;
    if (result) {
        row.duration_ns = result->makespan.count();
        for (std::size_t rank = 0; rank < result->rank_ends.size(); ++rank) {
            ranks.push_back({.rank = static_cast<std::int32_t>(rank),
                             .started_at = now_.count(),
                             .ended_at = (now_ + result->rank_ends[rank]).count(),
                             .bytes_sent = static_cast<std::int64_t>(result->bytes_sent[rank]),
                             .bytes_received = static_cast<std::int64_t>(result->bytes_received[rank]),
                             .digest = prepared.proof});
        }
    } else {
        row.error = result.error().to_line();
        row.correct = false;
        row.duration_ns = limit.count();
    }
    if (Result<std::int64_t> stored = context_.recorder.add_iteration(row, ranks); !stored) {
        return fail(std::move(stored.error()));
    }
    if (!result) {
        now_ += limit;
        return fail(std::move(result.error()).during(fmt::format("{} {} iteration {}", algorithm, phase, iteration)));
    }
    now_ += result->makespan;
    return result->makespan;
}

Result<void> Play::record_phase_faults(const std::string& algorithm, Nanoseconds from) {
    for (const scenarios::PlannedFault& fault : context_.plan.faults) {
        if (fault.at_iteration || is_off(fault)) {
            continue;
        }
        record::InjectionRow row = injection_row(context_.plan, fault, goodput_, from, now_);
        row.run = context_.run;
        row.algorithm = algorithm;
        if (Result<std::int64_t> stored = context_.recorder.add_injection(row); !stored) {
            return fail(std::move(stored.error()));
        }
    }
    return {};
}

/// Also waits for the end of a fault that outlasts its iteration, as a real run does.
Result<void> Play::record_timed_faults(const std::string& algorithm, std::int32_t iteration, Nanoseconds started_at,
                                       Nanoseconds took) {
    for (const scenarios::PlannedFault& fault : context_.plan.faults) {
        const std::optional<Span> span = acts_in(fault, iteration);
        if (!fault.at_iteration || !span || is_off(fault)) {
            continue;
        }
        const Nanoseconds until = started_at + span->until.value_or(took);
        record::InjectionRow row = injection_row(context_.plan, fault, goodput_, started_at + span->from, until);
        row.run = context_.run;
        row.algorithm = algorithm;
        if (span->from >= took) {
            row.observed_at = row.measured_send_bits_per_s = row.measured_receive_bits_per_s = 0;
            row.error = fmt::format("the iteration was over after {}, the fault was due at {}", to_string(took),
                                    to_string(span->from));
        }
        if (Result<std::int64_t> stored = context_.recorder.add_injection(row); !stored) {
            return fail(std::move(stored.error()));
        }
        const Nanoseconds stall = span->from + kTcpResend;
        if (stops_traffic(fault.kind, fault.strength) && stall < took && started_at + stall < until) {
            event("path_stalled",
                  fmt::format("h{} NIC {} is not answered any more, although TCP would have resent", fault.host,
                              fault.nic),
                  started_at + stall);
        }
        now_ = std::max(now_, until);
    }
    return {};
}

Result<void> Play::store_bounds(const std::string& algorithm, Phase phase, bool damaged) {
    const controller::NicSlowdowns damage =
        damaged ? phase_damage(context_.plan) : controller::no_damage(context_.plan.cluster);
    const double vector_ns =
        static_cast<double>(context_.plan.workload.bytes.bytes()) * 8e9 / static_cast<double>(goodput_.bits_per_s());
    for (const collective::Bound& bound : controller::bounds_of(context_.plan.cluster, damage, goodput_)) {
        Result<void> stored = context_.recorder.add_bound(
            {.run = context_.run,
             .algorithm = algorithm,
             .phase = std::string(to_string(phase)),
             .name = bound.name,
             .model = bound.model,
             .branch = bound.branch,
             .slowdown = controller::worst_of(damage),
             .time_over_n = bound.time_over_n,
             .time_ns = static_cast<std::int64_t>(std::llround(bound.time_over_n * vector_ns))});
        if (!stored) {
            return stored;
        }
    }
    return {};
}

} // namespace railbreak::simulate
