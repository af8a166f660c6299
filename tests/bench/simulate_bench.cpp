// What simulating costs: a large cluster in both port models. The counter flows/s is what to look at.
#include <cstdint>
#include <memory>

#include <benchmark/benchmark.h>

#include "collective/algorithms/optcc.hpp"
#include "collective/algorithms/ring.hpp"
#include "collective/simulate/simulate.hpp"

namespace railbreak::collective {
namespace {

constexpr std::int64_t kElements = 268'435'399;

/// 0: plain ring; otherwise OptCC with that many segments, with ring and straggler flows on one lane or on two.
std::unique_ptr<const Schedule> schedule(Rank ranks, std::int64_t segments, bool shared) {
    if (segments == 0) {
        return make_ring(ranks, kElements);
    }
    return make_optcc({.servers = ranks,
                       .stragglers = {ranks / 3},
                       .elements = kElements,
                       .plan = OptccPlan::kUniform,
                       .segments = segments,
                       .shared = shared});
}

/// Arguments: ranks, segments, two lanes, latency in microseconds, cut-through.
void play(benchmark::State& state, PortModel model, bool as_tcp = false) {
    const auto ranks = static_cast<Rank>(state.range(0));
    const auto plan = schedule(ranks, state.range(1), state.range(2) != 0);
    const SimulationOptions options{.model = model,
                                    .topology = one_straggler(ranks, ranks / 3, {8, 7}),
                                    .healthy_goodput = BitRate::bits_per_s(400'000'000'000),
                                    .cut_through = state.range(4) != 0,
                                    .sharing = as_tcp ? PortSharing::kWindows : PortSharing::kMaxMin,
                                    .send_buffer = ByteCount::bytes(as_tcp ? 192U << 10U : 0),
                                    .receive_buffer = ByteCount::bytes(as_tcp ? 16U << 20U : 0),
                                    .flow_overhead = Nanoseconds(500),
                                    .flow_latency = std::chrono::microseconds(state.range(3))};
    std::int64_t flows = 0;
    while (state.KeepRunning()) {
        const Result<SimulationResult> result = simulate(*plan, options);
        if (!result) {
            state.SkipWithError(result.error().to_line().c_str());
            return;
        }
        flows += result->flows;
    }
    state.counters["flows/s"] = benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kIsRate);
}

void exclusive(benchmark::State& state) {
    play(state, PortModel::kExclusive);
}
void fluid(benchmark::State& state) {
    play(state, PortModel::kFluid);
}
/// As `railbreak simulate` does: windows share the ports, buffers at both ends.
void fluid_tcp(benchmark::State& state) {
    play(state, PortModel::kFluid, true);
}

BENCHMARK(exclusive)
    ->Args({256, 16, 0, 0, 0})
    ->Args({256, 16, 0, 3, 0})
    ->Args({256, 16, 1, 0, 0})
    ->Args({256, 0, 0, 0, 0})
    ->Args({1024, 16, 0, 0, 0})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(fluid)
    ->Args({256, 16, 0, 0, 0})
    ->Args({256, 16, 1, 0, 0})
    ->Args({256, 16, 0, 0, 1})
    ->Args({256, 16, 1, 3, 1})
    ->Args({256, 0, 0, 0, 0})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(fluid_tcp)
    ->Args({8, 16, 1, 3, 1})
    ->Args({64, 16, 0, 3, 1})
    ->Args({64, 16, 1, 3, 1})
    ->Args({256, 0, 0, 3, 1})
    ->Unit(benchmark::kMillisecond);

} // namespace
} // namespace railbreak::collective
