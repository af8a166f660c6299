#include "harness/controller/run_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "harness/controller/forms.hpp"
#include "harness/controller/gantt_artefact.hpp"
#include "kernels/dtype.hpp"

namespace railbreak::controller {

using scenarios::Direction;
using scenarios::Phase;

namespace {

/// Every form of an algorithm is tried once; those that take at most so many per cent of the fastest one's time then
/// once more, and the closest a third time. A disturbance and a connection that is still slow only ever add time, so
/// the shortest of a form's tries counts.
constexpr std::array kCloseForms{110, 105};

/// What was seen best of each side of each NIC.
void keep_best(Goodputs& best, const Goodputs& seen) {
    best.resize(seen.size());
    for (std::size_t host = 0; host < seen.size(); ++host) {
        best[host].resize(seen[host].size());
        for (std::size_t nic = 0; nic < seen[host].size(); ++nic) {
            best[host][nic].send = std::max(best[host][nic].send, seen[host][nic].send);
            best[host][nic].receive = std::max(best[host][nic].receive, seen[host][nic].receive);
        }
    }
}

} // namespace

void RunSteps::event(std::string_view kind, std::string text) {
    Result<void> stored = context_.recorder.add_event({.run = context_.run,
                                                       .at = monotonic_now().count(),
                                                       .level = "info",
                                                       .source = "controller",
                                                       .kind = std::string(kind),
                                                       .text = std::move(text),
                                                       .facts_json = "{}"});
    if (!stored && !context_.unrecorded) {
        context_.unrecorded = std::move(stored.error());
    }
}

Result<void> RunSteps::recorded() const {
    return context_.unrecorded ? Result<void>(tl::unexpected<Error>(*context_.unrecorded)) : Result<void>();
}

Result<void> RunSteps::baseline() {
    context_.progress.doing(fmt::format("measuring the goodput of every port; about {} left", rough(clock_.left())));
    healthy_ports_.clear();
    for (int probe = 0; probe < kBaselineProbes; ++probe) {
        Result<Goodputs> ports = context_.session.probe(kProbeSpan, cluster().rate, 1, {});
        if (!ports) {
            return fail(std::move(ports.error()));
        }
        keep_best(healthy_ports_, *ports);
    }
    for (std::int32_t host = 0; host < cluster().hosts; ++host) {
        for (std::int32_t nic = 0; nic < cluster().nics_per_host; ++nic) {
            const PortGoodput& port = healthy_ports_[static_cast<std::size_t>(host)][static_cast<std::size_t>(nic)];
            healthy_goodput_ = std::max({healthy_goodput_, port.send, port.receive});
            Result<void> stored = context_.recorder.add_nic(context_.session.nic_row(host, nic, port, context_.run));
            if (!stored) {
                return stored;
            }
        }
    }
    event("baseline", fmt::format("healthy goodput {}", to_string(healthy_goodput_)));
    return {};
}

Result<void> RunSteps::all_algorithms() {
    for (const scenarios::AlgorithmSpec& algorithm : context_.session.plan().workload.algorithms) {
        if (Result<void> done = one_algorithm(algorithm); !done) {
            return done;
        }
    }
    return recorded();
}

agent::PlanSpec RunSteps::spec_for(const Form& form, const collective::Topology& topology) const {
    return {form.algorithm,
            {.topology = topology,
             .elements = context_.session.elements(),
             .element_bytes = size_of(context_.session.plan().workload.dtype),
             .healthy_goodput = healthy_goodput_,
             .flow_overhead = kFlowOverhead,
             .flow_latency = kFlowLatency,
             .options = form.options}};
}

Result<PreparedPlan> RunSteps::steady_plan(const scenarios::AlgorithmSpec& spec) {
    return context_.session.prepare(
        spec_for({spec.name, spec.options}, plan_topology(cluster(), no_damage(cluster()), healthy_goodput_)));
}

Result<PreparedPlan> RunSteps::renew_ranks(const scenarios::AlgorithmSpec& spec) {
    context_.progress.doing("starting the ranks anew");
    Result<void> renewed = context_.session.restart_ranks(context_.recorder, context_.run);
    if (!renewed) {
        return fail(std::move(renewed.error()));
    }
    ranks_broken_ = false;
    event("ranks_renewed", fmt::format("{}: the ranks were started anew after its degraded phase", spec.label));
    Result<PreparedPlan> plan = steady_plan(spec);
    if (!plan) {
        return fail(std::move(plan.error()).during("preparing " + spec.label + " on new ranks"));
    }
    if (context_.session.plan().workload.iterations.recovered > 0) {
        Result<Nanoseconds> warm = iterate(spec.label, to_string(Phase::kWarmup), ++warmups_, *plan, nullptr);
        if (!warm) {
            return fail(std::move(warm.error()));
        }
    }
    return plan;
}

Result<void> RunSteps::one_algorithm(const scenarios::AlgorithmSpec& spec) {
    const std::string& algorithm = spec.label;
    const scenarios::Plan& plan = context_.session.plan();
    const scenarios::IterationCounts& counts = plan.workload.iterations;
    const NicSlowdowns healthy = no_damage(plan.cluster);
    warmups_ = 0;
    degraded_plan_.reset();
    Result<PreparedPlan> steady = steady_plan(spec);
    if (!steady && steady.error().kind() == ErrorKind::kInput) {
        no_plan(algorithm, steady.error());
        return {};
    }
    if (!steady) {
        return fail(std::move(steady.error()).during("preparing " + algorithm));
    }
    event("plan", fmt::format("{} steady: {} ({})", algorithm, steady->schedule, steady->reason));
    Result<void> done = store_bounds(algorithm, Phase::kSteady, healthy);
    if (done) {
        done = iterations(algorithm, Phase::kWarmup, *steady, counts.warmup, nullptr);
    }
    if (done) {
        done = iterations(algorithm, Phase::kSteady, *steady, counts.steady, nullptr);
    }
    if (!done) {
        return done;
    }
    if (!plan.faults.empty() && counts.degraded > 0) {
        done = with_faults(spec, *steady);
    }
    if (done && ranks_broken_) {
        steady = renew_ranks(spec);
        done = steady ? Result<void>() : fail(std::move(steady.error()));
    }
    if (done) {
        done = store_bounds(algorithm, Phase::kRecovered, healthy);
    }
    if (done) {
        done = iterations(algorithm, Phase::kRecovered, *steady, counts.recovered, nullptr);
    }
    return done ? draw_schedule(algorithm, degraded_plan_.value_or(*steady)) : std::move(done);
}

Result<void> RunSteps::draw_schedule(const std::string& algorithm, const PreparedPlan& prepared) {
    const collective::PlanRequest& request = prepared.spec.request;
    const Result<collective::Plan> plan = agent::make_plan(prepared.spec);
    if (!plan) {
        return {}; // it ran, so it can be made; and if not, a picture is missing, no result
    }
    return store_gantt(context_.recorder, context_.run, algorithm, *plan->schedule,
                       {.model = collective::PortModel::kFluid,
                        .topology = request.topology,
                        .healthy_goodput = request.healthy_goodput,
                        .element_bytes = request.element_bytes,
                        .cut_through = true,
                        .flow_overhead = request.flow_overhead,
                        .flow_latency = request.flow_latency});
}

Result<void> RunSteps::with_faults(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady) {
    FaultDriver faults(context_.session, context_.recorder, context_.run, spec.label);
    Result<void> done = degraded_phase(spec, steady, faults);
    if (!done) {
        context_.session.agents().begin_teardown();
    }
    // Whatever happened: the faults end here. The first error is the one that is told.
    Result<void> reverted = faults.revert_all();
    ranks_broken_ = ranks_broken_ || faults.rank_killed();
    return done ? std::move(reverted) : std::move(done);
}

bool RunSteps::is_expected(const std::string& algorithm, Phase phase, const Error& error) const {
    return phase == Phase::kDegraded && error.kind() == ErrorKind::kOutcome &&
           context_.session.plan().expects_error(algorithm);
}

void RunSteps::no_plan(const std::string& algorithm, const Error& why) {
    event("no_plan", fmt::format("{}: {}", algorithm, why.to_line()));
    context_.progress.note(why.to_line());
}

Result<void> RunSteps::degraded_phase(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady,
                                      FaultDriver& faults) {
    const std::string& algorithm = spec.label;
    context_.progress.doing(fmt::format("{}: applying faults", algorithm));
    Result<void> applied = faults.apply_phase_faults();
    if (!applied) {
        return applied;
    }
    Result<NicSlowdowns> damage = measure_damage(faults);
    if (!damage) {
        return fail(std::move(damage.error()));
    }
    damage_ = std::move(*damage);
    if (Result<void> stored = store_bounds(algorithm, Phase::kDegraded, damage_); !stored) {
        return stored;
    }
    Result<PreparedPlan> plan = degraded_plan(spec, steady);
    if (!plan && plan.error().kind() == ErrorKind::kInput) {
        no_plan(algorithm, plan.error());
        return {};
    }
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    event("plan", fmt::format("{} degraded: {} ({})", algorithm, plan->schedule, plan->reason));
    degraded_plan_ = *plan;
    return iterations(algorithm, Phase::kDegraded, *plan, context_.session.plan().workload.iterations.degraded,
                      &faults);
}

Result<std::vector<PreparedPlan>> RunSteps::candidates(const scenarios::AlgorithmSpec& algorithm) {
    std::vector<PreparedPlan> found;
    for (const Form& form : forms_of(algorithm)) {
        const agent::PlanSpec spec = spec_for(form, plan_topology(cluster(), damage_, healthy_goodput_));
        Result<collective::Plan> plan = agent::make_plan(spec);
        if (!plan && form.optional) {
            continue;
        }
        Result<PreparedPlan> prepared =
            plan ? context_.session.prepare(spec) : Result<PreparedPlan>(fail(std::move(plan.error())));
        if (!prepared) {
            return fail(std::move(prepared.error()).during("preparing " + algorithm.label));
        }
        prepared->lanes = plan->schedule->lanes();
        const auto same = [&](const PreparedPlan& other) { return other.schedule == prepared->schedule; };
        if (std::none_of(found.begin(), found.end(), same)) {
            found.push_back(std::move(*prepared));
        }
    }
    return found;
}

Result<Nanoseconds> RunSteps::warm_up(const std::string& algorithm, const PreparedPlan& plan,
                                      collective::Lane& warm_lanes) {
    if (plan.lanes <= warm_lanes) {
        return Nanoseconds::zero();
    }
    warm_lanes = plan.lanes;
    return iterate(algorithm, to_string(Phase::kWarmup), ++warmups_, plan, nullptr);
}

Result<PreparedPlan> RunSteps::degraded_plan(const scenarios::AlgorithmSpec& spec, const PreparedPlan& steady) {
    const std::string& algorithm = spec.label;
    Result<std::vector<PreparedPlan>> plans = candidates(spec);
    if (!plans) {
        return fail(std::move(plans.error()));
    }
    if (plans->front().schedule == steady.schedule) {
        return plans->front(); // nothing is degraded for this algorithm, and its connections are warm
    }
    std::vector<Nanoseconds> times(plans->size(), Nanoseconds::max());
    std::int32_t tries = 0;
    collective::Lane warm_lanes = 0;
    for (std::size_t round = 0; round <= kCloseForms.size() && plans->size() > 1; ++round) {
        const Nanoseconds close =
            round == 0 ? Nanoseconds::max() : *std::ranges::min_element(times) * kCloseForms.at(round - 1) / 100;
        for (std::size_t i = 0; i < plans->size(); ++i) {
            const PreparedPlan& plan = (*plans)[i];
            if (times[i] > close) {
                continue;
            }
            context_.progress.doing(fmt::format("{}: trying {}", algorithm, plan.schedule), algorithm + " comparison");
            Result<Nanoseconds> time = warm_up(algorithm, plan, warm_lanes);
            if (time) {
                time = iterate(algorithm, "comparison", ++tries, plan, nullptr);
            }
            if (!time) {
                return fail(std::move(time.error()));
            }
            times[i] = std::min(times[i], *time);
        }
    }
    const auto best = static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
    if (Result<Nanoseconds> warm = warm_up(algorithm, (*plans)[best], warm_lanes); !warm) {
        return fail(std::move(warm.error()));
    }
    return (*plans)[best];
}

Result<Goodputs> RunSteps::probe_capped(const FaultDriver& faults, const std::vector<std::uint64_t>& dead) {
    Goodputs best;
    const auto slow = [&](std::int32_t host) { return faults.host_capped(host); };
    for (const std::int32_t shift : probe_shifts(cluster().hosts, slow)) {
        Result<Goodputs> ports = context_.session.probe(kProbeSpan, faults.lowest_cap(), shift, dead);
        if (!ports) {
            return fail(std::move(ports.error()).during("measuring the capped ports"));
        }
        keep_best(best, *ports);
    }
    return best;
}

Result<NicSlowdowns> RunSteps::measure_damage(FaultDriver& faults) {
    NicSlowdowns damage = no_damage(cluster());
    std::vector<std::uint64_t> unusable(damage.size()); // for a probe
    for (std::size_t host = 0; host < damage.size(); ++host) {
        for (std::size_t nic = 0; nic < damage[host].size(); ++nic) {
            const NicPlight plight = faults.plight_of(static_cast<std::int32_t>(host), static_cast<std::int32_t>(nic));
            damage[host][nic].dead = plight.dead;
            damage[host][nic].cut_off = plight.cut_off;
            damage[host][nic].leaves_through = plight.reroute;
            unusable[host] |= std::uint64_t{plight.dead || plight.cut_off ? 1U : 0U} << nic;
        }
    }
    if (faults.cap_in_force()) {
        Result<Goodputs> ports = probe_capped(faults, unusable);
        if (!ports) {
            return fail(std::move(ports.error()));
        }
        if (Result<void> stored = faults.record_goodput(*ports); !stored) {
            return fail(std::move(stored.error()));
        }
        add_caps(faults, *ports, damage);
    }
    add_reroutes(damage);
    return damage;
}

void RunSteps::add_caps(const FaultDriver& faults, const Goodputs& ports, NicSlowdowns& damage) const {
    for (std::size_t host = 0; host < damage.size(); ++host) {
        for (std::size_t nic = 0; nic < damage[host].size(); ++nic) {
            const auto host_number = static_cast<std::int32_t>(host);
            const auto nic_number = static_cast<std::int32_t>(nic);
            const PortGoodput& port = ports[host][nic];
            const auto slowdown = [&](Direction direction, BitRate measured) {
                // Where packets are lost or take another way a probe sees less than the cap leaves, and a bound made of
                // that would not be one.
                return faults.packets_disturbed(host_number, nic_number)
                           ? Rational(cluster().rate.bits_per_s(),
                                      faults.wanted_rate(host_number, nic_number, direction).bits_per_s())
                           : to_slowdown(healthy_goodput_, measured);
            };
            if (faults.nic_capped(host_number, nic_number, Direction::kSend)) {
                damage[host][nic].send = slowdown(Direction::kSend, port.send);
            }
            if (faults.nic_capped(host_number, nic_number, Direction::kReceive)) {
                damage[host][nic].receive = slowdown(Direction::kReceive, port.receive);
            }
        }
    }
}

Result<void> RunSteps::count_bytes() {
    const Result<std::vector<record::CounterRow>> rows = context_.session.counters(context_.run);
    if (!rows) {
        event("no_counters", rows.error().to_line());
        return {};
    }
    return context_.recorder.add_counters(*rows);
}

Result<void> RunSteps::iterations(const std::string& algorithm, Phase phase, const PreparedPlan& plan,
                                  std::int32_t count, FaultDriver* faults) {
    Result<void> done = count_bytes();
    if (done) {
        done = iterate_all(algorithm, phase, plan, count, faults);
    }
    return done ? count_bytes() : std::move(done);
}

Result<void> RunSteps::iterate_all(const std::string& algorithm, Phase phase, const PreparedPlan& plan,
                                   std::int32_t count, FaultDriver* faults) {
    for (std::int32_t i = 1; i <= count; ++i) {
        warmups_ += phase == Phase::kWarmup ? 1 : 0;
        const Nanoseconds begun = monotonic_now();
        Result<Nanoseconds> time = iterate(algorithm, to_string(phase), i, plan, faults);
        if (!time && is_expected(algorithm, phase, time.error())) {
            ranks_broken_ = true;
            event("expected_error", time.error().to_line());
            context_.progress.note(fmt::format("as expected: {}", time.error().to_line()));
            return {};
        }
        if (!time) {
            return fail(std::move(time.error()));
        }
        clock_.finished(algorithm, to_string(phase), monotonic_now() - begun);
        const std::string part = fmt::format("{} {}", algorithm, to_string(phase));
        context_.progress.doing(
            fmt::format("{} {}/{}: {}; about {} left", part, i, count, to_string(*time), rough(clock_.left())), part);
    }
    return {};
}

Result<Nanoseconds> RunSteps::iterate(const std::string& algorithm, std::string_view phase, std::int32_t iteration,
                                      const PreparedPlan& plan, FaultDriver* faults) {
    record::IterationRow row{.run = context_.run,
                             .algorithm = algorithm,
                             .phase = std::string(phase),
                             .iteration = iteration,
                             .schedule = plan.schedule,
                             .started_at = monotonic_now().count(),
                             .expected_digest = context_.expected_digest};
    const auto on_start = [&](Nanoseconds started_at) {
        row.started_at = started_at.count();
        return faults != nullptr ? faults->arm_timed_faults(iteration, started_at) : Lateness();
    };
    Result<IterationOutcome> outcome =
        context_.session.iterate(plan, context_.session.plan().workload.iteration_timeout, on_start);
    if (context_.faults_lost) { // its faults were lifted in the middle: the time means nothing
        return tl::unexpected<Error>(*context_.faults_lost);
    }
    if (Result<void> so_far = recorded(); !so_far) {
        return fail(std::move(so_far.error()));
    }
    std::vector<record::RankIterationRow> ranks;
    if (outcome) {
        row.started_at = outcome->started_at.count();
        row.duration_ns = outcome->duration.count();
        row.correct = true;
        for (std::size_t rank = 0; rank < outcome->ranks.size(); ++rank) {
            const RankOutcome& one = outcome->ranks[rank];
            row.correct = row.correct && one.digest == context_.expected_digest;
            ranks.push_back({.rank = static_cast<std::int32_t>(rank),
                             .started_at = one.started_at.count(),
                             .ended_at = one.ended_at.count(),
                             .bytes_sent = one.bytes_sent,
                             .bytes_received = one.bytes_received,
                             .digest = one.digest});
        }
    } else {
        if (outcome.error().kind() != ErrorKind::kOutcome) {
            // The harness broke off, not the system under test: no iteration took place, and the run says why it ended.
            return fail(
                std::move(outcome.error()).during(fmt::format("{} {} iteration {}", algorithm, phase, iteration)));
        }
        row.error = outcome.error().to_line();
        row.duration_ns = monotonic_now().count() - row.started_at; // until the error was known
    }
    Result<std::int64_t> stored = context_.recorder.add_iteration(row, ranks);
    if (!stored) {
        return fail(std::move(stored.error()));
    }
    if (!outcome) {
        return fail(std::move(outcome.error()).during(fmt::format("{} {} iteration {}", algorithm, phase, iteration)));
    }
    if (faults != nullptr) {
        Result<void> settled = faults->record_lateness(iteration, *outcome);
        if (settled) {
            settled = faults->settle_timed_faults();
        }
        if (!settled) {
            return fail(std::move(settled.error()));
        }
    }
    return outcome->duration;
}

Result<void> RunSteps::store_bounds(const std::string& algorithm, Phase phase, const NicSlowdowns& damage) {
    const double vector_ns = static_cast<double>(context_.session.plan().workload.bytes.bytes()) * 8e9 /
                             static_cast<double>(healthy_goodput_.bits_per_s());
    for (const collective::Bound& bound : bounds_of(cluster(), damage, healthy_goodput_)) {
        Result<void> stored = context_.recorder.add_bound(
            {.run = context_.run,
             .algorithm = algorithm,
             .phase = std::string(to_string(phase)),
             .name = bound.name,
             .model = bound.model,
             .branch = bound.branch,
             .slowdown = worst_of(damage),
             .time_over_n = bound.time_over_n,
             .time_ns = static_cast<std::int64_t>(std::llround(bound.time_over_n * vector_ns))});
        if (!stored) {
            return stored;
        }
    }
    return {};
}

} // namespace railbreak::controller
