// What planning costs: all steps of one rank of a large cluster, and one step without its neighbours.
#include <cstdint>
#include <memory>

#include <benchmark/benchmark.h>

#include "collective/algorithm.hpp"
#include "collective/algorithms/optcc.hpp"
#include "collective/verify.hpp"
#include "collective/walk.hpp"

namespace railbreak::collective {
namespace {

std::unique_ptr<const Schedule> schedule(OptccPlan plan, std::int64_t ranks, std::int64_t segments) {
    return make_optcc({.servers = static_cast<Rank>(ranks),
                       .stragglers = {static_cast<Rank>(ranks / 3)},
                       .elements = 268'435'399,
                       .plan = plan,
                       .segments = segments});
}

/// Makes the schedule and walks both queues of one healthy rank. Arguments: plan, ranks, segments.
void walk_rank(benchmark::State& state) {
    std::int64_t steps = 0;
    for (auto _ : state) {
        const auto plan = schedule(static_cast<OptccPlan>(state.range(0)), state.range(1), state.range(2));
        const std::int64_t sends = plan->send_count(0, 0);
        const std::int64_t receives = plan->receive_count(0, 0);
        steps = sends + receives;
        walk_sends(*plan, 0, 0, [](std::int64_t, const Step& step) { benchmark::DoNotOptimize(step); });
        walk_receives(*plan, 0, 0, [](std::int64_t, const Step& step) { benchmark::DoNotOptimize(step); });
    }
    state.counters["steps"] = static_cast<double>(steps);
}

/// Makes the schedule and asks for the first step of each queue: when a rank can start.
void first_steps(benchmark::State& state) {
    for (auto _ : state) {
        const auto plan = schedule(static_cast<OptccPlan>(state.range(0)), state.range(1), state.range(2));
        benchmark::DoNotOptimize(plan->send_step(0, 0, 0));
        benchmark::DoNotOptimize(plan->receive_step(0, 0, 0));
    }
}

/// One step anywhere in a queue.
void random_step(benchmark::State& state) {
    const auto plan = schedule(static_cast<OptccPlan>(state.range(0)), state.range(1), state.range(2));
    const auto count = static_cast<std::uint64_t>(plan->send_count(0, 0));
    std::uint64_t seed = 1;
    for (auto _ : state) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        benchmark::DoNotOptimize(plan->send_step(0, 0, static_cast<std::int64_t>((seed >> 33) % count)));
    }
}

/// The choice of a plan, and the plan: ranks, stragglers.
void choose_plan(benchmark::State& state) {
    PlanRequest request;
    request.topology = healthy_topology(static_cast<Rank>(state.range(0)));
    for (std::int64_t a = 0; a < state.range(1); ++a) {
        const Rational slowdown = Rational(3, 2) + Rational(a % 8, 8);
        request.topology.servers[static_cast<std::size_t>(2 * a + 1)] = {slowdown, slowdown};
    }
    request.elements = 268'435'399;
    request.healthy_goodput = BitRate::bits_per_s(200'000'000'000);
    request.flow_overhead = Nanoseconds(500);
    request.flow_latency = Nanoseconds(3000);
    const Algorithm* optcc = *find_algorithm("optcc");
    for (auto _ : state) {
        const Result<Plan> plan = optcc->plan(request);
        if (!plan) {
            state.SkipWithError("no plan");
            break;
        }
        benchmark::DoNotOptimize(plan->predicted);
    }
}

/// The proof of a whole plan. Arguments as above.
void prove(benchmark::State& state) {
    const auto plan = schedule(static_cast<OptccPlan>(state.range(0)), state.range(1), state.range(2));
    for (auto _ : state) {
        benchmark::DoNotOptimize(verify(*plan));
    }
}

constexpr auto kU = static_cast<std::int64_t>(OptccPlan::kUniform);
constexpr auto kBs = static_cast<std::int64_t>(OptccPlan::kBalanced);

BENCHMARK(first_steps)->Args({kU, 1024, 64})->Args({kBs, 1024, 64});
BENCHMARK(walk_rank)->Args({kU, 1024, 64})->Args({kBs, 1024, 64})->Args({kBs, 8, 4})->Unit(benchmark::kMicrosecond);
BENCHMARK(walk_rank)->Args({kU, 16384, 16})->Unit(benchmark::kMillisecond);
BENCHMARK(choose_plan)
    ->Args({256, 1})
    ->Args({256, 16})
    ->Args({256, 100})
    ->Args({16384, 1})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(random_step)->Args({kBs, 8, 4})->Args({kBs, 64, 64})->Args({kBs, 1024, 64})->Args({kU, 1024, 1024});
BENCHMARK(prove)->Args({kBs, 8, 4})->Args({kBs, 64, 64})->Unit(benchmark::kMillisecond);

} // namespace
} // namespace railbreak::collective
